# All sensitivity tables in one, and whether FSSD and KSD order the models alike.


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
        "python -m dkef agreement --config {params.config:q} --tables {input.tables}"
        " --out {output.sensitivity} --agreement {output.agreement} > {log} 2>&1"
