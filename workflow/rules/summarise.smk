# Metrics of all cells in one table, medians over seeds, paired tests.


rule summarise:
    input:
        metrics=cell_paths("metrics.csv"),
    output:
        metrics=result("metrics.csv"),
        summary=result("summary.csv"),
        tests=result("paired_tests.csv"),
    log:
        result("summarise.log"),
    benchmark:
        result("summarise.benchmark.jsonl")
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=growing(1000),
        runtime="10m",
    params:
        config=later(plan.summarise_slice),
        code=code_of("dkef.stages.summarise"),
    message:
        "summarise all cells"
    shell:
        "python -m dkef summarise --config {params.config:q} --metrics {input.metrics}"
        " --out {output.metrics} --summary {output.summary} --tests {output.tests}"
        " > {log} 2>&1"
