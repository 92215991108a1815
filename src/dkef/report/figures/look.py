"""One look for every model and every dataset, in every figure.

Colours are Okabe and Ito's, told apart by the colour-blind; where two models share a figure without a label under
them, line style and marker differ too.
"""

from dataclasses import dataclass, replace
from typing import Any

from dkef.results.names import ALIASES, LABELS, component_of, label_of

# Where the figure prints text: DejaVu Sans travels with matplotlib, so every machine draws the same shapes.
STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "lines.linewidth": 1.2,
    "axes.formatter.useoffset": False,
    "pdf.fonttype": 42,  # TrueType, embedded: text stays text
    "svg.hashsalt": "dkef",
    "savefig.dpi": 200,
    "figure.dpi": 100,
    "figure.facecolor": "white",
}

INK = "#222222"
FAINT = "#9a9a9a"
WARNING = "#b3261e"  # labels of subsets, reduced runs and missing cells
TRUTH = "#0072B2"
CONTOURS = ("#E69F00", "#56B4E9", "#009E73", "#F0E442", "#D55E00", "#CC79A7", "#FFFFFF")


@dataclass(frozen=True)
class Look:
    """How one model is named and drawn."""

    label: str
    color: str
    marker: str = "o"
    line: str = "-"


LOOKS: dict[str, Look] = {
    model: Look(LABELS[model], *drawn)
    for model, drawn in {
        "gaussian": ("#7f7f7f", "s", ":"),
        "made": ("#E69F00", "v", "-"),
        "made_mog": ("#D55E00", "^", "--"),
        "maf": ("#009E73", "<", "-"),
        "maf_mog": ("#00624a", ">", "--"),
        "real_nvp": ("#CC79A7", "D", "-"),
        "kcef": ("#8c6d1f", "p", "-."),
        "kef_g": ("#56B4E9", "P", "-"),
        "dkef_l50_1": ("#8fa8d8", "h", "-."),
        "dkef_l50": ("#5566aa", "H", "--"),
        "dkef_g50": ("#2b4c9b", "X", "--"),
        "dkef_fixed_q0": ("#0072B2", "*", "--"),
        "dkef": ("#0072B2", "*", "-"),
        "dkef_g15": ("#0072B2", "*", "-"),
    }.items()
}
OTHERS = ("#332288", "#88CCEE", "#44AA99", "#999933", "#CC6677", "#AA4499", "#882255", "#117733")


def look_of(model: str, position: int = 0) -> Look:
    """The look of a model; one that is not in the paper gets a colour by its position among its like."""
    model = ALIASES.get(model, model)
    if model in LOOKS:
        return LOOKS[model]
    if component := component_of(model):
        return replace(look_of(component, position), label=label_of(model))
    return Look(label_of(model), OTHERS[position % len(OTHERS)])
