# Functions of wildcards from comparison on: which files and which slice of the configuration a job gets.
from dkef.report.figures.catalogue import find as find_figure
from dkef.report.pages.catalogue import PAGES, templates_digest
from dkef.results.tables import (
    BEHIND_CLAIMS,
    BEHIND_REFERENCE_VALUES,
    OBJECTIVE_COSTS,
)


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
    reference = plan.reference(wildcards.dataset, wildcards.model, "fixed_q0_reference")
    return evaluation_beside(wildcards, reference)


def quadrature_of_cell(wildcards):
    """Integrals of the model, where its space has one or two dimensions."""
    if not plan.synthetic(wildcards.dataset):
        return []
    return cell("quadrature.json").format(**wildcards)


def compare_config(wildcards):
    return plan.compare_slice(wildcards.dataset, wildcards.model, int(wildcards.seed))


def evaluations_of_seed(wildcards):
    """Every model's evaluation on one dataset under one seed."""
    return [
        cell("evaluation.h5").format(**wildcards, model=model)
        for model in plan.models(wildcards.dataset)
    ]


def sensitivity_config(wildcards):
    return plan.sensitivity_slice(wildcards.dataset, int(wildcards.seed))


def sensitivity_tables():
    return [
        result(f"{dataset}/sensitivity/seed{seed}.csv")
        for dataset in plan.datasets()
        for seed in plan.seeds(dataset)
    ]


def value_options(wildcards, input):
    return table_options(BEHIND_REFERENCE_VALUES, input)


def claim_tables():
    """What claims read; costs of training steps only where the experiment compares objectives."""
    specs = (plan.spec(*pair) for pair in {cell[:2] for cell in plan.cells})
    compares = any(getattr(spec, "objective", "exact") != "exact" for spec in specs)
    return (*BEHIND_CLAIMS, OBJECTIVE_COSTS) if compares else BEHIND_CLAIMS


def claim_inputs(wildcards):
    return files_of(claim_tables())


def claim_options(wildcards, input):
    return table_options(claim_tables(), input)


def figure_inputs(wildcards):
    return files_of(find_figure(wildcards.figure).tables)


def figure_options(wildcards, input):
    return table_options(find_figure(wildcards.figure).tables, input)


def figure_modules(wildcards):
    return [find_figure(wildcards.figure).module]


def page_inputs(wildcards):
    return files_of(PAGES[wildcards.page].tables)


def page_options(wildcards, input):
    return table_options(PAGES[wildcards.page].tables, input)


def page_modules(wildcards):
    return [PAGES[wildcards.page].module]
