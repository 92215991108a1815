# From raw file to figure and report, in the order in which the data goes.
#
#   snakemake --cores 4                             the whole paper
#   snakemake --cores 4 --config experiment=smoke   the tiny version of everything
#   snakemake --cores 4 results/paper/redwine/dkef/seed0/metrics.csv   one cell


include: "workflow/rules/common.smk"
include: "workflow/rules/inputs.smk"
include: "workflow/rules/fetch.smk"
include: "workflow/rules/preprocess.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/evaluate.smk"
include: "workflow/rules/grid.smk"
include: "workflow/rules/normalise_pilot.smk"
include: "workflow/rules/normalise_chunk.smk"
include: "workflow/rules/normalise_merge.smk"
include: "workflow/rules/normalise_target.smk"
include: "workflow/rules/proposals.smk"
include: "workflow/rules/compare.smk"
include: "workflow/rules/render.smk"
include: "workflow/rules/report.smk"


rule all:
    default_target: True
    input:
        result("report.html"),
