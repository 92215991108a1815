# What the rules share: the plan of the experiment, and the paths of its cells.
import gc
import os
import sys

from snakemake.exceptions import WorkflowError
from snakemake.logging import logger
from snakemake.utils import min_version

from dkef.config.code import sources_digest, target_modules
from dkef.core.errors import DkefError
from dkef.core.screen import attach
from dkef.config.plan import Plan, share_with_jobs
from dkef.config.targets import check_targets

min_version("9.20")

share_with_jobs()
screen = attach(logger)

# A graph of thousands of jobs only grows; to look through it for garbage as often as Python does by default would take
# a sixth of the time that planning the paper takes.
gc.set_threshold(200_000, 50, 50)


# Jobs inherit the environment, except from executors such as that of Kubernetes, which hand on what is named here.
envvars:
    "DKEF_CODE_VERSION",


if "DKEF_CONFIG_PATH" in os.environ:

    envvars:
        "DKEF_CONFIG_PATH",


try:
    plan = Plan.of_command_line(config)
    if workflow.is_main_process:  # a job on another machine composes only its own cell
        # From the command line itself: Snakemake shows its targets only after all rules were read.
        check_targets(plan, sys.argv[1:])
        plan.check()
except DkefError as error:
    raise WorkflowError(str(error)) from None


def result(name):
    """Path of a file about the whole experiment."""
    return f"results/{plan.name}/{name}"


def figure(name):
    """Path of a figure of the experiment."""
    return f"figures/{plan.name}/{name}"


def cell(name):
    """Path of a file of one cell, with its wildcards."""
    return f"results/{plan.name}/{{dataset}}/{{model}}/seed{{seed}}/{name}"


wildcard_constraints:
    dataset="[A-Za-z0-9_]+",
    model="[A-Za-z0-9_]+",
    figure="[a-z0-9_]+",
    seed="[0-9]+",
    chunk="[0-9]+",


def growing(mem_mb):
    """Memory of a job in MB: as much again for each retry, because running out of it is why jobs get killed."""

    def of_attempt(wildcards, attempt):
        return attempt * mem_mb

    return of_attempt


def low_seeds_first(wildcards):
    """Priority of a training job: whatever else is run, all models have their first seeds before any has its last."""
    return -int(wildcards.seed)


def later(function, *arguments):
    """A value that is computed for the jobs that need it, because on a cluster each job reads all rules again."""

    def of_job(wildcards):
        return function(*arguments)

    return of_job


def code_of(stage, *modules_of):
    """Digest of the code behind a stage's module, and behind those that functions of wildcards name.

    As a parameter it reruns a job when a formula changes, and not when a sentence does.
    """

    def of_job(wildcards):
        named = [module for modules in modules_of for module in modules(wildcards)]
        return sources_digest(stage, *named)

    return of_job


def spec_modules(wildcards):
    """Modules of the classes that a cell's model section names, those inside it included."""
    return target_modules(plan.cell(wildcards.dataset, wildcards.model).model)


def source_modules(wildcards):
    """Modules of the classes that a dataset's source section names."""
    return target_modules(plan.any_cell(wildcards.dataset).dataset.source)


def cell_paths(name):
    """The file `name` of every cell of the experiment."""
    return [
        cell(name).format(dataset=dataset, model=model, seed=seed)
        for dataset, model, seed in plan.cells
    ]


# These need the network or take seconds: on a cluster they run where Snakemake runs.
localrules:
    all,
    fetch,
    summarise,
    agreement,
    reference_values,
    claims,
    page,
    report,
