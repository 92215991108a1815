# Numbers of the paper's authors and of other papers beside ours.


rule reference_values:
    input:
        unpack(later(files_of, BEHIND_REFERENCE_VALUES)),
    output:
        result("reference_values.csv"),
    log:
        result("reference_values.log"),
    benchmark:
        result("reference_values.benchmark.jsonl")
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=growing(1000),
        runtime="1h",
    params:
        config=later(plan.experiment_slice),
        code=code_of("dkef.stages.reference_values"),
        tables=value_options,
    message:
        "our numbers beside reference values"
    shell:
        "python -m dkef reference_values --config {params.config:q} {params.tables}"
        " --out {output} > {log} 2>&1"
