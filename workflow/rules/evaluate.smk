# A trained model at the test points.


rule evaluate:
    input:
        model=cell("model.h5"),
        data="data/processed/{dataset}/seed{seed}.h5",
    output:
        cell("evaluation.h5"),
    log:
        cell("evaluate.log"),
    benchmark:
        cell("evaluate.benchmark.jsonl")
    priority: 1  # finish a cell before training another
    conda:
        "../../environment.yml"
    threads: train_threads
    resources:
        mem_mb=growing(3000),
        runtime="20m",
    params:
        config=evaluate_config,
        code=code_of("dkef.stages.evaluate", spec_modules, source_modules),
    message:
        "evaluate {wildcards.model} on {wildcards.dataset}, seed {wildcards.seed}"
    shell:
        "python -m dkef evaluate --config {params.config:q} --model {input.model}"
        " --data {input.data} --out {output} > {log} 2>&1"
