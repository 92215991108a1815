# One self-contained page of figures and tables.


rule report:
    input:
        figures=[figure(f"{name}.png") for name in plan.experiment.figures],
        pages=[result(f"pages/{page}.html") for page in PAGES] if plan.cells else [],
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
        config=later(plan.experiment_slice),
        code=code_of("dkef.stages.report"),
        templates=later(templates_digest),
    message:
        "report: {output}"
    shell:
        "python -m dkef report --config {params.config:q} --figures {input.figures}"
        " --pages {input.pages} --out {output} > {log} 2>&1"
