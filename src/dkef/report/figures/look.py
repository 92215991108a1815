"""One look for every model and every dataset, in every figure.

Colours are Okabe and Ito's, told apart by the colour-blind; where two models share a figure without a label under
them, line style and marker differ too.
"""

import re
from dataclasses import dataclass, replace
from typing import Any

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


# In the order of the paper's rows: the reference, likelihood models, kernel exponential families, DKEF-G-15 last.
LOOKS: dict[str, Look] = {
    "gaussian": Look("Gaussian", "#7f7f7f", "s", ":"),
    "made": Look("MADE", "#E69F00", "v", "-"),
    "made_mog": Look("MADE-MOG", "#D55E00", "^", "--"),
    "maf": Look("MAF", "#009E73", "<", "-"),
    "maf_mog": Look("MAF-MOG", "#00624a", ">", "--"),
    "real_nvp": Look("Real NVP", "#CC79A7", "D", "-"),
    "kcef": Look("KCEF", "#8c6d1f", "p", "-."),
    "kef_g": Look("KEF-G", "#56B4E9", "P", "-"),
    "dkef_l50_1": Look("DKEF-L-50-1", "#8fa8d8", "h", "-."),
    "dkef_l50": Look("DKEF-L-50", "#5566aa", "H", "--"),
    "dkef_g50": Look("DKEF-G-50", "#2b4c9b", "X", "--"),
    "dkef_fixed_q0": Look("DKEF, fixed q0", "#0072B2", "*", "--"),
    "dkef": Look("DKEF", "#0072B2", "*", "-"),
    "dkef_g15": Look("DKEF-G-15", "#0072B2", "*", "-"),
}
# Figure 1 runs two models under settings of its own.
FIGURE_1 = ("kef_g_scales", "dkef_scales")
ALIASES = {"nvp": "real_nvp", "kef_g_scales": "kef_g", "dkef_scales": "dkef"}
OTHERS = ("#332288", "#88CCEE", "#44AA99", "#999933", "#CC6677", "#AA4499", "#882255", "#117733")

MIXTURE = re.compile(r"^(mixture_|mix_)(?P<of>.+)$|^(?P<of2>.+)_mixture$")

# Benchmark columns and synthetic columns in the paper's order.
SYNTHETIC = ("funnel", "banana", "ring", "square", "cosine", "mog", "mor")
BENCHMARK = ("redwine", "whitewine", "parkinsons", "hepmass", "miniboone")
TITLES = {
    "funnel": "Funnel", "banana": "Banana", "ring": "Ring", "square": "Square", "cosine": "Cosine",
    "mog": "MoG", "mor": "MoR", "redwine": "RedWine", "whitewine": "WhiteWine",
    "parkinsons": "Parkinsons", "hepmass": "HepMass", "miniboone": "MiniBoone",
}  # fmt: skip


def component_of(model: str) -> str | None:
    """The model that a mixture on clusters is made of; None where the model is no such mixture."""
    match = MIXTURE.match(model)
    return (match["of"] or match["of2"]) if match else None


def look_of(model: str, position: int = 0) -> Look:
    """The look of a model; one that is not in the paper gets a colour by its position among its like."""
    model = ALIASES.get(model, model)
    if model in LOOKS:
        return LOOKS[model]
    component = component_of(model)
    if component is not None:
        base = look_of(component, position)
        return replace(base, label=f"{base.label} mixture")
    color = OTHERS[position % len(OTHERS)]
    of = max((known for known in LOOKS if model.startswith(f"{known}_")), key=len, default=None)
    label = f"{LOOKS[of].label} {model[len(of) + 1 :]}" if of else model
    return Look(label.replace("_", " "), color, "o", "-")


def model_order(models: list[str]) -> list[str]:
    """Known models in the paper's order, others after them in their own."""
    known = list(LOOKS)
    names = list(dict.fromkeys(models))
    rank = {name: known.index(ALIASES.get(name, name)) for name in names if ALIASES.get(name, name) in known}
    return sorted(names, key=lambda name: rank.get(name, len(known) + names.index(name)))


def paper_set(dataset: str) -> str | None:
    """Which of the paper's sets a dataset is, or is a part of; None for any other.

    Spelling is forgiving (red_wine, redwine), and a part of a set (hepmass_part) is that set as far as a claim goes.
    """
    plain = re.sub(r"_(part|subset|small|tiny)$", "", dataset.lower()).replace("_", "")
    return plain if plain in TITLES else None


def dataset_order(datasets: list[str]) -> list[str]:
    """Datasets in the order of the paper's columns, others after them in their own."""
    known = (*SYNTHETIC, *BENCHMARK)
    names = list(dict.fromkeys(datasets))

    def rank(name: str) -> int:
        plain = paper_set(name)
        return known.index(plain) if plain else len(known) + names.index(name)

    return sorted(names, key=rank)
