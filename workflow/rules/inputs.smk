# Functions of wildcards, stage by stage: which files and which slice of the configuration a job gets.
from dkef.data.catalogue import fetch_slice
from dkef.normaliser.files import CHUNK, PILOT, PROPOSAL, chunk_name
from dkef.report.figures.catalogue import find as find_figure


def fetch_config(wildcards):
    return fetch_slice(wildcards.file)


def raw_files(wildcards):
    """Files that the fetch stage brings, and files of the user's own, wherever they lie."""
    source = plan.source(wildcards.dataset)
    return [*(f"data/raw/{file}" for file in source.files), *source.own_files]


def raw_folder(wildcards, input):
    """data/raw, or the copy of it that a job has where files come from an object store."""
    fetched = [file for file in map(str, input.raw) if "data/raw/" in file]
    return f"{fetched[0].partition('data/raw/')[0]}data/raw" if fetched else "data/raw"


def preprocess_config(wildcards):
    return plan.preprocess_slice(wildcards.dataset, int(wildcards.seed))


def train_config(wildcards):
    return plan.train_slice(wildcards.dataset, wildcards.model, int(wildcards.seed))


def train_threads(wildcards):
    return plan.cell(wildcards.dataset, wildcards.model).compute.threads


def evaluate_config(wildcards):
    return plan.evaluate_slice(wildcards.dataset, wildcards.model, int(wildcards.seed))


def grid_config(wildcards):
    return plan.grid_slice(wildcards.dataset, wildcards.model, int(wildcards.seed))


def log_z_of_cell(wildcards):
    """log_z.json where the model does not know its own normaliser."""
    if plan.normalised(wildcards.dataset, wildcards.model):
        return []
    return cell("log_z.json").format(**wildcards)


def normalise_config(wildcards):
    return plan.normalise_slice(wildcards.dataset, wildcards.model, int(wildcards.seed))


def chunk_config(wildcards):
    return plan.chunk_slice(wildcards.dataset, wildcards.model, int(wildcards.seed))


def proposals_config(wildcards):
    return plan.proposals_slice(wildcards.dataset, wildcards.model, int(wildcards.seed))


def normaliser_of(wildcards):
    return plan.cell(wildcards.dataset, wildcards.model).normaliser


def proposal_rows(wildcards):
    """The training rows, where the proposal is built around them."""
    if normaliser_of(wildcards).proposal == "q0":
        return []
    return "data/processed/{dataset}/seed{seed}.h5".format(**wildcards)


def where_tolerance(is_set):
    """Nothing where the cell has, or has no, tolerance; elsewhere a file that no rule makes.

    Two rules make log_z.json; Snakemake takes the one whose inputs can be had.
    """

    def of_cell(wildcards):
        if (normaliser_of(wildcards).tolerance is not None) == is_set:
            return []
        return cell("normalise/another_rule").format(**wildcards)

    return of_cell


def chunks_of(stage):
    """Files of all numbered chunks of one stage of log Z."""

    def of_cell(wildcards):
        folder = cell("normalise").format(**wildcards)
        chunks = normaliser_of(wildcards).chunks(stage)
        return [f"{folder}/{chunk_name(stage, number)}" for number in range(chunks)]

    return of_cell


def reference_evaluation(wildcards):
    """The evaluation that fssd_p_value compares with, where the experiment has one."""
    reference = plan.reference(wildcards.dataset, wildcards.model)
    if reference is None or reference == wildcards.model:
        return []
    return cell("evaluation.h5").format(**{**wildcards, "model": reference})


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


def drawable(name):
    """The file `name` of every cell whose space can be drawn."""
    return cell_paths(name, [d for d in plan.datasets() if plan.synthetic(d)])


def unnormalised(name):
    """The file `name` of every cell whose model does not know its own log Z."""
    return [
        cell(name).format(dataset=dataset, model=model, seed=seed)
        for dataset, model, seed in plan.cells
        if not plan.normalised(dataset, model)
    ]


def splits_of_seed_0():
    return [f"data/processed/{dataset}/seed0.h5" for dataset in plan.datasets()]


def figure_inputs(wildcards):
    """The tables that a figure says it needs."""
    offered = {
        "metrics": result("metrics.csv"),
        "summary": result("summary.csv"),
        "sensitivity": result("sensitivity.csv"),
        "agreement": result("agreement.csv"),
        "grids": drawable("grid.h5"),
        "traces": cell_paths("trace.csv"),
        "splits": splits_of_seed_0(),
        "proposals": unnormalised("proposals.csv"),
    }
    return {need: offered[need] for need in find_figure(wildcards.figure).needs}


def figure_arguments(wildcards, input):
    """Command-line arguments for just those tables."""
    needs = find_figure(wildcards.figure).needs
    return " ".join(f"--{need} {input[need]}" for need in needs)


def figure_caption(wildcards):
    return find_figure(wildcards.figure).title


def figure_modules(wildcards):
    return [find_figure(wildcards.figure).module]


FIDELITY = [
    f"config/fidelity/{choice}.yaml"
    for choice in ("paper", "code", "recommended", "recommended_synthetic")
]
PAGES = ("summary", "claims", "published", "cards", "deviations", "provenance")


def page_inputs(wildcards):
    """The tables, splits or models that a page of the report shows."""
    return {
        "summary": {"tables": result("summary.csv")},
        "claims": {"tables": result("claims.csv")},
        "published": {"tables": result("published.csv")},
        "cards": {"splits": splits_of_seed_0()},
        "deviations": {
            "tables": "workflow/report/deviations.csv",
            "fidelity": FIDELITY,
        },
        "provenance": {"models": cell_paths("model.h5")},
    }[wildcards.page]


def page_arguments(wildcards, input):
    """Command-line arguments for just those files."""
    return " ".join(f"--{name} {input[name]}" for name in page_inputs(wildcards))


def page_caption(wildcards):
    with open(f"workflow/report/{wildcards.page}.rst") as caption:
        return caption.read()


def report_inputs():
    """The experiment's figures and, where it has cells, its pages."""
    figures = [figure(f"{name}.png") for name in plan.experiment.figures]
    pages = [result(f"pages/{page}.html") for page in PAGES] if plan.cells else []
    return [*figures, *pages]
