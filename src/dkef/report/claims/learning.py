"""Statements on how training goes, from its traces (Figures 4 and 5), and on the kernels it leads to (Figure 2)."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dkef.core.arrays import Array
from dkef.report.claims.choices import VARIED
from dkef.report.claims.evidence import Evidence, Runs, every, most
from dkef.report.claims.runs import BySeed, PaperSet, on_all, on_sets, set_of
from dkef.report.claims.verdict import Statement
from dkef.results.lookup import Results, Run
from dkef.results.names import BENCHMARK, SYNTHETIC, TITLES

DRAWN = ("funnel", "banana", "ring", "square", "cosine", "mog")  # Figure 4
SHORTEST = 20  # a trace with fewer values says nothing on its course
STABLE, NEAR = 0.8, 0.1  # share of runs, and of the loss's fall, that make learning stable
RISE, FALL = 0.05, 0.02  # share of the loss's fall by which it must rise or fall at the end
LONGER = 1.2  # how much longer than wide a contour must be to follow the density


def losses(own: PaperSet, model: str) -> dict[int, tuple[Array, Array]]:
    """Iterations and validation losses of a model's runs, by seed, where there are enough."""
    found = {}
    for (dataset, name, seed), table in sorted(own.results.traces.items()):
        if (dataset, name) == (own.entry.name, model) and {"iteration", "validation_loss"} <= set(table.columns):
            loss = table["validation_loss"].to_numpy(dtype=float)
            seen = np.isfinite(loss)
            if seen.sum() >= SHORTEST:
                found[seed] = table["iteration"].to_numpy(dtype=float)[seen], loss[seen]
    return found


def of_traces(own: PaperSet, measure: Callable[[Array], float]) -> BySeed:
    """A number from the validation losses of each run of the paper's model."""
    return {seed: Run(measure(loss), math.nan) for seed, (_, loss) in losses(own, own.main_model).items()}


def noise_growth(loss: Array) -> float:
    """Log of the ratio of noise in the second half of a trace [n] to that in the first.

    Noise is the median size of second differences, which a smooth course leaves small.
    """
    first, second = (np.median(np.abs(np.diff(half, 2))) for half in np.array_split(loss, 2))
    return math.log(second / first) if first > 0 and second > 0 else math.nan


def smoothed(loss: Array) -> Array:
    """Medians of ten consecutive parts of a trace [n]; [10]."""
    return np.array([np.median(part) for part in np.array_split(loss, 10)])


def rise_at_the_end(loss: Array) -> float:
    """How far the smoothed loss ends above its minimum, as a share of its whole fall."""
    course = smoothed(loss)
    fall = loss[0] - course.min()
    return float((course[-1] - course.min()) / fall) if fall > 0 else math.nan


def fall_at_the_end(loss: Array) -> float:
    """How far the loss still falls in its last quarter, as a share of its whole fall."""
    before, after = (np.median(part) for part in np.array_split(loss, 4)[2:])
    fall = loss[0] - loss.min()
    return float((before - after) / fall) if fall > 0 else math.nan


def noisier(results: Results) -> Evidence:
    def on(own: PaperSet) -> Evidence:
        return own.per_run([of_traces(own, noise_growth)], lambda growth: growth)

    return every("", [*on_sets(results, ("square",), on), most("all sets", on_sets(results, SYNTHETIC, on))])


def on_common_seeds(
    results: Results, names: Sequence[str], runs: Callable[[PaperSet], Mapping[int, Any]]
) -> tuple[dict[str, list[Any]], str]:
    """What the runs of some sets have, for those seeds that all of the sets have, and which sets have no runs.

    Runs that are counted together must weigh the sets alike, or the count says most on the set that was run most.
    """
    found = {name: runs(own) if (own := set_of(results, name)) else {} for name in names}
    common = set.intersection(*(set(of_set) for of_set in found.values()))
    lacking = [f"{TITLES[name]} not run" for name, of_set in found.items() if not of_set]
    return {name: [of_set[seed] for seed in sorted(common)] for name, of_set in found.items()}, ", ".join(lacking)


def stable(results: Results) -> Evidence:
    """One count over all sets: at least four of five runs end near the median of their set."""
    label = "runs near the median of their set"
    found, lacking = on_common_seeds(results, DRAWN, lambda own: losses(own, "dkef_g15"))
    if min(map(len, found.values())) < 3:
        return Runs(label, detail=lacking or "fewer than three runs of a set")
    near = {}
    for name, runs in found.items():
        best = np.array([loss.min() for _, loss in runs])
        fall = float(np.median([loss[0] - loss.min() for _, loss in runs]))
        near[name] = int((np.abs(best - np.median(best)) <= NEAR * fall).sum())
    wins, runs_of_all = sum(near.values()), sum(map(len, found.values()))
    told = ", ".join(f"{name} {count}/{len(found[name])}" for name, count in near.items())
    return Runs(label, wins, runs_of_all - wins, runs_of_all, STABLE, detail=told)


def overfitting(own: PaperSet) -> Evidence:
    sign = 1.0 if own.title.startswith("RedWine") else -1.0
    rise = of_traces(own, rise_at_the_end)
    label = f"{own.title} {'rises' if sign > 0 else 'does not'}"
    return own.per_run([rise], lambda r: sign * (r - RISE), label)


def not_converged(own: PaperSet) -> Evidence:
    return own.per_run([of_traces(own, fall_at_the_end)], lambda fall: fall - FALL)


def skip_is_faster(own: PaperSet) -> Evidence:
    with_skip, without = losses(own, own.main_model), losses(own, f"{own.main_model}_no_skip")
    shared = {seed: (with_skip[seed], without[seed]) for seed in with_skip if seed in without}
    sooner = {seed: Run(_sooner(*pair), math.nan) for seed, pair in shared.items()}
    return own.per_run([sooner], lambda gain: gain)


def _sooner(one: tuple[Array, Array], two: tuple[Array, Array]) -> float:
    """Log of the ratio of iterations until the loss that both reach: above 0 where the first is sooner."""
    both = max(loss.min() for _, loss in (one, two))
    first, second = (iterations[np.argmax(loss <= both)] for iterations, loss in (one, two))
    return math.log(second / first)


def kernels_adapt(results: Results) -> Evidence:
    """One count over all sets: the runs whose contours follow the density at most of the places where it has mass."""
    found, lacking = on_common_seeds(results, SYNTHETIC, elongations)
    ratios = {name: [ratio for ratio in of_set if ratio is not None] for name, of_set in found.items()}
    gains = [ratio - LONGER for of_set in ratios.values() for ratio in of_set]
    medians = ", ".join(f"{name} {np.median(of_set):.2g}" for name, of_set in ratios.items() if of_set)
    detail = f"median ratios: {medians}" if medians else lacking
    return Runs("DKEF-G-15", sum(g > 0 for g in gains), sum(g < 0 for g in gains), len(gains), detail=detail)


def elongations(own: PaperSet) -> dict[int, float | None]:
    """How much longer than wide the contours of DKEF-G-15's kernel are, by seed; None on a plateau such as Square."""
    cells = {key[2]: grid.facts for key, grid in own.results.grids.items() if key[:2] == (own.entry.name, "dkef_g15")}
    return {seed: facts["kernel_elongation"] for seed, facts in cells.items() if "kernel_elongation" in facts}


STATEMENTS = (
    Statement(
        "kernels_adapt_to_local_geometry", "Section 4.1, Figure 2",
        "We can gain additional insights into the model by looking at the shape of the learned kernel, shown by the "
        "colored lines; the kernels do indeed adapt to the local geometry.",
        "Over all synthetic sets: where the truth has mass, the contour at 0.9 of DKEF-G-15's kernel is, in the "
        "median over the figure's positions, at least 1.2 times as long along the truth's level set as across it.",
        kernels_adapt,
    ),
    Statement(
        "objective_is_noisier_as_the_fit_improves", "Section 4.1, Figure 4",
        "The estimator of the objective function, J-hat, tends to be more noisy as the model fit improves. This "
        'happens particularly on datasets where there are "sharp" features, such as Square.',
        "On Square, and on more than half of 7 sets, the median second difference of the validation loss is larger in "
        "the second half of phase 1 than in the first.",
        noisier,
    ),
    Statement(
        "training_is_stable", "Appendix E.1, Figure 4",
        "To show that learning is stable, we ran the experiments on 5 random draws of training, validation and test "
        "sets from the synthetic distributions, trained KDEF initialized using 5 random seeds [...].",
        "Over the six sets of Figure 4 more than 80 % of the runs reach a lowest validation loss within a tenth of "
        "the usual fall from the median of their set (exact binomial test).",
        stable,
    ),
    Statement(
        "overfitting_only_on_redwine", "Appendix E.1, Figure 5",
        "There is no overfitting except for the small Redwine dataset.",
        "The smoothed validation loss ends above its minimum by more than 5 % of its fall on RedWine, and on no other "
        "set.",
        on_all(BENCHMARK, overfitting),
    ),
    Statement(
        "large_sets_do_not_converge", "Appendix E.1, Figure 5",
        "Runs on Hepmass and Miniboone do not seem to fully converge, despite having met the early stopping "
        "criterion.",
        "On both the validation loss falls by more than 2 % of its whole fall between the third and the last quarter.",
        on_all(("hepmass", "miniboone"), not_converged),
    ),
    Statement(
        "skip_connection_speeds_up_learning", "Section 3, Appendix E.2",
        "For L > 1, we found that adding a skip connection from data directly to the top layer speeds up learning.",
        "On RedWine and on Ring the run with skip connections reaches the loss that both reach after fewer "
        "iterations.",
        on_all(VARIED, skip_is_faster),
    ),
)  # fmt: skip
