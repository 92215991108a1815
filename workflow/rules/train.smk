# One job per (dataset, model, seed). Killed and started again, it continues from its last checkpoint.


rule train:
    input:
        data="data/processed/{dataset}/seed{seed}.h5",
    output:
        model=cell("model.h5"),
        trace=cell("trace.csv"),
    log:
        cell("train.log"),
    benchmark:
        cell("train.benchmark.jsonl")
    priority: low_seeds_first
    conda:
        "../../environment.yml"
    threads: train_threads
    resources:
        mem_mb=growing(4000),
        runtime="4h",
    params:
        config=train_config,
        code=code_of("dkef.stages.train", spec_modules),
    message:
        "train {wildcards.model} on {wildcards.dataset}, seed {wildcards.seed} (progress: {log})"
    shell:
        "python -m dkef train --config {params.config:q} --data {input.data}"
        " --out {output.model} --trace {output.trace} > {log} 2>&1"
