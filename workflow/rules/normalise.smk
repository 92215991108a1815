# log Z of unnormalised models: pilot, numbered chunks of fixed size, merge.
# Raising the number of samples runs only the new chunks.


rule normalise_pilot:
    input:
        unpack(proposal_inputs),
        model=cell("model.h5"),
    output:
        pilot=cell("normalise/pilot.json"),
        proposal=cell("normalise/proposal.h5"),
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
        code=code_of("dkef.stages.normalise"),
        data=data_option,
    message:
        "log Z of {wildcards.model} on {wildcards.dataset}, seed {wildcards.seed}: pilot run"
    shell:
        "python -m dkef.stages.normalise pilot --config {params.config:q} --model {input.model}"
        " {params.data} --threads {threads} --proposal {output.proposal}"
        " --out {output.pilot} > {log} 2>&1"


rule normalise_chunk:
    input:
        model=cell("model.h5"),
        proposal=cell("normalise/proposal.h5"),
    output:
        cell("normalise/{stage}/chunk{chunk}.json"),
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
        code=code_of("dkef.stages.normalise"),
    message:
        "log Z of {wildcards.model} on {wildcards.dataset}, seed {wildcards.seed}: chunk {wildcards.chunk} ({wildcards.stage})"
    shell:
        "python -m dkef.stages.normalise chunk --config {params.config:q} --model {input.model}"
        " --proposal {input.proposal}"
        " --stage {wildcards.stage} --chunk {wildcards.chunk} --threads {threads}"
        " --out {output} > {log} 2>&1"


rule normalise:
    input:
        unpack(normalise_inputs),
        model=cell("model.h5"),
    output:
        cell("log_z.json"),
    log:
        cell("normalise.log"),
    benchmark:
        cell("normalise.benchmark.jsonl")
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=growing(1000),
        runtime="4h",
    params:
        config=normalise_config,
        code=code_of("dkef.stages.normalise"),
        command=normalise_command,
    message:
        "log Z of {wildcards.model} on {wildcards.dataset}, seed {wildcards.seed}"
    shell:
        "python -m dkef.stages.normalise {params.command} --config {params.config:q}"
        " --model {input.model} --threads {threads} --out {output} > {log} 2>&1"


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
        code=code_of("dkef.stages.proposals"),
        folder=cell("proposals"),
    message:
        "compare proposals for {wildcards.model} on {wildcards.dataset}, seed {wildcards.seed} (progress: {log})"
    shell:
        "python -m dkef.stages.proposals --config {params.config:q} --model {input.model}"
        " --data {input.data} --folder {params.folder} --threads {threads}"
        " --out {output} > {log} 2>&1"
