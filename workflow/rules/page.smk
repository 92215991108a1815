# Pages of tables. dkef.report.pages.catalogue says which tables a page shows.


rule page:
    input:
        unpack(page_inputs),
    output:
        result("pages/{page}.html"),
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
        code=code_of("dkef.stages.page", page_modules),
        templates=later(templates_digest),
        tables=page_options,
    message:
        "page {wildcards.page} of the report"
    shell:
        "python -m dkef page --config {params.config:q} --page {wildcards.page}"
        " {params.tables} --out {output} > {log} 2>&1"
