# From evaluations to metrics: NumPy only, so that a changed setting costs seconds.


rule compare:
    input:
        evaluation=cell("evaluation.h5"),
        data="data/processed/{dataset}/seed{seed}.h5",
        reference=reference_evaluation,
        log_z=log_z_of_cell,
    output:
        cell("metrics.csv"),
    log:
        cell("compare.log"),
    benchmark:
        cell("compare.benchmark.jsonl")
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
        "python -m dkef.stages.compare --config {params.config:q} --data {input.data}"
        " --evaluation {input.evaluation} --reference {input.reference}"
        " --log-z {input.log_z}"
        " --out {output} > {log} 2>&1"


rule summarise:
    input:
        metrics=cell_paths("metrics.csv"),
    output:
        metrics=result("metrics.csv"),
        summary=result("summary.csv"),
        tests=result("paired_tests.csv"),
    log:
        result("summarise.log"),
    benchmark:
        result("summarise.benchmark.jsonl")
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=growing(1000),
        runtime="10m",
    params:
        config=later(plan.summarise_slice),
        code=code_of("dkef.stages.summarise"),
    message:
        "summarise all cells"
    shell:
        "python -m dkef.stages.summarise --config {params.config:q} --metrics {input.metrics}"
        " --out {output.metrics} --summary {output.summary} --tests {output.tests}"
        " > {log} 2>&1"


rule sensitivity:
    input:
        evaluations=evaluations_of_seed,
        data="data/processed/{dataset}/seed{seed}.h5",
    output:
        result("{dataset}/sensitivity/seed{seed}.csv"),
    log:
        result("{dataset}/sensitivity/seed{seed}.log"),
    benchmark:
        result("{dataset}/sensitivity/seed{seed}.benchmark.jsonl")
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=growing(1000),
        runtime="1h",
    params:
        config=sensitivity_config,
        code=code_of("dkef.stages.sensitivity"),
    message:
        "FSSD against KSD on {wildcards.dataset}, seed {wildcards.seed}"
    shell:
        "python -m dkef.stages.sensitivity --config {params.config:q} --data {input.data}"
        " --evaluations {input.evaluations} --out {output} > {log} 2>&1"


rule agreement:
    input:
        tables=sensitivity_tables(),
    output:
        sensitivity=result("sensitivity.csv"),
        agreement=result("agreement.csv"),
    log:
        result("agreement.log"),
    benchmark:
        result("agreement.benchmark.jsonl")
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=growing(1000),
        runtime="1h",
    params:
        config=later(plan.agreement_slice),
        code=code_of("dkef.stages.agreement"),
    message:
        "agreement of FSSD and KSD"
    shell:
        "python -m dkef.stages.agreement --config {params.config:q} --tables {input.tables}"
        " --out {output.sensitivity} --agreement {output.agreement} > {log} 2>&1"


rule published:
    input:
        published="data/published.csv",
        summary=result("summary.csv"),
    output:
        result("published.csv"),
    log:
        result("published.log"),
    benchmark:
        result("published.benchmark.jsonl")
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=growing(1000),
        runtime="1h",
    params:
        code=code_of("dkef.stages.published"),
    message:
        "our numbers beside the published ones"
    shell:
        "python -m dkef.stages.published --published {input.published}"
        " --summary {input.summary} --out {output} > {log} 2>&1"
