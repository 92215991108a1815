"""What figures there are, which tables each is drawn from, and who draws it: one entry a figure, and nowhere else.

Light to import: the workflow reads it while it is planned, and no drawing library is loaded before a figure is drawn.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dkef.config.sentences import unknown
from dkef.core.errors import ConfigError
from dkef.results.tables import (
    AGREEMENT,
    GRIDS,
    METRICS,
    OBJECTIVE_COSTS,
    OBJECTIVE_SCALING,
    PROPOSALS,
    SENSITIVITY,
    SPLITS,
    SUMMARY,
    TRACES,
    Table,
)

if TYPE_CHECKING:
    from dkef.results.lookup import Results


@dataclass(frozen=True)
class Figure:
    """One figure: the place of its drawing function and the tables that function reads."""

    draw: str  # module of this package:function
    tables: tuple[Table, ...]
    title: str

    @property
    def module(self) -> str:
        """The module behind the figure, for the workflow's digest of code."""
        return f"dkef.report.figures.{self.draw.partition(':')[0]}"

    def drawing(self) -> Callable[["Results"], Any]:
        """The function that draws it, imported now."""
        function: Callable[[Results], Any] = getattr(importlib.import_module(self.module), self.draw.partition(":")[2])
        return function


# Tables of one figure alone, from a stage of their own.
SEPARATED = Table(
    "separated", "results/{experiment}/separated.csv",
    columns=(
        *("pi", "lambda", "inducing", "seed", "log_ratio", "log_ratio_apart"),
        *("printed", "corrected", "printed_limit", "corrected_limit", "truth"),
    ),
    stage="separated",
)  # fmt: skip
SEPARATED_VERDICT = Table(
    "separated_verdict", "results/{experiment}/separated.json", reader="record", stage="separated"
)

FIGURES: dict[str, Figure] = {
    "gaussian_scales": Figure(
        "gaussian_scales:draw", (METRICS, GRIDS),
        "Figure 1. A mixture of two normals, fitted with one kernel width everywhere and with a learned kernel; "
        "dotted, half the kernel around three points.",
    ),
    "toys": Figure(
        "toys:draw", (METRICS, GRIDS, SPLITS),
        "Figure 2. Log densities of all models on the synthetic sets, with test log-likelihood and Fisher divergence "
        "above each panel.",
    ),
    "real_data": Figure(
        "benchmarks:draw", (METRICS, SUMMARY),
        "Figure 3. FSSD, its p-value against a reference, score loss and log-likelihood: medians with intervals, and "
        "every run.",
    ),
    "toy_traces": Figure(
        "traces:draw_synthetic", (TRACES,),
        "Figure 4. Validation score loss by iteration on the synthetic sets, one line a run.",
    ),
    "real_traces": Figure(
        "traces:draw_benchmark", (TRACES,),
        "Figure 5. Validation score loss by iteration on the benchmark sets, one line a run.",
    ),
    "real_data_q0": Figure(
        "benchmarks:draw_fixed_q0", (METRICS, SUMMARY),
        "Figure 6. As Figure 3, with the base measure of DKEF fixed to a normal of standard deviation 2.",
    ),
    "marginals": Figure(
        "marginals:draw", (SPLITS,), "A look at the data: pairwise marginals of the training rows, column by column."
    ),
    "ablation": Figure(
        "benchmarks:draw_ablation", (METRICS, SUMMARY),
        "One choice varied, everything else held: all metrics, set by set.",
    ),
    "sensitivity": Figure(
        "sensitivity:draw", (SENSITIVITY, AGREEMENT),
        "FSSD and KSD of every model over kernel bandwidths, and how well their orders agree.",
    ),
    "normalisers": Figure(
        "normalisers:draw", (PROPOSALS,), "log Z of trained models by three proposals, against what the samples cost."
    ),
    "mixtures": Figure(
        "mixtures:draw", (SEPARATED, SEPARATED_VERDICT),
        "The log ratio that a kernel exponential family gives to two separated components (Appendix C.1): fits, the "
        "paper's printed prediction, and the corrected one.",
    ),
    "objectives": Figure(
        "objectives:draw", (METRICS, OBJECTIVE_COSTS),
        "Models trained by cheaper objectives: exact test score loss and log-likelihood against the processor time of "
        "their training steps.",
    ),
    "objective_scaling": Figure(
        "objective_scaling:draw", (OBJECTIVE_SCALING,),
        "Time and memory of one training step against the dimension, along all coordinates and along random "
        "directions.",
    ),
}  # fmt: skip


def find(name: str) -> Figure:
    """The figure of a name; every `ablation_<what>` is the ablation figure under a name of its own."""
    family = "ablation" if name.startswith("ablation_") else name
    if family not in FIGURES:
        raise ConfigError(unknown("figure", name, FIGURES, " and ablation_<what>"))
    return FIGURES[family]
