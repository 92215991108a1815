"""What figures there are, which inputs each needs, and who draws it.

Light to import: the workflow reads it while it is planned, and no drawing library is loaded before a figure is drawn.
"""

import difflib
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dkef.core.errors import ConfigError

if TYPE_CHECKING:
    from dkef.results.inputs import Inputs

INPUTS = ("metrics", "summary", "grids", "traces", "splits", "sensitivity", "agreement", "proposals")


@dataclass(frozen=True)
class Figure:
    """One figure: the place of its drawing function and the inputs that function reads."""

    draw: str  # module:function
    needs: tuple[str, ...]
    title: str

    @property
    def module(self) -> str:
        """The module behind the figure, for the workflow's list of sources."""
        return self.draw.partition(":")[0]

    def drawing(self) -> Callable[["Inputs"], Any]:
        """The function that draws it, imported now."""
        function: Callable[[Inputs], Any] = getattr(importlib.import_module(self.module), self.draw.partition(":")[2])
        return function


FIGURES: dict[str, Figure] = {
    "gaussian_scales": Figure(
        "dkef.report.figures.gaussian_scales:draw",
        ("metrics", "grids"),
        "Figure 1. A mixture of two normals, fitted with one kernel width everywhere and with a learned kernel; "
        "dotted, half the kernel around three points.",
    ),
    "toys": Figure(
        "dkef.report.figures.toys:draw",
        ("metrics", "grids", "splits"),
        "Figure 2. Log densities of all models on the synthetic sets, with test log-likelihood and Fisher divergence "
        "above each panel.",
    ),
    "real_data": Figure(
        "dkef.report.figures.benchmarks:draw",
        ("metrics", "summary"),
        "Figure 3. FSSD, its p-value against DKEF, score loss and log-likelihood on the benchmark sets; bars are "
        "medians, marks single runs.",
    ),
    "toy_traces": Figure(
        "dkef.report.figures.traces:draw_synthetic",
        ("traces",),
        "Figure 4. Validation score loss by iteration on the synthetic sets, one line a run.",
    ),
    "real_traces": Figure(
        "dkef.report.figures.traces:draw_benchmark",
        ("traces",),
        "Figure 5. Validation score loss by iteration on the benchmark sets, one line a run.",
    ),
    "real_data_q0": Figure(
        "dkef.report.figures.benchmarks:draw_fixed_q0",
        ("metrics", "summary"),
        "Figure 6. As Figure 3, with the base measure of DKEF fixed to a normal of standard deviation 2.",
    ),
    "marginals": Figure(
        "dkef.report.figures.marginals:draw",
        ("splits",),
        "A look at the data: pairwise marginals of the training rows as models see them.",
    ),
    "ablation": Figure(
        "dkef.report.figures.ablation:draw",
        ("metrics", "summary"),
        "One choice varied, everything else held: all metrics, set by set.",
    ),
    "sensitivity": Figure(
        "dkef.report.figures.sensitivity:draw",
        ("sensitivity", "agreement"),
        "FSSD and KSD of every model over kernel bandwidths, and how well their orders agree.",
    ),
    "normalisers": Figure(
        "dkef.report.figures.normalisers:draw",
        ("proposals",),
        "log Z of trained models by three proposals, against what the samples cost.",
    ),
}


def find(name: str) -> Figure:
    """The figure of a name; every `ablation_<what>` is the ablation figure under a name of its own."""
    family = "ablation" if name.startswith("ablation_") else name
    if family not in FIGURES:
        close = difflib.get_close_matches(name, FIGURES, n=1)
        hint = f"did you mean {close[0]}? " if close else ""
        raise ConfigError(f"figure {name!r} is unknown; {hint}known are {', '.join(FIGURES)} and ablation_<what>")
    return FIGURES[family]
