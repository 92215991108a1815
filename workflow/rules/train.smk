# One job per (dataset, model, seed). Killed and started again, it continues from its last checkpoint.


def train_code(wildcards):
    return code_of("dkef.train", spec_module(wildcards))


def train_config(wildcards):
    return plan.train_slice(wildcards.dataset, wildcards.model, int(wildcards.seed))


def train_threads(wildcards):
    return plan.cell(wildcards.dataset, wildcards.model).compute.threads


rule train:
    input:
        data="data/processed/{dataset}/seed{seed}.h5",
        code=train_code,
    output:
        model=CELL + "/model.h5",
        trace=CELL + "/trace.csv",
    log:
        CELL + "/train.log",
    benchmark:
        CELL + "/train.benchmark.jsonl"
    threads: train_threads
    resources:
        mem_mb=4000,
        runtime="4h",
    params:
        config=train_config,
    shell:
        "python -m dkef.train --config {params.config:q} --data {input.data}"
        " --out {output.model} --trace {output.trace} > {log} 2>&1"
