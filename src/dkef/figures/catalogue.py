"""What figures there are, which inputs each needs, and who draws it.

Light to import: the workflow reads it while it is planned, and no drawing library is loaded before a figure is drawn.
"""

import difflib
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dkef.errors import ConfigError

if TYPE_CHECKING:
    from dkef.figures.inputs import Inputs

INPUTS = ("metrics", "summary", "grids", "traces", "splits", "sensitivity", "agreement")


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
        "dkef.figures.gaussian_scales:draw", ("metrics", "grids"), "Figure 1: kernels that adapt to the density"
    ),
    "toys": Figure(
        "dkef.figures.toys:draw", ("metrics", "grids", "splits"), "Figure 2: log densities on the synthetic sets"
    ),
    "real_data": Figure(
        "dkef.figures.benchmarks:draw", ("metrics", "summary"), "Figure 3: results on the benchmark sets"
    ),
    "toy_traces": Figure(
        "dkef.figures.traces:draw_synthetic", ("traces",), "Figure 4: validation score loss on the synthetic sets"
    ),
    "real_traces": Figure(
        "dkef.figures.traces:draw_benchmark", ("traces",), "Figure 5: validation score loss on the benchmark sets"
    ),
    "real_data_q0": Figure(
        "dkef.figures.benchmarks:draw_fixed_q0", ("metrics", "summary"), "Figure 6: benchmark sets with fixed q0"
    ),
    "marginals": Figure("dkef.figures.marginals:draw", ("splits",), "Pairwise marginals after whitening"),
    "ablation": Figure("dkef.figures.ablation:draw", ("metrics", "summary"), "One choice varied, all metrics"),
    "sensitivity": Figure(
        "dkef.figures.sensitivity:draw",
        ("sensitivity", "agreement"),
        "FSSD and KSD by bandwidth and number of locations",
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
