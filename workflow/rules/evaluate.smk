# A trained model at the test points, and on a grid where the space can be drawn.


def evaluate_code(wildcards):
    return code_of(
        "dkef.evaluate", spec_module(wildcards), source_module(wildcards)
    )


def evaluate_config(wildcards):
    return plan.evaluate_slice(wildcards.dataset, wildcards.model, int(wildcards.seed))


rule evaluate:
    input:
        model=CELL + "/model.h5",
        data="data/processed/{dataset}/seed{seed}.h5",
        code=evaluate_code,
    output:
        CELL + "/evaluation.h5",
    log:
        CELL + "/evaluate.log",
    benchmark:
        CELL + "/evaluate.benchmark.jsonl"
    threads: train_threads
    resources:
        mem_mb=3000,
        runtime="1h",
    params:
        config=evaluate_config,
    shell:
        "python -m dkef.evaluate --config {params.config:q} --model {input.model}"
        " --data {input.data} --out {output} > {log} 2>&1"


def grid_code(wildcards):
    return code_of("dkef.grid", spec_module(wildcards), source_module(wildcards))


def grid_config(wildcards):
    return plan.grid_slice(wildcards.dataset, wildcards.model, int(wildcards.seed))


def log_z_of_cell(wildcards):
    """log_z.json where the model does not know its own normaliser."""
    if plan.normalised(wildcards.dataset, wildcards.model):
        return []
    return CELL.format(**wildcards) + "/log_z.json"


rule grid:
    input:
        model=CELL + "/model.h5",
        data="data/processed/{dataset}/seed{seed}.h5",
        log_z=log_z_of_cell,
        code=grid_code,
    output:
        CELL + "/grid.h5",
    log:
        CELL + "/grid.log",
    threads: train_threads
    resources:
        mem_mb=2000,
        runtime="30m",
    params:
        config=grid_config,
    shell:
        "python -m dkef.grid --config {params.config:q} --model {input.model}"
        " --data {input.data} --log-z {input.log_z} --out {output} > {log} 2>&1"
