# Functions of wildcards, stage by stage: which files and which slice of the configuration a job gets.
from dkef.data.catalogue import fetch_slice
from dkef.normaliser.files import CHUNK, PILOT, PROPOSAL, chunk_name


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


def files_of(tables):
    """Files of some tables, by name: the input of a job that reads results."""
    return {table.name: table.files(plan) for table in tables}


def table_options(tables, input):
    """The command-line options that name them."""
    return " ".join(f"--table {table.name} {input[table.name]}" for table in tables)
