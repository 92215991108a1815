# Pages of tables, and one self-contained report of them and the figures by Snakemake's own reporter.


report: "../report/workflow.rst"


rule page:
    input:
        unpack(page_inputs),
    output:
        report(
            result("pages/{page}.html"),
            caption="../report/caption.rst",
            category="Tables",
        ),
    log:
        result("pages/{page}.log"),
    benchmark:
        result("pages/{page}.benchmark.jsonl")
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=growing(1000),
        runtime="10m",
    params:
        config=later(plan.experiment_slice),
        code=code_of("dkef.stages.pages"),
        files=page_arguments,
        caption=page_caption,
    message:
        "page {wildcards.page} of the report"
    shell:
        "python -m dkef.stages.pages --config {params.config:q} --page {wildcards.page}"
        " {params.files} --out {output} > {log} 2>&1"


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
