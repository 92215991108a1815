# Claims and figures: functions of tables.
from dkef.figures.catalogue import FIGURES as CATALOGUE


def drawable(name):
    """The file `name` of every cell whose space can be drawn."""
    return cell_paths(name, [d for d in plan.datasets() if plan.synthetic(d)])


def figure_inputs(wildcards):
    """The tables that a figure says it needs."""
    offered = {
        "metrics": RESULTS + "/metrics.csv",
        "summary": RESULTS + "/summary.csv",
        "claims": RESULTS + "/claims.csv",
        "grids": drawable("grid.h5"),
        "traces": cell_paths("trace.csv"),
        "splits": [
            f"data/processed/{dataset}/seed0.h5" for dataset in plan.datasets()
        ],
    }
    return {need: offered[need] for need in CATALOGUE[wildcards.figure].needs}


def figure_arguments(wildcards, input):
    """Command-line arguments for just those tables."""
    needs = CATALOGUE[wildcards.figure].needs
    return " ".join(f"--{need} {input[need]}" for need in needs)


def figure_code(wildcards):
    return code_of("dkef.render", CATALOGUE[wildcards.figure].module)


rule claims:
    input:
        metrics=RESULTS + "/metrics.csv",
        summary=RESULTS + "/summary.csv",
        tests=RESULTS + "/paired_tests.csv",
        grids=drawable("grid.h5"),
        code=code_of("dkef.claims"),
    output:
        RESULTS + "/claims.csv",
    log:
        RESULTS + "/claims.log",
    threads: 1
    resources:
        mem_mb=1000,
        runtime="10m",
    params:
        config=plan.experiment_slice(),
    shell:
        "python -m dkef.claims --config {params.config:q} --metrics {input.metrics}"
        " --summary {input.summary} --tests {input.tests} --grids {input.grids}"
        " --out {output} > {log} 2>&1"


rule render:
    input:
        unpack(figure_inputs),
        code=figure_code,
    output:
        pdf=FIGURES + "/{figure}.pdf",
        png=report(
            FIGURES + "/{figure}.png",
            caption="../report/{figure}.rst",
            category="Figures",
        ),
    log:
        FIGURES + "/{figure}.log",
    threads: 1
    resources:
        mem_mb=1500,
        runtime="30m",
    params:
        config=plan.experiment_slice(),
        tables=figure_arguments,
    shell:
        "python -m dkef.render --config {params.config:q} --figure {wildcards.figure}"
        " {params.tables} --out {output.pdf} {output.png} > {log} 2>&1"
