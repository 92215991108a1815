"""Statements on how models compare on the benchmark sets: Figure 3 and "Results on Benchmark Datasets"."""

from collections.abc import Callable
from dataclasses import replace

from scipy.stats import binom, fisher_exact, spearmanr

from dkef.report.claims.evidence import LEVEL, Evidence, Known, every
from dkef.report.claims.runs import (
    FSSD,
    LIKELIHOOD,
    LIKELY,
    LOSS,
    P_VALUE,
    BySeed,
    PaperSet,
    combined,
    derived,
    medians,
    on_all,
    on_most,
    set_of,
)
from dkef.report.claims.verdict import Statement
from dkef.results.lookup import Results
from dkef.results.names import BENCHMARK, SYNTHETIC, label_of, paper_set

OURS = "dkef"
RIVALS = (*LIKELIHOOD, "kef_g")
WINES, LARGER, LARGEST = ("redwine", "whitewine"), ("parkinsons", "hepmass", "miniboone"), ("hepmass", "miniboone")

CONFIDENT = 0.05
COMPARABLE = 1.0  # nats
RANKS_AGREE = 0.8
# Invalid runs of MADE-MOG out of 15, by Appendix E.2; a rate above RARE is called unstable.
INVALID = {"whitewine": 7, "parkinsons": 4, "miniboone": 9}
OF, RARE, STEADY = 15, 0.05, 0.01  # power is for refuting it where one run in a hundred is invalid


def best(metric: str) -> Callable[[PaperSet], Evidence]:
    """DKEF is ahead of each other model."""
    return lambda own: every(own.title, [own.ahead(metric, OURS, rival, label_of(rival)) for rival in RIVALS])


def confidence(own: PaperSet) -> BySeed:
    """By seed, the median p-value of the other models against DKEF."""
    return combined(own.each(RIVALS, P_VALUE))


def not_confident(own: PaperSet) -> Evidence:
    found = own.per_run([confidence(own)], lambda p: min(p, 1 - p) - CONFIDENT)
    return replace(found, detail=f"distance of the p-value from 0.05 or 0.95: {found.detail}")


def rank_correlations(own: PaperSet) -> BySeed:
    """Spearman's correlation of FSSD^2 and KSD^2 over at least four models, by seed."""
    both = [[own.values(model, metric) for metric in (FSSD, "ksd2")] for model in (*RIVALS, OURS, "gaussian")]
    found = {}
    for seed in own.entry.seeds:
        pairs = [(one[seed], two[seed]) for one, two in both if seed in one and seed in two]
        if len(pairs) >= 4:
            rank = spearmanr(*zip(*[(one.value, two.value) for one, two in pairs], strict=True)).statistic
            found[seed] = derived(float(rank), *(run for pair in pairs for run in pair))
    return found


def loss_on_wines(results: Results) -> Evidence:
    found = on_all(WINES, best(LOSS))(results)
    sets = [own for name in WINES if (own := set_of(results, name))]
    told = list(filter(None, [medians(own, f"{LOSS}_no_copies", [OURS, *RIVALS]) for own in sets]))
    return every(f"medians without copies of training rows: {'; '.join(told)}; all rows", [found]) if told else found


def likelihood_on_wines(own: PaperSet) -> Evidence:
    ours, usual = own.values(OURS, LIKELY), combined(own.each(LIKELIHOOD[1:], LIKELY))
    return every(
        own.title,
        [
            own.above(ours, usual, COMPARABLE, "not more than 1 nat below the others"),
            own.above(usual, ours, COMPARABLE, "not more than 1 nat above them"),
            own.ahead(LIKELY, OURS, "made", "above MADE"),
        ],
    )


def below_median_rival(own: PaperSet) -> Evidence:
    return own.above(own.median_rival(LIKELY), own.values(own.main_model, LIKELY))


def invalid_made_mog(results: Results) -> Evidence:
    """Ours against the paper's counts, over the sets that were run: a binomial and Fisher's exact test."""
    found = [own for name in INVALID if (own := set_of(results, name)) and own.entry.run_of("made_mog")]
    whole = [own for own in found if own.entry.subset_of is None]
    chosen = whole or found
    counts = [results.median(own.entry.name, str(own.entry.run_of("made_mog")), LIKELY) for own in chosen]
    ours, runs = sum(count.failed for count in counts), sum(count.runs for count in counts)
    theirs, their_runs = sum(INVALID[str(paper_set(own.entry.name))] for own in chosen), OF * len(chosen)
    if not runs:
        return Known("MADE-MOG on WhiteWine, Parkinsons, MiniBoone not run")

    def fewer(invalid: int) -> float:
        table = [[invalid, runs - invalid], [theirs, their_runs - theirs]]
        return float(fisher_exact(table, alternative="less").pvalue)

    seen = sum(binom.pmf(k, runs, STEADY) for k in range(runs + 1) if fewer(k) <= LEVEL)
    told = "; ".join(f"{own.title}: {count.failed} of {count.runs}" for own, count in zip(chosen, counts, strict=True))
    return Known(
        f"invalid runs: {told}; the paper: {theirs} of {their_runs}",
        float(binom.sf(ours - 1, runs, RARE)), fewer(ours), subset=not whole, power=float(seen),
    )  # fmt: skip


STATEMENTS = (
    Statement(
        "best_fssd", "Section 4.2, Figure 3 row 1",
        "In gradient matching as measured by the FSSD, DKEF tends to have the best values.",
        "On at least 3 of 5 sets DKEF has a lower FSSD^2 than each of six other models.",
        on_most(BENCHMARK, best(FSSD)),
    ),
    Statement(
        "small_p_values_on_large_sets", "Section 4.2, Figure 3 row 2",
        "The model comparison test confidently favors DKEF on datasets with large-enough test sets.",
        "On HepMass and on MiniBoone the median p-value of the other models against DKEF is below 0.05.",
        on_all(LARGEST, lambda own: own.per_run([confidence(own)], lambda p: CONFIDENT - p)),
    ),
    Statement(
        "no_confident_p_values_on_wine", "Section 4.2, Figure 3 row 2",
        "Test set sizes are too small to yield a confident p-value on the Wine datasets.",
        "On both the median p-value of the other models against DKEF lies between 0.05 and 0.95.",
        on_all(WINES, not_confident),
    ),
    Statement(
        "fssd_agrees_with_ksd", "Sections 3.2 and 4.2",
        "We omit the results [of KSD] as they are essentially identical to that of the FSSD.",
        "On at least 3 of 5 sets the models of a run rank alike by FSSD^2 and KSD^2: Spearman's correlation above "
        "0.8.",
        on_most(BENCHMARK, lambda own: own.per_run([rank_correlations(own)], lambda rank: rank - RANKS_AGREE)),
    ),
    Statement(
        "best_score_loss_on_wine", "Section 4.2, Figure 3 row 3",
        "In the score matching loss, DKEF is the best on Wine datasets.",
        "On both DKEF has a lower score loss than each of six other models (all test rows, as in the paper; medians "
        "without copies of training rows stand beside).",
        loss_on_wines,
    ),
    Statement(
        "best_score_loss_on_most_parkinsons_runs", "Section 4.2, Figure 3 row 3",
        "[DKEF is the best on] most runs on Parkinson.",
        "DKEF has the lowest score loss of all models of a run.",
        on_all(("parkinsons",), lambda own: own.above(combined(own.each(RIVALS, LOSS), min), own.values(OURS, LOSS))),
    ),
    Statement(
        "worse_score_loss_on_large_sets", "Section 4.2, Figure 3 row 3",
        "[DKEF's score matching loss is] worse on Hepmass and MiniBoone.",
        "On both DKEF's score loss is above the median likelihood model's.",
        on_all(LARGEST, lambda own: own.above(own.values(OURS, LOSS), own.median_rival(LOSS))),
    ),
    Statement(
        "comparable_likelihood_on_wine", "Section 4.2, Figure 3 row 4",
        "In likelihoods, DKEF is comparable to other methods except MADE on Wines.",
        "On both DKEF's likelihood is within 1 nat of the median of MADE-MOG, MAF, MAF-MOG and Real NVP (two "
        "one-sided tests), and above MADE's.",
        on_all(WINES, likelihood_on_wines),
    ),
    Statement(
        "worse_likelihood_on_larger_sets", "Section 4.2, Figure 3 row 4",
        "[In likelihoods, DKEF is] worse on the other, larger, datasets.",
        "On each of Parkinsons, HepMass and MiniBoone DKEF's likelihood is below the median likelihood model's.",
        on_all(LARGER, below_median_rival),
    ),
    Statement(
        "likelihood_models_have_higher_likelihoods", "Introduction",
        "The models fit by maximum likelihood typically give somewhat higher likelihoods, whereas the deep kernel "
        "exponential family generally better fits the shape of the distribution.",
        "On more than half of 12 sets the median likelihood model has a higher likelihood than DKEF (DKEF-G-15 on "
        "synthetic sets). The second half: fisher_below_likelihood_models and best_fssd.",
        on_most((*SYNTHETIC, *BENCHMARK), below_median_rival),
    ),
    Statement(
        "invalid_runs_of_made_mog", "Appendix E.2",
        "We found that MOG-MADE had unstable runs on some datasets; out of 15 runs on each dataset, 7 on WhiteWine, 4 "
        "on Parkinsons and 9 on MiniBoone produced invalid log likelihoods.",
        "Over those of these sets that were run whole more than 5 % of the runs are invalid (exact binomial test); it "
        "does not hold if they are fewer than the paper's (Fisher's exact test). We sum mixtures in the log domain, "
        "the authors' code did not: we expect none.",
        invalid_made_mog,
    ),
)  # fmt: skip
