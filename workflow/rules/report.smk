# One self-contained report of pages and figures by Snakemake's own reporter.


report: "../report/workflow.rst"


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
