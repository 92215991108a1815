"""Each rule on made-up tables, for all three outcomes."""

import subprocess
import sys
from pathlib import Path
from statistics import median

import pandas as pd
import pytest

from dkef.core.tables import read_table
from dkef.report.claims.catalogue import STATEMENTS, judge_all
from dkef.report.claims.order import AHEAD, BEHIND, CLOSE, ahead
from dkef.report.claims.verdict import FAILED, HELD, OPEN
from dkef.results.experiment import DatasetEntry, ExperimentInfo
from dkef.results.lookup import Results
from dkef.results.names import BENCHMARK, SYNTHETIC
from dkef.results.read import Grid
from dkef.results.tables import CLAIMS, SUMMARY
from tests.made_up import benchmark_metrics, summary_of

Values = dict[tuple[str, str, str], list[float]]
LIKELIHOOD = ("made", "made_mog", "maf", "maf_mog", "real_nvp")
RULES = {statement.name: statement for statement in STATEMENTS}
NOT_A_NUMBER = float("nan")


def evidence(
    values: Values,
    masses: dict[tuple[str, str, str], list[float]] | None = None,
    stderr: float = 0.01,
    reduced: str | None = None,
    subsets: tuple[str, ...] = (),
) -> Results:
    """Tables with one row for each value of each (dataset, model, metric); NaN is an invalid run."""
    rows = [
        {"dataset": d, "model": m, "seed": seed, "metric": metric, "value": value, "stderr": stderr,
         "status": "ok" if value == value else "invalid: made up"}
        for (d, m, metric), numbers in values.items() for seed, value in enumerate(numbers)
    ]  # fmt: skip
    metrics = pd.DataFrame(rows, columns=["dataset", "model", "seed", "metric", "value", "stderr", "status"])
    grids: dict[tuple[str, str, int], dict] = {}
    for (d, m, region), shares in (masses or {}).items():
        for seed, share in enumerate(shares):
            facts = grids.setdefault((d, m, seed), {"masses": {}, "true_masses": {"between_modes": 3e-5}})
            facts["masses"][region] = share
    cells = [key[:2] for key in (*values, *(masses or {}))]
    entries = tuple(
        DatasetEntry(
            d, d, tuple(dict.fromkeys(m for name, m in cells if name == d)), (0, 1, 2), d in SYNTHETIC,
            "the whole" if d in subsets else None,
        )
        for d in dict.fromkeys(d for d, _ in cells)
    )  # fmt: skip
    tables = {"metrics": metrics, "summary": plain_summary(values)}
    tables["grids"] = {key: Grid({}, facts) for key, facts in grids.items()}
    return Results(ExperimentInfo("made_up", "", entries, reduced), tables)


def plain_summary(values: Values) -> pd.DataFrame:
    """The columns of summary.csv that rules read, without the summarise stage's intervals."""
    rows = []
    for (d, m, metric), numbers in values.items():
        good = [value for value in numbers if value == value]
        rows.append({
            "dataset": d, "model": m, "metric": metric, "median": median(good) if good else NOT_A_NUMBER,
            "runs": len(numbers), "runs_ok": len(good), "runs_untrusted": 0, "runs_diverged": 0,
            "runs_invalid": len(numbers) - len(good), "runs_undefined": 0,
        })  # fmt: skip
    return pd.DataFrame(rows, columns=list(SUMMARY.columns))


def around(level: float) -> list[float]:
    return [level, level + 0.001, level - 0.001]


def levels(metric: str, by_model: dict[str, float], sets: tuple[str, ...]) -> Values:
    """Three seeds near a level for each model, the same on every set."""
    return {(d, m, metric): around(level) for d in sets for m, level in by_model.items()}


def likely(by_model: dict[str, float], sets: tuple[str, ...]) -> Values:
    return levels("log_likelihood", by_model, sets)


def fisher(by_model: dict[str, float], sets: tuple[str, ...] = SYNTHETIC) -> Values:
    return levels("fisher_divergence", by_model, sets)


def mixed(metric: str, first: str, second: str, sets: tuple[str, ...]) -> Values:
    """Two models that take turns at being better, seed by seed."""
    return {(d, m, metric): numbers for d in sets for m, numbers in ((first, [1, 2, 1, 2.0]), (second, [2, 1, 2, 1.0]))}


ALL = dict.fromkeys(LIKELIHOOD, 0.5)
WINES, LARGER, LARGEST = BENCHMARK[:2], BENCHMARK[2:], BENCHMARK[3:]
FLOWS = {"maf": -3.5, "maf_mog": -3.6, "real_nvp": -3.7}
TRUE = {(d, "maf", "true_log_likelihood"): around(-3.45) for d in ("funnel", "banana")}
MOR_TRUE = {("mor", "mixture_dkef_g15", "true_log_likelihood"): around(-3.8)}
MIXED_FISHER = mixed("fisher_divergence", "dkef_g15", "maf", SYNTHETIC)
BOUND = "log_likelihood_bias_bound"


def scales(deep: float, plain: float) -> Values:
    return levels("fisher_divergence", {"dkef_scales": deep, "kef_g_scales": plain}, ("gaussian_scales",)) | likely(
        {"dkef_scales": -deep, "kef_g_scales": -plain}, ("gaussian_scales",)
    )


def p_values(level: float, sets: tuple[str, ...]) -> Values:
    return levels("fssd_p_value", dict.fromkeys(LIKELIHOOD, level), sets)


def stein(fssd: list[float], ksd: list[float]) -> Values:
    return {
        (d, m, metric): around(level)
        for d in WINES
        for metric, numbers in (("fssd2", fssd), ("ksd2", ksd))
        for m, level in zip(LIKELIHOOD, numbers, strict=True)
    }


def bounds(trained: float, fixed: float, sets: tuple[str, ...]) -> Values:
    return levels(BOUND, {"dkef": trained, "dkef_fixed_q0": fixed}, sets)


def noise(metric: str, without: float, with_noise: float) -> Values:
    return levels(metric, {"dkef_no_noise": without, "dkef": with_noise}, WINES)


def made_mog(invalid: int, runs: int = 5) -> Values:
    numbers = [NOT_A_NUMBER] * invalid + [-13.0] * (runs - invalid)
    return {(d, "made_mog", "log_likelihood"): numbers for d in ("whitewine", "parkinsons", "miniboone")}


FOUR = SYNTHETIC[:4]
CASES: dict[str, tuple[Results, Results, Results]] = {  # held, did not hold, not decidable
    "learned_kernel_fits_better": (evidence(scales(0.4, 0.6)), evidence(scales(0.6, 0.4)), evidence(fisher(ALL))),
    "lowest_fisher_divergence": (
        evidence(fisher(ALL | {"dkef_g15": 0.1})),
        evidence(fisher(ALL | {"dkef_g15": 0.9})),
        evidence(fisher(ALL | {"dkef_g15": 0.1}, SYNTHETIC[:3])),
    ),
    "ahead_of_gaussian_kernels": (
        evidence(fisher({"dkef_g15": 0.1, "kef_g": 0.2, "kcef": 0.3})),
        evidence(fisher({"dkef_g15": 0.25, "kef_g": 0.2, "kcef": 0.3})),
        evidence(mixed("fisher_divergence", "dkef_g15", "kef_g", SYNTHETIC)),
    ),
    "wider_network_adds_little": (
        evidence(fisher({"dkef_g15": 0.1, "dkef_g50": 0.09})),
        evidence(fisher({"dkef_g15": 0.1, "dkef_g50": 0.05})),
        evidence(fisher({"dkef_g15": 0.1})),
    ),
    "linear_kernels_fall_behind": (
        evidence(fisher({"dkef_g15": 0.1, "dkef_l50": 0.2, "dkef_l50_1": 0.3})),
        evidence(fisher({"dkef_g15": 0.4, "dkef_l50": 0.2, "dkef_l50_1": 0.3})),
        evidence(mixed("fisher_divergence", "dkef_g15", "dkef_l50", SYNTHETIC)),
    ),
    "fisher_below_likelihood_models": (
        evidence(fisher(ALL | {"dkef_g15": 0.1})),
        evidence(fisher(ALL | {"dkef_g15": 0.9})),
        evidence(fisher({"maf": 0.5, "dkef_g15": 0.1})),
    ),
    "flows_do_well_on_simple_sets": (
        evidence(likely(FLOWS, SYNTHETIC) | TRUE),
        evidence(likely({m: v - 1 for m, v in FLOWS.items()}, SYNTHETIC) | TRUE),
        evidence(likely(FLOWS, SYNTHETIC)),
    ),
    "cleaner_shapes": tuple(
        evidence({}, {(d, m, "outside_truth"): [share] for d in sets for m, share in
                      (dict.fromkeys(LIKELIHOOD, 0.02) | {"dkef_g15": ours}).items()})
        for ours, sets in ((0.01, SYNTHETIC), (0.03, SYNTHETIC), (0.01, ("ring",)))
    ),
    "likelihood_models_bridge_modes": tuple(
        evidence({}, {("mog", m, "between_modes"): [share] for m in models})
        for share, models in ((0.01, LIKELIHOOD), (1e-4, LIKELIHOOD), (0.01, ("maf",)))
    ),
    "mode_weights_are_unstable": tuple(
        evidence({}, {("mog", "dkef_g15", "first_mode"): shares})
        for shares in ([0.2, 0.5, 0.8], [0.49, 0.5, 0.51], [0.2, 0.8])
    ),
    "mixture_of_dkef_fits_mor": tuple(
        evidence(fisher({"mixture_dkef_g15": ours, "mixture_maf": 0.5}, ("mor",)) | truth
                 | likely({"mixture_dkef_g15": -3.9}, ("mor",)))
        for ours, truth in ((0.1, MOR_TRUE), (0.9, MOR_TRUE), (0.1, {}))
    ),
    "clusters_help_dkef": (
        evidence(fisher({"mixture_dkef_g15": 0.1, "dkef_g15": 0.5}, ("mor",))),
        evidence(fisher({"mixture_dkef_g15": 0.5, "dkef_g15": 0.1}, ("mor",))),
        evidence(mixed("fisher_divergence", "mixture_dkef_g15", "dkef_g15", ("mor",))),
    ),
    "best_fssd": (
        evidence(levels("fssd2", ALL | {"dkef": 0.1}, BENCHMARK)),
        evidence(levels("fssd2", ALL | {"dkef": 0.9}, BENCHMARK)),
        evidence(levels("fssd2", ALL | {"dkef": 0.1}, WINES)),
    ),
    "small_p_values_on_large_sets": (
        evidence(p_values(0.01, LARGEST)),
        evidence(p_values(0.3, LARGEST)),
        evidence(p_values(0.01, LARGEST), subsets=LARGEST),
    ),
    "no_confident_p_values_on_wine": (
        evidence(p_values(0.3, WINES)),
        evidence(p_values(0.01, WINES)),
        evidence(p_values(0.3, WINES[:1])),
    ),
    "fssd_agrees_with_ksd": (
        evidence(stein([1, 2, 3, 4, 5], [1, 2, 3, 5, 4])),
        evidence(stein([1, 2, 3, 4, 5], [5, 2, 3, 4, 1])),
        evidence(levels("fssd2", ALL, WINES)),
    ),
    "best_score_loss_on_wine": (
        evidence(levels("score_loss", ALL | {"dkef": -40}, WINES)),
        evidence(levels("score_loss", ALL | {"maf": -50, "dkef": -40}, WINES)),
        evidence(levels("score_loss", ALL | {"dkef": -40}, WINES[:1])),
    ),
    "best_score_loss_on_most_parkinsons_runs": (
        evidence(levels("score_loss", ALL | {"dkef": -40}, ("parkinsons",))),
        evidence(levels("score_loss", ALL | {"maf": -50, "dkef": -40}, ("parkinsons",))),
        evidence({(d, m, n): v[:2] for (d, m, n), v in levels("score_loss", ALL | {"dkef": 0}, LARGER).items()}),
    ),
    "worse_score_loss_on_large_sets": (
        evidence(levels("score_loss", ALL | {"dkef": 40}, LARGEST)),
        evidence(levels("score_loss", ALL | {"dkef": -40}, LARGEST)),
        evidence(levels("score_loss", ALL | {"dkef": 40}, WINES)),
    ),
    "comparable_likelihood_on_wine": (
        evidence(likely({"made": -14, "maf": -12, "maf_mog": -12.2, "dkef": -12.5}, WINES)),
        evidence(likely({"made": -14, "maf": -12, "maf_mog": -12.2, "dkef": -13.5}, WINES)),
        evidence(likely({"maf": -12, "maf_mog": -12.2, "dkef": -12.5}, WINES)),
    ),
    "worse_likelihood_on_larger_sets": (
        evidence(likely(dict.fromkeys(LIKELIHOOD, -20.0) | {"dkef": -25}, LARGER)),
        evidence(likely(dict.fromkeys(LIKELIHOOD, -20.0) | {"dkef": -15}, LARGER)),
        evidence(likely(dict.fromkeys(LIKELIHOOD, -20.0) | {"dkef": -25}, LARGEST)),
    ),
    "bias_bound_is_small": (
        evidence(bounds(0.01, 0.01, BENCHMARK)),
        evidence(bounds(1.0, 0.01, BENCHMARK)),
        evidence(bounds(0.01, 0.01, WINES)),
    ),
    "bias_bound_smaller_with_fixed_q0": (
        evidence(bounds(1.0, 0.1, BENCHMARK)),
        evidence(bounds(0.1, 0.09, BENCHMARK)),
        evidence(bounds(1.0, 0.1, WINES)),
    ),
    "fixed_q0_gives_similar_results": (
        evidence(likely({"dkef": -12, "dkef_fixed_q0": -12.2}, BENCHMARK)),
        evidence(likely({"dkef": -12, "dkef_fixed_q0": -14}, BENCHMARK)),
        evidence(likely({"dkef": -12}, BENCHMARK)),
    ),
    "no_noise_improves_score_loss": (
        evidence(noise("score_loss", -50, -40)),
        evidence(noise("score_loss", -40, -50)),
        evidence(mixed("score_loss", "dkef_no_noise", "dkef", WINES)),
    ),
    "no_noise_harms_likelihood": (
        evidence(noise("log_likelihood", -13, -12)),
        evidence(noise("log_likelihood", -12, -13)),
        evidence(mixed("log_likelihood", "dkef_no_noise", "dkef", WINES)),
    ),
    "no_noise_leaves_fssd_alike": (
        evidence(mixed("fssd2", "dkef_no_noise", "dkef", WINES)),
        evidence(noise("fssd2", 0.1, 0.2)),
        evidence(levels("fssd2", {"dkef": 0.1}, WINES)),
    ),
    "invalid_runs_of_made_mog": (evidence(made_mog(2)), evidence(made_mog(0)), evidence(made_mog(0, runs=3))),
}  # fmt: skip


def test_every_statement_has_a_case_for_each_outcome() -> None:
    assert CASES.keys() == RULES.keys()


@pytest.mark.parametrize(("position", "expected"), list(enumerate((HELD, FAILED, OPEN))))
@pytest.mark.parametrize("name", RULES)
def test_a_rule_reaches_each_verdict(name: str, position: int, expected: str) -> None:
    found = RULES[name].check(CASES[name][position])
    assert found.verdict == expected, found
    assert bool(found.reason) == (expected == OPEN)


@pytest.mark.parametrize("name", RULES)
def test_a_decided_verdict_shows_its_numbers(name: str) -> None:
    for case in CASES[name][:2]:
        assert any(character.isdigit() for character in RULES[name].check(case).numbers)


def test_a_reduced_run_decides_nothing_but_shows_its_tendency() -> None:
    full = CASES["best_fssd"][0]
    reduced = evidence(levels("fssd2", ALL | {"dkef": 0.1}, BENCHMARK), reduced="2 minutes a model")
    assert RULES["best_fssd"].check(full).verdict == HELD
    found = RULES["best_fssd"].check(reduced)
    assert (found.verdict, found.tendency) == (OPEN, HELD)
    assert "2 minutes a model" in found.reason


def test_an_empty_experiment_decides_nothing() -> None:
    rows = judge_all(evidence(levels("score_loss", {"gaussian": -1.0}, ("mine",))))
    assert {row["verdict"] for row in rows} == {OPEN}
    assert all(row["reason"] for row in rows)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ([1.0, 1.0, 1.0, 1.0], [2.0, 2.0, 2.0, 0.5], AHEAD),  # three of four seeds
        ([1.0, 1.0, 1.0, 1.0], [2.0, 2.0, 0.5, 0.5], CLOSE),  # two of four
        ([2.0, 2.0, 2.0], [1.0, 1.0, 1.0], BEHIND),
        ([1.0], [1.02], CLOSE),  # within 2 sqrt(2) 0.01 = 0.028
        ([1.0], [1.03], AHEAD),  # beyond it
        ([1.0, NOT_A_NUMBER], [NOT_A_NUMBER, 1.0], None),  # no seed in common
    ],
)
def test_two_models_are_compared_seed_by_seed(first: list[float], second: list[float], expected: int | None) -> None:
    tables = evidence({("ring", "a", "fisher_divergence"): first, ("ring", "b", "fisher_divergence"): second})
    assert ahead(tables, "ring", "fisher_divergence", "a", "b") == expected
    back = ahead(tables, "ring", "fisher_divergence", "b", "a")
    assert back == (None if expected is None else -expected)


def test_the_command_writes_one_row_a_statement(tmp_path: Path) -> None:
    metrics = benchmark_metrics(("redwine", "whitewine"), 3)
    metrics.to_csv(tmp_path / "metrics.csv", index=False)
    summary_of(metrics).to_csv(tmp_path / "summary.csv", index=False)
    config = (
        '{"experiment":"made_up","title":"","datasets":['
        '{"name":"redwine","models":["dkef","maf"],"seeds":[0,1,2],"synthetic":false,"subset_of":null,"title":"R"}]}'
    )
    command = [sys.executable, "-m", "dkef", "claims", "--config", config, "--out", str(tmp_path / "claims.csv")]
    for name in ("metrics", "summary"):
        command += ["--table", name, str(tmp_path / f"{name}.csv")]
    subprocess.run(command, check=True, capture_output=True)
    table = read_table(tmp_path / "claims.csv", CLAIMS.columns)
    assert list(table["claim"]) == list(RULES)
    assert set(table["verdict"]) <= {HELD, FAILED, OPEN}
