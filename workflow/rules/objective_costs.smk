# Processor time of training steps and validations, as each run notes it.


rule objective_costs:
    input:
        models=cell_paths("model.h5"),
    output:
        result("objective_costs.csv"),
    log:
        result("objective_costs.log"),
    benchmark:
        result("objective_costs.benchmark.jsonl")
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=growing(1000),
        runtime="10m",
    params:
        code=code_of("dkef.stages.objective_costs"),
    message:
        "gather costs of training steps"
    shell:
        "python -m dkef objective_costs --models {input.models} --out {output} > {log} 2>&1"
