# From evaluations to metrics: NumPy only, so that a changed setting costs seconds.


def evaluation_beside(wildcards, model):
    """The evaluation of another model of the experiment, where it has one."""
    if model is None or model == wildcards.model:
        return []
    return cell("evaluation.h5").format(**{**wildcards, "model": model})


def reference_evaluation(wildcards):
    """What fssd_p_value compares with."""
    reference = plan.reference(wildcards.dataset, wildcards.model)
    return evaluation_beside(wildcards, reference)


def fixed_q0_evaluation(wildcards):
    """What fssd_p_value_fixed_q0 compares with: Figure 6."""
    reference = plan.fixed_q0_reference(wildcards.dataset, wildcards.model)
    return evaluation_beside(wildcards, reference)


def quadrature_of_cell(wildcards):
    """Integrals of the model, where its space has one or two dimensions."""
    if not plan.synthetic(wildcards.dataset):
        return []
    return cell("quadrature.json").format(**wildcards)


def compare_config(wildcards):
    return plan.compare_slice(wildcards.dataset, wildcards.model, int(wildcards.seed))


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
