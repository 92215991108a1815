# From evaluations to metrics: NumPy only, so that a changed setting costs seconds.


def reference_evaluation(wildcards):
    """The evaluation that fssd_p_value compares with, where the experiment has one."""
    reference = plan.reference(wildcards.dataset, wildcards.model)
    if reference is None or reference == wildcards.model:
        return []
    return cell("evaluation.h5").format(**{**wildcards, "model": reference})


def compare_config(wildcards):
    return plan.compare_slice(wildcards.dataset, wildcards.model, int(wildcards.seed))


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
        "python -m dkef compare --config {params.config:q} --data {input.data}"
        " --evaluation {input.evaluation} --reference {input.reference}"
        " --log-z {input.log_z}"
        " --out {output} > {log} 2>&1"
