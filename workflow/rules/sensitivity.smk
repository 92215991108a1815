# FSSD and KSD of all models of a dataset and seed, over kernel bandwidths and numbers of locations.


rule sensitivity:
    input:
        evaluations=evaluations_of_seed,
        data="data/processed/{dataset}/seed{seed}.h5",
    output:
        result("{dataset}/sensitivity/seed{seed}.csv"),
    log:
        result("{dataset}/sensitivity/seed{seed}.log"),
    benchmark:
        result("{dataset}/sensitivity/seed{seed}.benchmark.jsonl")
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=growing(1000),
        runtime="1h",
    params:
        config=sensitivity_config,
        code=code_of("dkef.stages.sensitivity"),
    message:
        "FSSD against KSD on {wildcards.dataset}, seed {wildcards.seed} (log: {log})"
    shell:
        "python -m dkef sensitivity --config {params.config:q} --data {input.data}"
        " --evaluations {input.evaluations} --out {output} > {log} 2>&1"
