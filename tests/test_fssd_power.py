"""What FSSD can see of two modes: scores and means against quadrature and samples, the test against theory."""

import csv

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from dkef.core.errors import ConfigError
from dkef.metrics.fssd_power import FssdPower, measure
from dkef.metrics.stein import fssd
from dkef.stages.fssd_power import main

STUDY = FssdPower()


def density(x: float) -> float:
    return float(norm.pdf(x, -STUDY.mode, STUDY.width) + norm.pdf(x, STUDY.mode, STUDY.width)) / 2


def test_the_rival_has_the_same_first_two_moments():
    assert quad(lambda x: x * density(x), -9, 9)[0] == pytest.approx(0, abs=1e-9)
    assert quad(lambda x: x**2 * density(x), -9, 9)[0] == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("x", [-1.7, -0.3, 0.0, 0.8])
def test_the_true_score_is_the_slope_of_the_log_density(x):
    slope = (np.log(density(x + 1e-5)) - np.log(density(x - 1e-5))) / 2e-5
    assert STUDY.true_score(np.array(x)) == pytest.approx(slope, abs=1e-6)


@pytest.mark.parametrize("bandwidth", [0.3, 1.4])
def test_the_exact_value_is_that_of_adaptive_quadrature(bandwidth):
    """By the definition of a Stein feature, with the kernel's derivative, not by the difference of two scores."""

    def feature(x: float, v: float) -> float:
        kernel = np.exp(-0.5 * ((x - v) / bandwidth) ** 2)
        return float(density(x) * kernel * (-x - (x - v) / bandwidth**2))

    locations = np.array([[-1.2], [0.1], [0.7]])
    means = [quad(feature, -9, 9, args=(v,), points=[v], limit=200)[0] for v in locations[:, 0]]
    assert STUDY.population(locations, bandwidth) == pytest.approx(np.mean(np.square(means)), rel=1e-8)


@pytest.mark.parametrize("d", [2, 5])
def test_estimates_are_around_the_exact_value(d):
    """Locations apart from the rows: the estimate is then unbiased."""
    rng = np.random.default_rng(d)
    locations = STUDY.draw(20, d, rng)
    x = STUDY.draw(100_000, d, rng)
    found = fssd(x, -x, locations, 0.5 * np.sqrt(2 * d))
    assert abs(found.statistic - STUDY.population(locations, 0.5 * np.sqrt(2 * d))) < 4 * found.stderr


def test_the_test_sees_two_modes_in_one_dimension_and_none_in_eleven():
    """At eleven dimensions and half the median distance the exact FSSD^2 is less than the spread of its estimates."""
    seen, unseen = measure(FssdPower(dimensions=[1, 11], bandwidth_factors=[0.5], repeats=20))
    assert seen["power"] > 0.9
    assert unseen["power"] < 0.4  # 8 of 20 at the level of 0.05: a chance below 1e-5
    assert unseen["fssd2_normal_exact"] < unseen["fssd2_normal_std"]


def test_the_exact_value_falls_as_the_fourth_power_of_the_dimension():
    """At the median distance, sqrt(2 D); see the module."""
    rng = np.random.default_rng(0)
    sizes = [STUDY.population(STUDY.draw(400, d, rng), np.sqrt(2 * d)) for d in (40, 80)]
    assert np.log2(sizes[0] / sizes[1]) == pytest.approx(4, abs=0.5)


def test_the_stage_writes_a_table_and_refuses_what_is_no_study(tmp_path):
    main(["--config", '{"dimensions": [2], "repeats": 2, "rows": 50}', "--out", str(tmp_path / "power.csv")])
    with (tmp_path / "power.csv").open() as file:
        assert [row["bandwidth_factor"] for row in csv.DictReader(file)] == ["0.25", "0.5", "1.0", "2.0"]
    with pytest.raises(ConfigError, match=r"fssd_power.mode.*between 0 and 1"):
        main(["--config", '{"mode": 1.5}', "--out", str(tmp_path / "power.csv")])
