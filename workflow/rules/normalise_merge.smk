# log Z from finished chunks, where the configuration fixes the number of samples.


rule normalise_merge:
    input:
        model=cell("model.h5"),
        pilot=cell(f"normalise/{PILOT}"),
        proposal=cell(f"normalise/{PROPOSAL}"),
        variance=chunks_of("variance"),
        bound_z=chunks_of("bound_z"),
        z=chunks_of("z"),
        applies=where_tolerance(is_set=False),
    output:
        cell("log_z.json"),
    log:
        cell("normalise_merge.log"),
    benchmark:
        cell("normalise_merge.benchmark.jsonl")
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=growing(1000),
        runtime="10m",
    params:
        config=normalise_config,
        code=code_of("dkef.stages.normalise_merge", spec_modules),
    message:
        "log Z of {wildcards.model} on {wildcards.dataset}, seed {wildcards.seed}: merge chunks"
    shell:
        "python -m dkef normalise_merge --config {params.config:q} --model {input.model}"
        " --pilot {input.pilot} --proposal {input.proposal} --variance {input.variance}"
        " --bound-z {input.bound_z} --z {input.z} --out {output} > {log} 2>&1"
