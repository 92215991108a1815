# log Z in one job, where the configuration fixes the bias bound: samples are drawn until it is met.


rule normalise_target:
    input:
        model=cell("model.h5"),
        data=proposal_rows,
        applies=where_tolerance(is_set=True),
    output:
        cell("log_z.json"),
    log:
        cell("normalise_target.log"),
    benchmark:
        cell("normalise_target.benchmark.jsonl")
    priority: 1  # finish a cell before training another
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=growing(1000),
        runtime="4h",
    params:
        config=normalise_config,
        code=code_of("dkef.stages.normalise_target", spec_modules),
        folder=cell("normalise"),
    message:
        "log Z of {wildcards.model} on {wildcards.dataset}, seed {wildcards.seed}: sample until the bound is met (progress: {log})"
    shell:
        "python -m dkef normalise_target --config {params.config:q} --model {input.model}"
        " --data {input.data} --folder {params.folder} --threads {threads}"
        " --out {output} > {log} 2>&1"
