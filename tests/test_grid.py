"""The grid stage: densities on a grid, kernels around the paper's positions, masses by quadrature."""

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

from dkef.core.arrays import Array
from dkef.data.splits import read_splits
from dkef.data.synthetic.source import KNOWN
from dkef.metrics.elongation import elongation
from dkef.metrics.grid import (
    HELD,
    KERNEL_POSITIONS,
    LAYOUTS,
    kernel_of,
    mode_regions,
    on_grid,
    outside_truth,
    points_of,
)
from dkef.metrics.integrals import read_integrals
from dkef.models.gaussian.density import GaussianModel
from dkef.results.read import read_grid
from tests.models.kef_examples import example_component, example_parameters


class Truth(GaussianModel):
    """A known law in a model's clothes, normalised or shifted by a constant."""

    def __init__(self, name: str, shift: float = 0.0) -> None:
        self.law, self.shift = KNOWN[name], shift
        self.normalised = shift == 0.0

    @property
    def dimension(self) -> int:
        return self.law.dimension

    def log_density(self, x: Array) -> Array:
        return self.law.log_density(x) + self.shift


# Square and Cosine jump at edges that cut cells: 76 cells of 0.08 cover a side of 6, hence log (6.08 / 6)^2 = 0.0265.
@pytest.mark.parametrize(
    ("name", "tolerance"),
    # Funnel leaves 0.1 % outside [-12, 12]^2; MoR has a 1/r pole at the origin, worth 4 exp(-12.5) of a cell
    [("banana", 2e-4), ("ring", 1e-6), ("mog", 1e-9), ("mor", 1e-4), ("gaussian_scales", 1e-9), ("funnel", 3e-3),
     ("square", 2.7e-2), ("cosine", 2.7e-2)],
)  # fmt: skip
def test_a_known_law_has_mass_one_on_the_grid(name: str, tolerance: float) -> None:
    _, facts = on_grid(Truth(name), KNOWN[name], None)
    assert abs(facts["grid_log_mass"]) < tolerance
    assert facts["log_z_from"] == "model"


def test_an_unnormalised_density_is_normalised_by_quadrature_where_no_log_z_is_given() -> None:
    arrays, facts = on_grid(Truth("ring", shift=2.5), KNOWN["ring"], None)
    assert facts["log_z_from"] == "quadrature"
    assert facts["log_z"] == pytest.approx(2.5, abs=1e-6)
    assert arrays["log_density"] == pytest.approx(arrays["true_log_density"], abs=1e-6)


def test_a_sampled_log_z_is_used_and_its_error_shows_in_the_mass() -> None:
    _, facts = on_grid(Truth("ring", shift=2.5), KNOWN["ring"], 2.4)
    assert facts["log_z_from"] == "samples"
    assert facts["grid_log_mass"] == pytest.approx(0.1, abs=1e-6)


def test_the_mass_between_the_modes_of_mog_is_that_of_the_normal_tail() -> None:
    _, facts = on_grid(Truth("mog"), KNOWN["mog"], None)
    # modes at +-4 with standard deviation 0.5: the middle half is |x1| < 2, four deviations away; the grid cuts it at
    # cell edges exactly (2 is 25 cells), so only the midpoint rule errs, by (0.08 / 0.5)^2 / 24 times the slope ~ 2 %
    assert facts["masses"]["between_modes"] == pytest.approx(norm.sf(4.0), rel=0.03)
    assert facts["masses"]["first_mode"] == pytest.approx(0.5, abs=1e-9)
    assert facts["true_masses"]["between_modes"] == facts["masses"]["between_modes"]


def test_a_bridge_is_seen() -> None:
    wide = GaussianModel(np.zeros(2), np.diag([4.0, 0.5]))
    _, facts = on_grid(wide, KNOWN["mog"], None)
    # P(|x1| < 2) for N(0, 16); the grid reaches three deviations
    assert facts["masses"]["between_modes"] == pytest.approx(2 * norm.cdf(0.5) - 1, rel=5e-3)


def test_only_a_planar_pair_of_normals_has_modes() -> None:
    points = np.zeros((3, 2))
    assert mode_regions(KNOWN["mor"], points) == {}
    assert mode_regions(None, points) == {}


def test_the_region_outside_the_truth_holds_what_is_left_of_it() -> None:
    log_truth = norm.logpdf(np.linspace(-6, 6, 6001))
    outside = outside_truth(log_truth, math.log(0.002))
    left_out = np.exp(log_truth[outside]).sum() / np.exp(log_truth).sum()
    assert left_out <= 1 - HELD
    # the densest region of a normal is the interval around 0 with that mass
    edge = np.abs(np.linspace(-6, 6, 6001)[outside]).min()
    assert edge == pytest.approx(norm.isf((1 - HELD) / 2), abs=0.004)


def test_the_figure_gets_the_middle_of_the_grid() -> None:
    arrays, _ = on_grid(Truth("ring"), KNOWN["ring"], None)
    axis = arrays["axis"]
    assert len(axis) == 200
    assert axis[0] == pytest.approx(-7.96)
    assert arrays["log_density"].shape == (200, 200)
    # rows are the second coordinate: (x1, x2) = (axis[7], axis[3])
    at = KNOWN["ring"].log_density(np.array([[axis[7], axis[3]]]))[0]
    assert arrays["log_density"][3, 7] == pytest.approx(at)


def test_the_kernel_is_one_at_its_own_position_and_symmetric() -> None:
    class Kef(Truth):
        parameters = example_parameters((example_component("gaussian", 3, d=2),), d=2)

    positions = KERNEL_POSITIONS[2]
    kernel = kernel_of(Kef("ring"), positions, positions)
    assert kernel is not None
    assert np.diag(kernel) == pytest.approx(1.0)
    assert kernel == pytest.approx(kernel.T)  # Gaussian kernels have the same k(p, p) everywhere
    assert kernel_of(Truth("ring"), positions, positions) is None


@pytest.mark.parametrize("long", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("turn", [0.0, 0.6])
def test_the_elongation_of_a_kernel_is_that_of_its_ellipse(long: float, turn: float) -> None:
    """A density that varies along one direction only, and Gaussian kernels `long` times as long across it."""
    axis, positions = np.linspace(-8, 8, 201), np.array([[-2.0, 0.0], [1.0, 1.0], [2.0, -2.0]])
    x, y = np.meshgrid(axis, axis, indexing="xy")
    steep, level = np.array([np.cos(turn), np.sin(turn)]), np.array([-np.sin(turn), np.cos(turn)])
    truth = -((x * steep[0] + y * steep[1]) ** 2) / 8
    offsets = np.stack([x, y], axis=-1) - positions[:, None, None]
    kernels = np.exp(-((offsets @ steep) ** 2 + (offsets @ level) ** 2 / long**2) / 4)
    found = elongation(kernels, axis, positions, truth, axis)
    assert found == pytest.approx(long, rel=0.03)  # contours are 0.65 wide at the least, in cells of 0.08
    assert elongation(kernels, axis, positions, np.full_like(truth, 0.0), axis) is None  # a plateau has no direction


def test_the_paper_positions_are_a_four_by_four_grid_from_minus_5_to_5() -> None:
    assert KERNEL_POSITIONS[2].shape == (16, 2)
    assert KERNEL_POSITIONS[2].min() == -5
    assert KERNEL_POSITIONS[2].max() == 5
    assert KERNEL_POSITIONS[1].ravel().tolist() == [-1, 0, 1]


def test_values_that_are_not_numbers_are_counted_and_left_out_of_the_masses() -> None:
    class Broken(Truth):
        def log_density(self, x: Array) -> Array:
            return np.where(x[:, 0] > 0, np.nan, self.law.log_density(x))

    arrays, facts = on_grid(Broken("mog"), KNOWN["mog"], None)
    assert facts["not_finite"] == 300 * 150
    assert facts["masses"]["first_mode"] == pytest.approx(0.0, abs=1e-12)  # the first mode is the right one
    assert np.isnan(arrays["log_density"]).any()


def test_grid_points_run_along_the_first_coordinate_first() -> None:
    assert points_of([np.array([1.0, 2.0]), np.array([5.0, 6.0])]).tolist() == [[1, 5], [2, 5], [1, 6], [2, 6]]
    assert len(LAYOUTS[2].wide()) == 300


def test_the_command_line_writes_a_grid_that_knows_its_cell(tmp_path: Path, ring_cell: tuple[Path, Path]) -> None:
    model, data = ring_cell
    config = json.dumps({
        "dataset": "ring", "model": "gaussian", "seed": 0, "threads": 1,
        "source": {"_target_": "dkef.data.synthetic.source.Synthetic", "distribution": "ring", "rows": 300},
    })  # fmt: skip
    out = tmp_path / "grid.h5"
    command = [sys.executable, "-m", "dkef", "grid", "--config", config, "--model", str(model), "--data", str(data)]
    record = tmp_path / "quadrature.json"
    subprocess.run(
        [*command, "--log-z", "--out", str(out), "--quadrature", str(record)], check=True, capture_output=True
    )
    integrals = read_integrals(record)
    assert integrals.status == "ok"
    assert integrals.log_z == pytest.approx(0.0, abs=1e-9)
    assert integrals.kl is not None
    assert integrals.kl > 1
    key, grid = read_grid(out)
    assert key == ("ring", "gaussian", 0)
    test = read_splits(data).test
    assert grid.facts["true_log_likelihood"] == pytest.approx(KNOWN["ring"].log_density(test).mean())


@pytest.fixture
def ring_cell(tmp_path: Path) -> tuple[Path, Path]:
    """A trained Gaussian and its splits, made by the stages themselves."""
    data, model = tmp_path / "seed0.h5", tmp_path / "model.h5"
    source = {"_target_": "dkef.data.synthetic.source.Synthetic", "distribution": "ring", "rows": 300}
    dataset = {"title": "Ring", "source": source, "preprocessing": {"whiten": False}}
    prepare = json.dumps({"name": "ring", "seed": 0, "dataset": dataset})
    train = json.dumps({
        "dataset": "ring", "model": "gaussian", "of": "gaussian", "seed": 0, "threads": 1,
        "spec": {"_target_": "dkef.models.gaussian.spec.Gaussian"},
    })  # fmt: skip
    run = [sys.executable, "-m"]
    first = [*run, "dkef", "preprocess", "--config", prepare, "--raw", str(tmp_path), "--out", str(data)]
    second = [*run, "dkef", "train", "--config", train, "--data", str(data), "--out", str(model)]
    subprocess.run(first, check=True, capture_output=True)
    subprocess.run([*second, "--trace", str(tmp_path / "trace.csv")], check=True, capture_output=True)
    return model, data
