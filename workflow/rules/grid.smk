# A trained model on a grid, where the space can be drawn.


rule grid:
    input:
        model=cell("model.h5"),
        data="data/processed/{dataset}/seed{seed}.h5",
        log_z=log_z_of_cell,
    output:
        grid=cell("grid.h5"),
        quadrature=cell("quadrature.json"),
    log:
        cell("grid.log"),
    benchmark:
        cell("grid.benchmark.jsonl")
    priority: 1  # finish a cell before training another
    conda:
        "../../environment.yml"
    threads: train_threads
    resources:
        mem_mb=growing(2000),
        runtime="15m",
    params:
        config=grid_config,
        code=code_of("dkef.stages.grid", spec_modules, source_modules),
    message:
        "draw and integrate the density of {wildcards.model} on {wildcards.dataset}, seed {wildcards.seed}"
    shell:
        "python -m dkef grid --config {params.config:q} --model {input.model}"
        " --data {input.data} --log-z {input.log_z}"
        " --out {output.grid} --quadrature {output.quadrature} > {log} 2>&1"
