# The proposal for an unnormalised model, and the constants of its bias bound.


rule normalise_pilot:
    input:
        model=cell("model.h5"),
        data=proposal_rows,
    output:
        pilot=cell(f"normalise/{PILOT}"),
        proposal=cell(f"normalise/{PROPOSAL}"),
    log:
        cell("normalise/pilot.log"),
    benchmark:
        cell("normalise/pilot.benchmark.jsonl")
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=growing(1000),
        runtime="1h",
    params:
        config=chunk_config,
        code=code_of("dkef.stages.normalise_pilot", spec_modules),
    message:
        "log Z of {wildcards.model} on {wildcards.dataset}, seed {wildcards.seed}: pilot run (log: {log})"
    shell:
        "python -m dkef normalise_pilot --config {params.config:q} --model {input.model}"
        " --data {input.data} --threads {threads} --proposal {output.proposal}"
        " --out {output.pilot} > {log} 2>&1"
