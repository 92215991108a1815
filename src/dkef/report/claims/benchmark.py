"""Statements on how models compare on the benchmark sets: Figure 3 and "Results on Benchmark Datasets"."""

from dataclasses import replace

from scipy.stats import binom, fisher_exact, spearmanr

from dkef.report.claims.evidence import LEVEL, Evidence, Known, Runs, all_sets, every, most
from dkef.report.claims.runs import (
    FSSD,
    LIKELIHOOD,
    LIKELY,
    LOSS,
    P_VALUE,
    BySeed,
    ahead,
    derived,
    median_of,
    median_rival,
    medians,
    on_sets,
    per_run,
    set_of,
    title,
    values,
)
from dkef.report.claims.verdict import Statement
from dkef.results.experiment import DatasetEntry
from dkef.results.lookup import Results
from dkef.results.names import BENCHMARK, SYNTHETIC, paper_set

OURS = "dkef"
RIVALS = (*LIKELIHOOD, "kef_g")
WINES, LARGER, LARGEST = ("redwine", "whitewine"), ("parkinsons", "hepmass", "miniboone"), ("hepmass", "miniboone")

CONFIDENT = 0.05
COMPARABLE = 1.0  # nats
RANKS_AGREE = 0.8
# Invalid runs of MADE-MOG out of 15, by Appendix E.2; a rate above RARE is called unstable.
INVALID = {"whitewine": 7, "parkinsons": 4, "miniboone": 9}
OF, RARE, STEADY = 15, 0.05, 0.01  # power is for refuting it where one run in a hundred is invalid


def _best(results: Results, entry: DatasetEntry, metric: str) -> Evidence:
    return every(title(entry), [ahead(results, entry, metric, OURS, rival) for rival in RIVALS])


def best_fssd(results: Results) -> Evidence:
    return most("", on_sets(results, BENCHMARK, lambda entry: _best(results, entry, FSSD)))


def _confidence(results: Results, entry: DatasetEntry) -> BySeed:
    """By seed, the median p-value of the other models against DKEF."""
    return median_of([values(results, entry, model, P_VALUE) for model in RIVALS])


def confident_on_large_sets(results: Results) -> Evidence:
    def on(entry: DatasetEntry) -> Evidence:
        return per_run(title(entry), entry, [_confidence(results, entry)], lambda p: CONFIDENT - p)

    return all_sets(on_sets(results, LARGEST, on))


def not_confident_on_wines(results: Results) -> Evidence:
    def on(entry: DatasetEntry) -> Evidence:
        found = per_run(title(entry), entry, [_confidence(results, entry)], lambda p: min(p, 1 - p) - CONFIDENT)
        return replace(found, detail=f"distance of the p-value from 0.05 or 0.95: {found.detail}")

    return all_sets(on_sets(results, WINES, on))


def fssd_agrees_with_ksd(results: Results) -> Evidence:
    def on(entry: DatasetEntry) -> Evidence:
        return per_run(title(entry), entry, [_rank_correlations(results, entry)], lambda rank: rank - RANKS_AGREE)

    return most("", on_sets(results, BENCHMARK, on))


def _rank_correlations(results: Results, entry: DatasetEntry) -> BySeed:
    """Spearman's correlation of FSSD^2 and KSD^2 over at least four models, by seed."""
    models = [*LIKELIHOOD, "kef_g", OURS, "gaussian"]
    both = [[values(results, entry, model, metric) for metric in (FSSD, "ksd2")] for model in models]
    found = {}
    for seed in entry.seeds:
        pairs = [(one[seed], two[seed]) for one, two in both if seed in one and seed in two]
        if len(pairs) >= 4:
            rank = spearmanr(*zip(*[(one.value, two.value) for one, two in pairs], strict=True)).statistic
            found[seed] = derived(float(rank), *(run for pair in pairs for run in pair))
    return found


def loss_on_wines(results: Results) -> Evidence:
    without = [set_of(results, name) for name in WINES]
    told = [medians(results, e, f"{LOSS}_no_copies", [OURS, *RIVALS]) for e in without if e is not None]
    found = all_sets(on_sets(results, WINES, lambda entry: _best(results, entry, LOSS)))
    told = [text for text in told if text]
    return every(f"medians without copies of training rows: {'; '.join(told)}; all rows", [found]) if told else found


def loss_on_parkinsons(results: Results) -> Evidence:
    def on(entry: DatasetEntry) -> Evidence:
        ours, others = values(results, entry, OURS, LOSS), [values(results, entry, m, LOSS) for m in RIVALS]
        runs = {seed: [other[seed] for other in others if seed in other] for seed in ours}
        lowest = {s: derived(min(r.value for r in found), *found) for s, found in runs.items() if len(found) >= 3}
        return per_run(title(entry), entry, [ours, lowest], lambda own, best: best - own)

    return all_sets(on_sets(results, ("parkinsons",), on))


def loss_on_large_sets(results: Results) -> Evidence:
    def on(entry: DatasetEntry) -> Evidence:
        pair = [values(results, entry, OURS, LOSS), median_rival(results, entry, LOSS)]
        return per_run(title(entry), entry, pair, lambda own, other: own - other)

    return all_sets(on_sets(results, LARGEST, on))


def likelihood_on_wines(results: Results) -> Evidence:
    def on(entry: DatasetEntry) -> Evidence:
        usual = median_of([values(results, entry, model, LIKELY) for model in LIKELIHOOD[1:]])
        pair = [values(results, entry, OURS, LIKELY), usual]
        return every(
            title(entry),
            [
                per_run(
                    "not more than 1 nat below the others", entry, pair, lambda own, other: own - other + COMPARABLE
                ),
                per_run("not more than 1 nat above them", entry, pair, lambda own, other: other - own + COMPARABLE),
                ahead(results, entry, LIKELY, OURS, "made", "above MADE"),
            ],
        )

    return all_sets(on_sets(results, WINES, on))


def _below_median_rival(results: Results, entry: DatasetEntry, ours: str) -> Runs:
    pair = [median_rival(results, entry, LIKELY), values(results, entry, ours, LIKELY)]
    return per_run(title(entry), entry, pair, lambda other, own: other - own)


def likelihood_on_larger_sets(results: Results) -> Evidence:
    return all_sets(on_sets(results, LARGER, lambda entry: _below_median_rival(results, entry, OURS)))


def likelihoods_of_likelihood_models(results: Results) -> Evidence:
    synthetic = on_sets(results, SYNTHETIC, lambda entry: _below_median_rival(results, entry, "dkef_g15"))
    return most("", [*synthetic, *on_sets(results, BENCHMARK, lambda e: _below_median_rival(results, e, OURS))])


def invalid_made_mog(results: Results) -> Evidence:
    """Ours against the paper's counts, over the sets that were run: a binomial and Fisher's exact test."""
    entries = [e for name in INVALID if (e := set_of(results, name)) is not None and e.run_of(["made_mog"])]
    whole = [entry for entry in entries if entry.subset_of is None]
    chosen = whole or entries
    counts = [results.median(entry.name, entry.run_of(["made_mog"])[0], LIKELY) for entry in chosen]
    ours, runs = sum(count.failed for count in counts), sum(count.runs for count in counts)
    theirs, their_runs = sum(INVALID[str(paper_set(entry.name))] for entry in chosen), OF * len(chosen)
    if not runs:
        return Known("MADE-MOG on WhiteWine, Parkinsons, MiniBoone not run")

    def fewer(invalid: int) -> float:
        table = [[invalid, runs - invalid], [theirs, their_runs - theirs]]
        return float(fisher_exact(table, alternative="less").pvalue)

    seen = sum(binom.pmf(k, runs, STEADY) for k in range(runs + 1) if fewer(k) <= LEVEL)
    told = "; ".join(f"{title(e)}: {count.failed} of {count.runs}" for e, count in zip(chosen, counts, strict=True))
    return Known(
        f"invalid runs: {told}; the paper: {theirs} of {their_runs}",
        float(binom.sf(ours - 1, runs, RARE)), fewer(ours), subset=not whole, power=float(seen),
    )  # fmt: skip


STATEMENTS = (
    Statement(
        "best_fssd", "Section 4.2, Figure 3 row 1",
        "In gradient matching as measured by the FSSD, DKEF tends to have the best values.",
        "On at least 3 of 5 sets DKEF has a lower FSSD^2 than each of six other models.",
        best_fssd,
    ),
    Statement(
        "small_p_values_on_large_sets", "Section 4.2, Figure 3 row 2",
        "The model comparison test confidently favors DKEF on datasets with large-enough test sets.",
        "On HepMass and on MiniBoone the median p-value of the other models against DKEF is below 0.05.",
        confident_on_large_sets,
    ),
    Statement(
        "no_confident_p_values_on_wine", "Section 4.2, Figure 3 row 2",
        "Test set sizes are too small to yield a confident p-value on the Wine datasets.",
        "On both the median p-value of the other models against DKEF lies between 0.05 and 0.95.",
        not_confident_on_wines,
    ),
    Statement(
        "fssd_agrees_with_ksd", "Sections 3.2 and 4.2",
        "We omit the results [of KSD] as they are essentially identical to that of the FSSD.",
        "On at least 3 of 5 sets the models of a run rank alike by FSSD^2 and KSD^2: Spearman's correlation above "
        "0.8.",
        fssd_agrees_with_ksd,
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
        loss_on_parkinsons,
    ),
    Statement(
        "worse_score_loss_on_large_sets", "Section 4.2, Figure 3 row 3",
        "[DKEF's score matching loss is] worse on Hepmass and MiniBoone.",
        "On both DKEF's score loss is above the median likelihood model's.",
        loss_on_large_sets,
    ),
    Statement(
        "comparable_likelihood_on_wine", "Section 4.2, Figure 3 row 4",
        "In likelihoods, DKEF is comparable to other methods except MADE on Wines.",
        "On both DKEF's likelihood is within 1 nat of the median of MADE-MOG, MAF, MAF-MOG and Real NVP (two "
        "one-sided tests), and above MADE's.",
        likelihood_on_wines,
    ),
    Statement(
        "worse_likelihood_on_larger_sets", "Section 4.2, Figure 3 row 4",
        "[In likelihoods, DKEF is] worse on the other, larger, datasets.",
        "On each of Parkinsons, HepMass and MiniBoone DKEF's likelihood is below the median likelihood model's.",
        likelihood_on_larger_sets,
    ),
    Statement(
        "likelihood_models_have_higher_likelihoods", "Introduction",
        "The models fit by maximum likelihood typically give somewhat higher likelihoods, whereas the deep kernel "
        "exponential family generally better fits the shape of the distribution.",
        "On more than half of 12 sets the median likelihood model has a higher likelihood than DKEF (DKEF-G-15 on "
        "synthetic sets). The second half: fisher_below_likelihood_models and best_fssd.",
        likelihoods_of_likelihood_models,
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
