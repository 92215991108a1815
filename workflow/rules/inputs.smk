# Functions of wildcards, stage by stage: which files and which slice of the configuration a job gets.
import math

from dkef.figures.catalogue import find as find_figure


def fetch_config(wildcards):
    return plan.fetch_slice(wildcards.file)


def raw_files(wildcards):
    """Files that the fetch stage brings, and files of the user's own, wherever they lie."""
    source = plan.source(wildcards.dataset)
    return [f"data/raw/{file}" for file in source.files] + list(
        getattr(source, "paths", [])
    )


def preprocess_code(wildcards):
    return code_of("dkef.preprocess", source_module(wildcards))


def preprocess_config(wildcards):
    return plan.preprocess_slice(wildcards.dataset, int(wildcards.seed))


def train_code(wildcards):
    return code_of("dkef.train", spec_module(wildcards))


def train_config(wildcards):
    return plan.train_slice(wildcards.dataset, wildcards.model, int(wildcards.seed))


def train_threads(wildcards):
    return plan.cell(wildcards.dataset, wildcards.model).compute.threads


def evaluate_code(wildcards):
    return code_of("dkef.evaluate", spec_module(wildcards), source_module(wildcards))


def evaluate_config(wildcards):
    return plan.evaluate_slice(wildcards.dataset, wildcards.model, int(wildcards.seed))


def grid_code(wildcards):
    return code_of("dkef.grid", spec_module(wildcards), source_module(wildcards))


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


def chunks_of(wildcards, stage, samples):
    """Chunk files of a stage; none where the merge itself samples until a target is met."""
    settings = plan.cell(wildcards.dataset, wildcards.model).normaliser
    if settings.tolerance is not None:
        return []
    pattern = cell("normalise/{stage}/chunk{chunk:04d}.json")
    count = math.ceil(getattr(settings, samples) / settings.chunk_samples)
    return [
        pattern.format(**wildcards, stage=stage, chunk=chunk) for chunk in range(count)
    ]


def variance_chunks(wildcards):
    return chunks_of(wildcards, "variance", "bound_samples")


def bound_z_chunks(wildcards):
    return chunks_of(wildcards, "bound_z", "bound_samples")


def z_chunks(wildcards):
    return chunks_of(wildcards, "z", "samples")


def reference_evaluation(wildcards):
    """The evaluation that fssd_p_value compares with, where the experiment has one."""
    reference = plan.reference(wildcards.dataset, wildcards.model)
    if reference is None or reference == wildcards.model:
        return []
    return cell("evaluation.h5").format(**{**wildcards, "model": reference})


def compare_config(wildcards):
    return plan.compare_slice(wildcards.dataset, wildcards.model, int(wildcards.seed))


def drawable(name):
    """The file `name` of every cell whose space can be drawn."""
    return cell_paths(name, [d for d in plan.datasets() if plan.synthetic(d)])


def figure_inputs(wildcards):
    """The tables that a figure says it needs."""
    offered = {
        "metrics": result("metrics.csv"),
        "summary": result("summary.csv"),
        "claims": result("claims.csv"),
        "grids": drawable("grid.h5"),
        "traces": cell_paths("trace.csv"),
        "splits": [f"data/processed/{dataset}/seed0.h5" for dataset in plan.datasets()],
    }
    return {need: offered[need] for need in find_figure(wildcards.figure).needs}


def figure_arguments(wildcards, input):
    """Command-line arguments for just those tables."""
    needs = find_figure(wildcards.figure).needs
    return " ".join(f"--{need} {input[need]}" for need in needs)


def figure_caption(wildcards):
    return find_figure(wildcards.figure).title


def figure_code(wildcards):
    return code_of("dkef.render", find_figure(wildcards.figure).module)
