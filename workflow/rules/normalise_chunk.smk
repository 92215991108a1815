# Numbered chunks of a fixed number of samples: raising the number of samples runs only the new ones.


rule normalise_chunk:
    input:
        model=cell("model.h5"),
        proposal=cell(f"normalise/{PROPOSAL}"),
    output:
        cell(f"normalise/{CHUNK}"),
    log:
        cell("normalise/{stage}/chunk{chunk}.log"),
    benchmark:
        cell("normalise/{stage}/chunk{chunk}.benchmark.jsonl")
    wildcard_constraints:
        stage="variance|bound_z|z",
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=growing(1000),
        runtime="1h",
    params:
        config=chunk_config,
        code=code_of("dkef.stages.normalise_chunk", spec_modules),
    message:
        "log Z of {wildcards.model} on {wildcards.dataset}, seed {wildcards.seed}: chunk {wildcards.chunk} ({wildcards.stage}) (log: {log})"
    shell:
        "python -m dkef normalise_chunk --config {params.config:q} --model {input.model}"
        " --proposal {input.proposal}"
        " --stage {wildcards.stage} --chunk {wildcards.chunk} --threads {threads}"
        " --out {output} > {log} 2>&1"
