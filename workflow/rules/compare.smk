# From evaluations to metrics: NumPy only, so that a changed setting costs seconds.


def reference_evaluation(wildcards):
    """The evaluation that fssd_p_value compares with, where the experiment has one."""
    reference = plan.reference(wildcards.dataset, wildcards.model)
    if reference is None or reference == wildcards.model:
        return []
    cell = {**wildcards, "model": reference}
    return CELL.format(**cell) + "/evaluation.h5"


def compare_config(wildcards):
    return plan.compare_slice(wildcards.dataset, wildcards.model, int(wildcards.seed))


rule compare:
    input:
        evaluation=CELL + "/evaluation.h5",
        data="data/processed/{dataset}/seed{seed}.h5",
        reference=reference_evaluation,
        log_z=log_z_of_cell,
        code=code_of("dkef.compare"),
    output:
        CELL + "/metrics.csv",
    log:
        CELL + "/compare.log",
    benchmark:
        CELL + "/compare.benchmark.jsonl"
    threads: 1
    resources:
        mem_mb=1000,
        runtime="1h",
    params:
        config=compare_config,
    shell:
        "python -m dkef.compare --config {params.config:q} --data {input.data}"
        " --evaluation {input.evaluation} --reference {input.reference}"
        " --log-z {input.log_z}"
        " --out {output} > {log} 2>&1"


rule summarise:
    input:
        metrics=cell_paths("metrics.csv"),
        code=code_of("dkef.summarise"),
    output:
        metrics=RESULTS + "/metrics.csv",
        summary=RESULTS + "/summary.csv",
        tests=RESULTS + "/paired_tests.csv",
    log:
        RESULTS + "/summarise.log",
    threads: 1
    resources:
        mem_mb=1000,
        runtime="10m",
    params:
        config=plan.summarise_slice(),
    shell:
        "python -m dkef.summarise --config {params.config:q} --metrics {input.metrics}"
        " --out {output.metrics} --summary {output.summary} --tests {output.tests}"
        " > {log} 2>&1"
