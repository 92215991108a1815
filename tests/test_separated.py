"""Witnesses: differences of the kernel, Gaussian integrals, the algebra of Proposition 4."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dkef.core.errors import ConfigError
from dkef.core.streams import rng_for
from dkef.metrics.separated import (
    CORRECTED,
    PRINTED,
    Separated,
    fit_alpha,
    measure,
    predicted_limit,
    predicted_log_ratio,
    score_matching_statistics,
    verdict,
)
from dkef.report.figures.drawing import draw
from dkef.results.experiment import ExperimentInfo
from dkef.results.lookup import Results

INFO = ExperimentInfo("mixtures", "", ())
SMALL = Separated(rows=2000, shares=[0.3, 0.5, 0.8], lambdas=[1e-4, 1e-3, 1e-2], seeds=1, inducing=[1, 4])


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return measure(SMALL)


def test_statistics_of_the_fit_equal_loops_over_kernel_differences() -> None:
    rng = rng_for("test", "separated", "loops")
    x, z, sigma, base_std, h = rng.normal(size=(6, 2)), rng.normal(size=(3, 2)), 1.3, 2.0, 1e-4
    G, b = score_matching_statistics(x, z, sigma, base_std)

    def k(point: np.ndarray, m: int) -> float:
        return math.exp(-float(((point - z[m]) ** 2).sum()) / (2 * sigma**2))

    first, second = np.zeros((6, 3, 2)), np.zeros((6, 3, 2))
    for n in range(6):
        for m in range(3):
            for d in range(2):
                e = h * np.eye(2)[d]
                first[n, m, d] = (k(x[n] + e, m) - k(x[n] - e, m)) / (2 * h)
                second[n, m, d] = (k(x[n] + e, m) - 2 * k(x[n], m) + k(x[n] - e, m)) / h**2
    # central differences: truncation ~ h^2, rounding of the second ~ 1e-16 / h^2
    np.testing.assert_allclose(G, sum(first[n] @ first[n].T for n in range(6)) / 6, atol=1e-7)
    expected = (second + -x[:, None] / base_std**2 * first).sum(axis=2).mean(axis=0)
    np.testing.assert_allclose(b, expected, atol=1e-6)


def test_the_corrected_formula_is_the_difference_of_the_two_single_fits_and_the_printed_one_a_quarter_of_it() -> None:
    pi, lam, sigma, d = 0.8, 3e-4, 10.0, 2
    single = [(sigma**2 - 1) / (1 + lam * sigma**4 / (share * d)) for share in (pi, 1 - pi)]
    args = (np.array(pi), np.array(lam), sigma, d)
    assert predicted_log_ratio(*args, CORRECTED) == pytest.approx(single[0] - single[1], rel=1e-12)
    assert 4 * predicted_log_ratio(*args, PRINTED) == pytest.approx(single[0] - single[1], rel=1e-12)


def test_the_limit_is_reached_for_large_lambda() -> None:
    args = (np.array(0.7), np.array(10.0), 10.0, 2)
    # c = 5e4: what is left out is of relative size 1 / c, and sigma^2 - 1 stands for sigma^2
    assert predicted_log_ratio(*args, CORRECTED) == pytest.approx(float(predicted_limit(*args, CORRECTED)), rel=0.011)


def test_a_joint_fit_of_separated_components_equals_fits_apart_with_lambda_over_pi(table: pd.DataFrame) -> None:
    # Proposition 4; across |r| = 8 sigma the kernel is exp(-32) and its derivatives as small
    gap = (table["log_ratio"] - table["log_ratio_apart"]).abs()
    assert gap.max() < 1e-8
    assert table["log_ratio"].abs().max() > 10  # or the comparison shows nothing


def test_one_component_alone_gives_alpha_of_its_gaussian_integrals() -> None:
    rng, sigma, d, lam = rng_for("test", "separated", "integrals"), 10.0, 2, 1e-3
    x = rng.normal(size=(200_000, d))
    alpha = fit_alpha(*score_matching_statistics(x, np.zeros((1, d)), sigma, 1e4), lam)[0]
    # E over N(0, I): of k^j is s_j^(d/2), of |x|^2 k^j is d s_j^(d/2 + 1), with s_j = 1 / (1 + j / sigma^2)
    s1, s2 = 1 / (1 + 1 / sigma**2), 1 / (1 + 2 / sigma**2)
    G = d * s2 ** (d / 2 + 1) / sigma**4
    b = d * s1 ** (d / 2 + 1) / sigma**4 - d / sigma**2 * s1 ** (d / 2)
    # 200,000 draws: the mean of |x|^2 has a relative standard error of 0.0022, alpha's is smaller
    assert alpha == pytest.approx(-b / (G + lam), rel=5e-3)


def test_the_fits_follow_the_corrected_formula_and_not_the_printed_one(table: pd.DataFrame) -> None:
    judged = verdict(table)
    assert judged["follows"] == "corrected"
    assert float(judged["relative_error_corrected"]) < 0.1
    assert float(judged["relative_error_printed"]) > 0.5


def test_an_even_mixture_is_weighed_evenly_and_others_are_not(table: pd.DataFrame) -> None:
    strong = table[(table["inducing"] == 1) & (table["lambda"] == 1e-3)].set_index("pi")
    assert abs(strong.loc[0.5, "log_ratio"]) < 1
    assert strong.loc[0.8, "log_ratio"] > 5 * strong.loc[0.8, "truth"]


def test_the_figure_shows_three_panels_with_every_fit_of_the_chosen_series(table: pd.DataFrame) -> None:
    figure = draw("mixtures", Results(INFO, {"separated": table, "separated_verdict": {"sentence": "title"}}))
    assert figure.get_suptitle() == "title"
    assert len(figure.axes) == 3
    points = [line for line in figure.axes[2].lines if line.get_marker() == "o"]
    assert sum(len(line.get_xdata()) for line in points) == 3 * 3  # three lambdas, three shares, one seed


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"shares": [0.5, 0.0]}, r"shares\[1\] is 0\.0; allowed is between 0 and 1"),
        ({"shares": []}, r"shares is \[\]; allowed is a list of at least 1"),
        ({"lambdas": []}, r"lambdas is \[\]; allowed is a list of at least 1"),
        ({"rows": 0}, "rows is 0; allowed is >= 1"),
    ],
)
def test_settings_without_a_fit_are_refused(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        Separated(**settings)


def test_the_stage_writes_table_verdict_and_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import dkef.stages.render as figure
    import dkef.stages.separated as stage

    config = '{"rows": 200, "seeds": 1, "shares": [0.3, 0.7], "lambdas": [0.001], "inducing": [1]}'
    table, judged, picture = (str(tmp_path / name) for name in ("table.csv", "verdict.json", "mixtures.png"))
    monkeypatch.setattr("sys.argv", ["separated", "--config", config, "--out", table, "--verdict", judged])
    stage.main()
    info = '{"experiment": "mixtures", "title": "Separated", "datasets": []}'
    files = ["--table", "separated", table, "--table", "separated_verdict", judged]
    monkeypatch.setattr("sys.argv", ["render", "--figure", "mixtures", "--config", info, *files, "--out", picture])
    figure.main()
    assert len(pd.read_csv(table)) == 2
    assert Path(picture).stat().st_size > 10_000
