"""Names of the paper's models and datasets, in its order, and what an experiment's own names stand for."""

import re
from collections.abc import Sequence

# Labels in the order of the paper's rows: the Gaussian, likelihood models, kernel exponential families, DKEF-G-15 last.
LABELS = {
    "gaussian": "Gaussian", "made": "MADE", "made_mog": "MADE-MOG", "maf": "MAF", "maf_mog": "MAF-MOG",
    "real_nvp": "Real NVP", "kcef": "KCEF", "kef_g": "KEF-G", "dkef_l50_1": "DKEF-L-50-1", "dkef_l50": "DKEF-L-50",
    "dkef_g50": "DKEF-G-50", "dkef_fixed_q0": "DKEF, fixed q0", "dkef": "DKEF", "dkef_g15": "DKEF-G-15",
}  # fmt: skip
# Figure 1 runs two models under settings of its own.
FIGURE_1 = ("kef_g_scales", "dkef_scales")
ALIASES = {"nvp": "real_nvp", "kef_g_scales": "kef_g", "dkef_scales": "dkef"}
MIXTURE = re.compile(r"^(mixture_|mix_)(?P<of>.+)$|^(?P<of2>.+)_mixture$")

# Synthetic columns and benchmark columns in the paper's order.
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


def label_of(model: str) -> str:
    """How a model is called in text; one that is not in the paper by its own name, a variant by what it varies."""
    model = ALIASES.get(model, model)
    if model in LABELS:
        return LABELS[model]
    component = component_of(model)
    if component is not None:
        return f"{label_of(component)} mixture"
    of = max((known for known in LABELS if model.startswith(f"{known}_")), key=len, default=None)
    return (f"{LABELS[of]} {model[len(of) + 1 :]}" if of else model).replace("_", " ")


def model_order(models: Sequence[str]) -> list[str]:
    """Known models in the paper's order, others after them in their own."""
    known = list(LABELS)
    names = list(dict.fromkeys(models))
    rank = {name: known.index(ALIASES.get(name, name)) for name in names if ALIASES.get(name, name) in known}
    return sorted(names, key=lambda name: rank.get(name, len(known) + names.index(name)))


def paper_set(dataset: str) -> str | None:
    """Which of the paper's sets a dataset is, or is a part of; None for any other.

    Spelling is forgiving (red_wine, redwine), and a part of a set (hepmass_part) is that set as far as a claim goes.
    """
    plain = re.sub(r"_(part|subset|small|tiny)$", "", dataset.lower()).replace("_", "")
    return plain if plain in TITLES else None


def dataset_order(datasets: Sequence[str]) -> list[str]:
    """Datasets in the order of the paper's columns, others after them in their own."""
    known = (*SYNTHETIC, *BENCHMARK)
    names = list(dict.fromkeys(datasets))

    def rank(name: str) -> int:
        plain = paper_set(name)
        return known.index(plain) if plain else len(known) + names.index(name)

    return sorted(names, key=rank)
