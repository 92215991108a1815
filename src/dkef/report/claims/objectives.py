"""Statements of later papers on cheaper objectives, which they tried on deep kernels and on some of the paper's sets.

Runs of all sets and seeds count together, each beside the run of the exact loss with the same start and minibatches:
few seeds a set can then decide.
"""

from collections.abc import Callable
from dataclasses import replace

from dkef.report.claims.evidence import Evidence, Runs, every
from dkef.report.claims.runs import LOSS, BySeed, PaperSet, on_sets
from dkef.report.claims.verdict import Statement
from dkef.results.lookup import Results, Run
from dkef.results.tables import OBJECTIVE_COSTS

SETS = ("ring", "redwine", "whitewine", "parkinsons")
CLOSE = 0.1  # of the exact loss's own value: seeds of one objective differ by about as much
SONG, KINGMA = "Song, Garg, Shi, Ermon 2019", "Kingma, LeCun 2010; Martens, Sutskever, Swersky 2012"


def model_of(own: PaperSet, objective: str) -> str:
    """The model of a set that is trained by an objective, for as many iterations as the exact loss."""
    return own.main_model if objective == "exact" else f"{own.main_model}_{objective}"


def together(label: str, rule: Callable[[PaperSet], Runs]) -> Callable[[Results], Runs]:
    """Runs of all sets as one count; each set's own stands in the numbers."""

    def count(results: Results) -> Runs:
        parts = [part for part in on_sets(results, SETS, rule) if isinstance(part, Runs) and part.runs]
        if not parts:
            return Runs(label)
        whole = Runs(label, *(sum(getattr(part, key) for part in parts) for key in ("wins", "losses", "runs")))
        detail = ", ".join(f"{part.label} {part.wins}/{part.runs}" for part in parts)
        return replace(whole, detail=detail, subset=any(part.subset for part in parts))

    return count


def worse(first: str, second: str) -> Callable[[Results], Runs]:
    """Runs in which the first objective leaves a higher score loss than the second."""
    label = f"{first} above {second}".replace("_", " ")
    return together(label, lambda own: own.ahead(LOSS, model_of(own, second), model_of(own, first)))


def sliced_is_close(own: PaperSet) -> Runs:
    pair = own.each([model_of(own, objective) for objective in ("sliced", "exact")], LOSS)
    return own.per_run(pair, lambda sliced, exact: CLOSE * abs(exact) - (sliced - exact))


def propagation_is_worse(results: Results) -> Evidence:
    return every("", [worse(one, "sliced")(results) for one in ("approximate_backprop", "curvature_propagation")])


def sliced_is_faster(own: PaperSet) -> Runs:
    costs = own.results.frame(OBJECTIVE_COSTS)

    def seconds(objective: str) -> BySeed:
        found = costs[(costs["dataset"] == own.entry.name) & (costs["model"] == model_of(own, objective))]
        pairs = zip(found["seed"], found["cpu_seconds_per_step"], strict=True)
        return {int(seed): Run(float(value), float("nan")) for seed, value in pairs}

    return own.above(seconds("exact"), seconds("sliced"))


STATEMENTS = (
    Statement(
        "sliced_reaches_the_score_loss_of_exact", SONG,
        "Not the paper's. Of deep kernels in a later one: sliced score matching performs as exact score matching does.",
        "In most runs, counted together on those of Ring, RedWine, WhiteWine and Parkinsons that were run, the exact "
        "test score loss of the model that was trained by one slice lies above that of the exact objective by less "
        "than a tenth of its magnitude.",
        together("sliced within a tenth", sliced_is_close),
    ),
    Statement(
        "sliced_vr_is_better_than_sliced", SONG,
        "Not the paper's. Of a later one: the known expectation of its second term makes sliced score matching better.",
        "In most runs on the same sets together, sliced_vr has the lower exact test score loss.",
        worse("sliced", "sliced_vr"),
    ),
    Statement(
        "denoising_is_worse_than_exact", SONG,
        "Not the paper's. Of a later one: denoising score matching is biased, and worse.",
        "In most runs on the same sets together, denoising (std 0.1) has the higher exact test score loss. That it is "
        "biased is mathematics: tests/models/test_objectives.py.",
        worse("denoising", "exact"),
    ),
    Statement(
        "propagated_traces_are_worse_than_sliced", f"{SONG}, of {KINGMA}",
        "Not the paper's. Of a later one: approximate backpropagation and curvature propagation are worse than slices.",
        "In most runs on the same sets together, each of the two has the higher exact test score loss.",
        propagation_is_worse,
    ),
    Statement(
        "sliced_is_faster_than_exact", SONG,
        "Not the paper's. Of a later one: sliced score matching is cheaper than exact score matching.",
        "In most runs on the same sets together (2, 11, 11 and 15 coordinates), a training step along one direction "
        "takes less processor time. The figure objective_scaling goes to 400 coordinates.",
        together("sliced faster", sliced_is_faster),
    ),
)  # fmt: skip
