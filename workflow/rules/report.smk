# One self-contained report of pages and figures by Snakemake's own reporter.
from dkef.report.pages.catalogue import PAGES


report: "../report/workflow.rst"


def report_inputs():
    """The experiment's figures and, where it has cells, its pages."""
    figures = [figure(f"{name}.png") for name in plan.experiment.figures]
    pages = [result(f"pages/{page}.html") for page in PAGES] if plan.cells else []
    return [*figures, *pages]


rule report:
    input:
        report_inputs(),
    output:
        result("report.html"),
    log:
        result("report.log"),
    benchmark:
        result("report.benchmark.jsonl")
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=growing(1000),
        runtime="10m",
    params:
        config=plan.command_line(),
    message:
        "report: {output}"
    shell:
        "snakemake --report {output} --nolock {input} --config {params.config:q} > {log} 2>&1"
