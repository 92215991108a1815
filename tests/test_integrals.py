"""The record of the grid stage: which integrals it holds, and what it says when they cannot be relied on."""

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

from dkef.core.arrays import Array
from dkef.core.errors import DkefError
from dkef.data.synthetic.source import KNOWN
from dkef.metrics.integrals import measure, read_integrals, sharp_interval, write_integrals
from dkef.models.gaussian.density import GaussianModel


def normal(d: int = 1, std: float = 1.0) -> GaussianModel:
    return GaussianModel(np.zeros(d), std * np.eye(d))


def test_the_sharp_component_is_three_deviations_around_its_mean() -> None:
    interval = sharp_interval(KNOWN["gaussian_scales"])
    assert interval is not None
    assert np.concatenate(interval) == pytest.approx([-1.6, -0.4])
    assert sharp_interval(KNOWN["mog"]) is None  # planar, and of one scale
    assert sharp_interval(None) is None


def test_a_model_of_the_two_scales_has_its_own_share_of_the_sharp_component_beside_that_of_the_truth() -> None:
    found = measure(normal(), KNOWN["gaussian_scales"])
    assert found.status == "ok"
    assert found.sharp_mass == pytest.approx(norm.cdf(-0.4) - norm.cdf(-1.6), abs=1e-10)
    expected = 0.3 * (1 - 2 * norm.sf(3)) + 0.7 * (norm.cdf(-1.4) - norm.cdf(-2.6))
    assert found.true_sharp_mass == pytest.approx(expected, abs=1e-10)
    assert found.log_z == pytest.approx(0.0, abs=1e-10)


def test_without_a_truth_there_is_log_z_and_nothing_else() -> None:
    found = measure(normal(2), None)
    assert found.log_z == pytest.approx(0.0, abs=1e-10)
    assert (found.kl, found.fisher, found.sharp_mass, found.true_sharp_mass) == (None, None, None, None)


def test_doubts_are_told() -> None:
    class Cauchy(GaussianModel):
        def log_density(self, x: Array) -> Array:
            return -np.log1p(x[:, 0] ** 2)

    class Broken(GaussianModel):
        def log_density(self, x: Array) -> Array:
            return np.full(len(x), np.nan)

    one = np.zeros(1), np.eye(1)
    assert measure(Cauchy(*one), None).status.startswith("untrusted: the density still has mass at 4096")
    assert measure(normal(2, 0.02), None).status.startswith("untrusted: the quadrature of log Z has an error of")
    broken = measure(Broken(*one), None)
    assert broken.status.startswith("invalid: ")
    assert broken.log_z is None


def test_a_record_gives_back_what_was_written(tmp_path: Path) -> None:
    found = measure(normal(), KNOWN["gaussian_scales"])
    write_integrals(tmp_path / "quadrature.json", found)
    assert read_integrals(tmp_path / "quadrature.json") == found
    (tmp_path / "bad.json").write_text('{"status": 3}')
    with pytest.raises(DkefError, match=r"bad\.json.*run the grid stage again"):
        read_integrals(tmp_path / "bad.json")
