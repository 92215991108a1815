# Appendix C: two separated Gaussians, fitted without any cell of the experiment.


rule separated:
    output:
        table=result("separated.csv"),
        verdict=result("separated.json"),
    log:
        result("separated.log"),
    benchmark:
        result("separated.benchmark.jsonl")
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=growing(1000),
        runtime="1h",
    params:
        config=plan.stage_slice("separated"),
        code=code_of("dkef.stages.separated"),
    message:
        "fit two separated Gaussians (Appendix C) (log: {log})"
    shell:
        "python -m dkef separated --config {params.config:q} --out {output.table}"
        " --verdict {output.verdict} > {log} 2>&1"
