"""Which part of the value axis a panel shows, and how values beyond it are drawn: as marks at the edge, never lost."""

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes

from dkef.core.arrays import Array
from dkef.report.figures.look import INK

SQUASH = 8
CHANCE = 3.0  # median absolute deviations of all runs, about two standard deviations


@dataclass(frozen=True)
class Window:
    """A range of values that is shown."""

    low: float
    high: float

    def holds(self, value: float) -> bool:
        return self.low <= value <= self.high


def window(
    centres: Array, values: Array, include: tuple[float, ...] = (), reach: float = 0.8, squash: float = SQUASH
) -> Window:
    """The range that shows all ordinary medians, and the single runs as far as they do not squash them.

    A median is off scale only if it alone makes the range more than `squash` times wider; a run is off scale if it
    lies further than `reach` times the spread from the medians. The spread is that of the shown medians or, where
    they differ by less than runs do by chance, that of the runs: a difference within chance must look like one.
    """
    centres = centres[np.isfinite(centres)]
    values = values[np.isfinite(values)]
    if centres.size == 0:
        centres = values
    if centres.size == 0:
        return Window(-1.0, 1.0)
    chance = CHANCE * float(np.median(np.abs(values - np.median(values)))) if values.size else 0.0
    shown = np.concatenate([_ordinary(centres, chance, squash), include])
    low, high = float(shown.min()), float(shown.max())
    spread = max(high - low, chance) or float(np.ptp(values)) or max(abs(high), 1e-3) * 0.1
    near = values[(values >= low - reach * spread) & (values <= high + reach * spread)]
    low, high = min(low, *near, low), max(high, *near, high)
    pad = 0.1 * ((high - low) or spread)
    return Window(low - pad, high + pad)


def _ordinary(centres: Array, chance: float, squash: float) -> Array:
    """Values without those at either end that stretch the range of the others, or chance, more than `squash` times."""
    kept = np.sort(centres)
    while len(kept) > 3:
        without_last, without_first = np.ptp(kept[:-1]), np.ptp(kept[1:])
        if max(min(without_last, without_first), chance) * squash >= np.ptp(kept):
            break
        kept = kept[:-1] if without_last < without_first else kept[1:]
    return kept


def edge_mark(axes: Axes, x: float, above: bool, count: int, size: float = 18) -> None:
    """A triangle at the panel's edge for values beyond it, with their number where it is more than one."""
    axes.scatter(
        [x], [0.985 if above else 0.015], marker="^" if above else "v", s=size, color=INK, linewidths=0,
        transform=axes.get_xaxis_transform(), clip_on=False, zorder=6,
    )  # fmt: skip
    if count > 1:
        axes.text(
            x, 0.955 if above else 0.045, str(count), transform=axes.get_xaxis_transform(),
            ha="center", va="top" if above else "bottom", fontsize=5.5, color=INK, zorder=6,
        )  # fmt: skip
