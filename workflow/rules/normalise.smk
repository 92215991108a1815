# log Z of unnormalised models: pilot, numbered chunks of fixed size, merge.
# Raising the number of samples runs only the new chunks.
import math


def normalise_config(wildcards):
    return plan.normalise_slice(wildcards.dataset, wildcards.model, int(wildcards.seed))


def chunk_config(wildcards):
    return plan.chunk_slice(wildcards.dataset, wildcards.model, int(wildcards.seed))


def chunks_of(wildcards, stage, samples):
    """Chunk files of a stage; none where the merge itself samples until a target is met."""
    settings = plan.cell(wildcards.dataset, wildcards.model).normaliser
    if settings.tolerance is not None:
        return []
    folder = CELL.format(**wildcards) + f"/normalise/{stage}"
    count = math.ceil(getattr(settings, samples) / settings.chunk_samples)
    return [f"{folder}/chunk{chunk:04d}.json" for chunk in range(count)]


def variance_chunks(wildcards):
    return chunks_of(wildcards, "variance", "bound_samples")


def bound_z_chunks(wildcards):
    return chunks_of(wildcards, "bound_z", "bound_samples")


def z_chunks(wildcards):
    return chunks_of(wildcards, "z", "samples")


rule normalise_pilot:
    input:
        model=CELL + "/model.h5",
        code=code_of("dkef.normalise"),
    output:
        CELL + "/normalise/pilot.json",
    log:
        CELL + "/normalise/pilot.log",
    threads: 1
    resources:
        mem_mb=1000,
        runtime="1h",
    params:
        config=chunk_config,
    shell:
        "python -m dkef.normalise pilot --config {params.config:q} --model {input.model}"
        " --threads {threads} --out {output} > {log} 2>&1"


rule normalise_chunk:
    input:
        model=CELL + "/model.h5",
        code=code_of("dkef.normalise"),
    output:
        CELL + "/normalise/{stage}/chunk{chunk}.json",
    log:
        CELL + "/normalise/{stage}/chunk{chunk}.log",
    wildcard_constraints:
        stage="variance|bound_z|z",
    threads: 1
    resources:
        mem_mb=1000,
        runtime="2h",
    params:
        config=chunk_config,
    shell:
        "python -m dkef.normalise chunk --config {params.config:q} --model {input.model}"
        " --stage {wildcards.stage} --chunk {wildcards.chunk} --threads {threads}"
        " --out {output} > {log} 2>&1"


rule normalise:
    input:
        model=CELL + "/model.h5",
        pilot=CELL + "/normalise/pilot.json",
        variance=variance_chunks,
        bound_z=bound_z_chunks,
        z=z_chunks,
        code=code_of("dkef.normalise"),
    output:
        CELL + "/log_z.json",
    log:
        CELL + "/normalise.log",
    threads: 1
    resources:
        mem_mb=1000,
        runtime="4h",
    params:
        config=normalise_config,
    shell:
        "python -m dkef.normalise merge --config {params.config:q} --model {input.model}"
        " --pilot {input.pilot} --variance {input.variance} --bound-z {input.bound_z}"
        " --z {input.z} --out {output} > {log} 2>&1"
