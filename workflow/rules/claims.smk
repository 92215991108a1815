# Each checkable statement of the paper against the tables.


rule claims:
    input:
        unpack(claim_inputs),
    output:
        result("claims.csv"),
    log:
        result("claims.log"),
    benchmark:
        result("claims.benchmark.jsonl")
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=growing(1000),
        runtime="10m",
    params:
        config=later(plan.experiment_slice),
        code=code_of("dkef.stages.claims"),
        tables=claim_options,
    message:
        "judge the paper's claims"
    shell:
        "python -m dkef claims --config {params.config:q} {params.tables}"
        " --out {output} > {log} 2>&1"
