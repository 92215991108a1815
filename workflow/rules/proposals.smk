# What every proposal finds of log Z, over a range of sample counts.


rule proposals:
    input:
        model=cell("model.h5"),
        data="data/processed/{dataset}/seed{seed}.h5",
    output:
        cell("proposals.csv"),
    log:
        cell("proposals.log"),
    benchmark:
        cell("proposals.benchmark.jsonl")
    conda:
        "../../environment.yml"
    threads: 2
    resources:
        mem_mb=growing(1500),
        runtime="4h",
    params:
        config=proposals_config,
        code=code_of("dkef.stages.proposals", spec_modules),
        folder=cell("proposals"),
    message:
        "compare proposals for {wildcards.model} on {wildcards.dataset}, seed {wildcards.seed} (progress: {log})"
    shell:
        "python -m dkef proposals --config {params.config:q} --model {input.model}"
        " --data {input.data} --folder {params.folder} --threads {threads}"
        " --out {output} > {log} 2>&1"
