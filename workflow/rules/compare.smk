# From evaluations to metrics: NumPy only, so that a changed setting costs seconds.


rule compare:
    input:
        evaluation=cell("evaluation.h5"),
        data="data/processed/{dataset}/seed{seed}.h5",
        reference=reference_evaluation,
        fixed_q0_reference=fixed_q0_evaluation,
        log_z=log_z_of_cell,
        quadrature=quadrature_of_cell,
    output:
        cell("metrics.csv"),
    log:
        cell("compare.log"),
    benchmark:
        cell("compare.benchmark.jsonl")
    priority: 1  # finish a cell before training another
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=growing(1000),
        runtime="20m",
    params:
        config=compare_config,
        code=code_of("dkef.stages.compare"),
    message:
        "compare {wildcards.model} with the reference on {wildcards.dataset}, seed {wildcards.seed}"
    shell:
        "python -m dkef compare --config {params.config:q} --data {input.data}"
        " --evaluation {input.evaluation} --reference {input.reference}"
        " --fixed-q0-reference {input.fixed_q0_reference}"
        " --log-z {input.log_z} --quadrature {input.quadrature}"
        " --out {output} > {log} 2>&1"
