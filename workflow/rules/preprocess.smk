# From raw files to whitened splits, once per dataset and seed.


rule preprocess:
    input:
        raw=raw_files,
    output:
        "data/processed/{dataset}/seed{seed}.h5",
    log:
        "data/processed/{dataset}/seed{seed}.log",
    benchmark:
        "data/processed/{dataset}/seed{seed}.benchmark.jsonl"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=growing(1500),
        runtime="1h",
    params:
        config=preprocess_config,
        code=code_of("dkef.stages.preprocess", source_modules),
        raw=raw_folder,
    message:
        "preprocess {wildcards.dataset}, seed {wildcards.seed} (log: {log})"
    shell:
        "python -m dkef preprocess --config {params.config:q} --raw {params.raw}"
        " --out {output} > {log} 2>&1"
