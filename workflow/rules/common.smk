# What the rules share: the plan of the experiment, and the paths of its cells.
import os
import sys

from snakemake.exceptions import WorkflowError
from snakemake.utils import min_version, validate

from dkef.dependencies import sources_behind
from dkef.errors import DkefError
from dkef.plan import Plan
from dkef.provenance import code_version

min_version("9.20")
validate(config, "../schemas/config.schema.yaml")

# Jobs run the interpreter that runs Snakemake, whether or not its environment is activated.
os.environ["PATH"] = os.pathsep.join(
    [os.path.dirname(sys.executable), os.environ["PATH"]]
)
# All rows of one run name the same code, even if somebody commits meanwhile.
os.environ["DKEF_CODE_VERSION"] = code_version()

overrides = config["overrides"]
overrides = tuple([overrides] if isinstance(overrides, str) else overrides)
try:
    plan = Plan(config["experiment"], overrides)
    plan.check()
except DkefError as error:
    raise WorkflowError(str(error)) from None

RESULTS = f"results/{plan.name}"
FIGURES = f"figures/{plan.name}"
CELL = RESULTS + "/{dataset}/{model}/seed{seed}"


wildcard_constraints:
    dataset="[A-Za-z0-9_]+",
    model="[A-Za-z0-9_]+",
    figure="[a-z0-9_]+",
    seed="[0-9]+",
    chunk="[0-9]+",


def code_of(*modules):
    """Source files behind some modules, relative to this folder where they lie in it."""
    return [os.path.relpath(path) for path in sources_behind(*modules)]


def spec_module(wildcards):
    """The module of the class that a cell's model section names."""
    section = plan.cell(wildcards.dataset, wildcards.model).model
    return section["_target_"].rpartition(".")[0]


def source_module(wildcards):
    """The module of the class that a dataset's source section names."""
    section = plan.any_cell(wildcards.dataset).dataset.source
    return section["_target_"].rpartition(".")[0]


def cell_paths(name, datasets=None):
    """The file `name` of every cell of the experiment, or of those on some datasets."""
    return [
        CELL.format(dataset=dataset, model=model, seed=seed) + "/" + name
        for dataset, model, seed in plan.cells
        if datasets is None or dataset in datasets
    ]
