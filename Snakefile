# From raw file to figure and report: one rule a file in workflow/rules/, which has the name of the rule and of its stage.
#
#   fetch, preprocess, train, evaluate                     from a file of data to a model at the test points
#   normalise_pilot, _chunk, _merge or _target, proposals  log Z, where the model does not know it
#   compare, summarise, grid, sensitivity, agreement       numbers
#   claims, reference_values, render, page, report         what a reader gets
#
#   snakemake --cores 4                             the whole paper
#   snakemake --cores 4 --config experiment=smoke   the tiny version of everything
#   snakemake --cores 4 results/paper/redwine/dkef/seed0/metrics.csv   one cell
import sys
from pathlib import Path

SHARED = ("common.smk", "inputs.smk", "results_inputs.smk", "scheduling.smk")
RULES = Path(workflow.basedir, "workflow", "rules")


for shared in SHARED:

    include: str(RULES / shared)


for rules in sorted(RULES.glob("*.smk")):
    if rules.name not in SHARED:

        include: str(rules)


onerror:
    sys.stderr.write(screen.summary())


rule all:
    default_target: True
    input:
        result("report.html"),
