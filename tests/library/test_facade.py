"""The library in a notebook: five calls, units, files, and what it says to those who err."""

import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm

import dkef
from dkef.core.errors import DkefError
from dkef.core.hdf5 import read_hdf5, write_hdf5
from dkef.core.streams import rng_for
from dkef.data.whitening import Whitening
from dkef.library.fitting import warn_if_worse_than_normal
from dkef.models.gaussian.density import GaussianModel
from dkef.models.protocol import Fit, FitContext
from dkef.models.storage import write_model

# Small enough for a test.
TINY = {"components": 1, "layers": 2, "width": 6, "inducing_points": 25, "max_iterations": 60, "phase2_iterations": 50}


@pytest.fixture(scope="module")
def x():
    """A noisy circle."""
    rng = rng_for("test", "library")
    angle = rng.uniform(0, 2 * np.pi, 500)
    return 3 * np.column_stack([np.cos(angle), np.sin(angle)]) + 0.6 * rng.standard_normal((500, 2))


@pytest.fixture(scope="module")
def kernel_fit(x):
    return dkef.fit(x[:400], **TINY)


@pytest.fixture(scope="module")
def flow_fit(x):
    return dkef.fit(x[:400], model="maf", max_iterations=500, seed=1, width=10, layers=2)


def test_the_five_calls(x, kernel_fit, flow_fit, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fit, other, test, y = kernel_fit, flow_fit, x[400:], x[:5]
    assert fit.log_prob(y).shape == (5,)
    assert fit.score(y).shape == (5, 2)
    assert fit.sample(100).shape == (100, 2)
    fit.save("ring.h5")
    np.testing.assert_array_equal(dkef.load("ring.h5").log_prob(y), fit.log_prob(y))
    table = dkef.compare({"dkef": fit, "maf": other}, test)
    assert list(table.index) == ["dkef", "maf"]
    measured = table.drop(columns=["fssd_p_value", "remarks"]).to_numpy(dtype=float)
    assert np.isfinite(measured).all()
    assert math.isnan(table.loc["dkef", "fssd_p_value"])
    assert 0 <= table.loc["maf", "fssd_p_value"] <= 1


@pytest.mark.parametrize("kind", ["kernel_fit", "flow_fit"])
def test_the_density_in_the_units_of_x_integrates_to_one(kind, request):
    """Wide enough that what lies outside is far below the tolerance, and fine enough for densities this smooth."""
    fit = request.getfixturevalue(kind)
    axis = np.linspace(-9, 9, 241)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    total = np.exp(fit.log_prob(grid)).sum() * (axis[1] - axis[0]) ** 2
    assert fit.log_z.status == "ok"
    assert total == pytest.approx(1.0, abs=3e-3)


def test_beyond_two_columns_log_z_is_sampled(x):
    """Against a plain sum over a grid, in whitened units: three half widths of the interval, and one of the grid."""
    rows = np.column_stack([x, rng_for("test", "third column").standard_normal(len(x))])
    fit = dkef.fit(rows, **TINY, log_z_samples=200_000)
    axis = np.linspace(-7, 7, 71)
    grid = np.stack(np.meshgrid(axis, axis, axis), axis=-1).reshape(-1, 3)
    direct = logsumexp(fit.model.log_density(grid)) + 3 * math.log(axis[1] - axis[0])
    assert fit.log_z.low < fit.log_z.value < fit.log_z.high
    assert fit.log_z.value == pytest.approx(direct, abs=3 * (fit.log_z.high - fit.log_z.low) / 2 + 5e-3)


@pytest.mark.parametrize("kind", ["kernel_fit", "flow_fit"])
def test_the_score_is_the_gradient_of_log_prob(kind, request, x):
    fit, y, h = request.getfixturevalue(kind), x[:6], 1e-5
    for j, step in enumerate(h * np.eye(2)):
        slope = (fit.log_prob(y + step) - fit.log_prob(y - step)) / (2 * h)
        np.testing.assert_allclose(fit.score(y)[:, j], slope, rtol=1e-5, atol=1e-5)


def test_samples_are_in_the_units_of_x(kernel_fit, x):
    drawn = kernel_fit.sample(400, 0)
    # 400 rows and 400 draws: five standard errors of a difference of means, and a crude comparison of spreads
    np.testing.assert_allclose(drawn.mean(axis=0), x.mean(axis=0), atol=5 * x.std() * math.sqrt(2 / 400))
    np.testing.assert_allclose(drawn.std(axis=0), x.std(axis=0), rtol=0.25)
    np.testing.assert_array_equal(kernel_fit.sample(3, 7), kernel_fit.sample(3, np.random.default_rng(7)))


def test_a_gaussian_is_the_closed_form_in_units_that_differ_wildly():
    rng = rng_for("test", "library", "gaussian")
    scale = np.array([1e-7, 1.0, 1e8])
    x = (rng.standard_normal((300, 3)) @ rng.standard_normal((3, 3)) + [1.0, -2.0, 3.0]) * scale
    fit = dkef.fit(x, model="gaussian")
    order = rng_for("split", "dkef.fit", 0).permutation(300)
    train = x[order[30:]] / scale
    truth = multivariate_normal(train.mean(axis=0), np.cov(train.T, bias=True))
    y = x[:20]
    np.testing.assert_allclose(fit.log_prob(y), truth.logpdf(y / scale) - np.log(scale).sum(), rtol=1e-9)
    expected = -np.linalg.solve(truth.cov, (y / scale - truth.mean).T).T / scale
    np.testing.assert_allclose(fit.score(y), expected, rtol=1e-7)
    far = fit.sample(2000, 0) / scale
    np.testing.assert_allclose(np.cov(far.T), truth.cov, atol=0.15 * truth.cov.diagonal().max())


@pytest.mark.parametrize("kind", ["kernel", "maf"])
def test_other_units_shift_log_prob_and_change_nothing_else(x, kind):
    """In 100 x + 5 the rounding of the rows differs; a few iterations do not make that visible."""
    settings = {"model": "maf", "max_iterations": 20, "layers": 2, "width": 5}
    if kind == "kernel":
        settings = TINY | {"max_iterations": 5, "dtype": "float64"}
    one, other = (dkef.fit(rows, **settings) for rows in (x, 100 * x + 5))
    y = x[:10]
    np.testing.assert_allclose(other.log_prob(100 * y + 5), one.log_prob(y) - 2 * math.log(100), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(other.score(100 * y + 5), one.score(y) / 100, rtol=1e-3, atol=1e-5)


def test_fits_of_different_whitening_are_compared_in_the_units_of_the_first(x):
    """Of a normal distribution with precision P, in y = (x - m) V: curvature -diag(inv(V) P inv(V)')."""
    first, second = dkef.fit(x[:300], "gaussian"), dkef.fit(x[100:] * [1, 2] @ [[1, 0.5], [0, 1]], "gaussian")
    y = x[400:]
    table = dkef.compare({"a": first, "b": second}, y)
    inverse = np.linalg.inv(first.whitening.W)
    _, chol = second.model.mean, second.model.cholesky
    W = second.whitening.W
    precision = W @ np.linalg.inv(chol @ chol.T) @ W.T  # in the units of x
    score = second.score(y) @ inverse.T
    loss = (-np.trace(inverse @ precision @ inverse.T) + 0.5 * (score**2).sum(axis=1)).mean()
    assert table.loc["b", "score_loss"] == pytest.approx(loss, rel=1e-6)
    assert table.loc["b", "log_likelihood"] == pytest.approx(second.log_prob(y).mean())


def test_a_saved_fit_is_the_same(kernel_fit, tmp_path, x):
    kernel_fit.save(tmp_path / "fit.h5")
    loaded = dkef.load(tmp_path / "fit.h5")
    for ask in ("log_prob", "score"):
        np.testing.assert_array_equal(getattr(loaded, ask)(x), getattr(kernel_fit, ask)(x))
    np.testing.assert_array_equal(loaded.sample(5, 1), kernel_fit.sample(5, 1))
    for name in ("log_z", "name", "columns", "seed", "status", "stopped", "notes"):
        assert getattr(loaded, name) == getattr(kernel_fit, name), name


def test_files_of_the_library_and_of_the_workflow_are_not_mixed_up(x, tmp_path):
    dkef.fit(x, "gaussian").save(tmp_path / "fit.h5")
    with pytest.raises(DkefError, match=r"fit\.h5 was saved by dkef\.fit.*read it with dkef\.load"):
        dkef.load_model(tmp_path / "fit.h5")
    write_model(tmp_path / "model.h5", Fit(GaussianModel.fit(x)), {})
    with pytest.raises(DkefError, match=r"model\.h5 was not saved by dkef\.fit; dkef\.load_model"):
        dkef.load(tmp_path / "model.h5")


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"class": "os.system"}, "outside the trusted packages"),
        ({"provenance": {"library": {"name": "x"}}}, "is missing"),
        ({"provenance": {"library": 3}}, "train again"),
    ],
)
def test_a_file_of_somebody_else_runs_nothing(x, tmp_path, change, match):
    path = tmp_path / "fit.h5"
    dkef.fit(x, "gaussian").save(path)
    contents = read_hdf5(path, "a fit", "")
    write_hdf5(path, contents.arrays, contents.record | change)
    with pytest.raises(DkefError, match=match):
        dkef.load(path)


@pytest.mark.parametrize("W", [np.zeros((2, 2)), np.eye(3), np.full((2, 2), np.nan)])
def test_a_file_with_another_whitening_is_refused(x, tmp_path, W):
    path = tmp_path / "fit.h5"
    dkef.fit(x, "gaussian").save(path)
    contents = read_hdf5(path, "a fit", "")
    write_hdf5(path, contents.arrays | {"library/W": W}, contents.record)
    with pytest.raises(DkefError, match="holds no whitening of 2 columns"):
        dkef.load(path)


def test_lists_and_data_frames_are_arrays(x):
    fits = [dkef.fit(rows, "gaussian") for rows in (x, x.tolist(), pd.DataFrame(x, columns=["left", "right"]))]
    for fit in fits[1:]:
        np.testing.assert_array_equal(fit.log_prob(x[:4].tolist()), fits[0].log_prob(x[:4]))
    assert fits[2].columns == ("left", "right")


NAN = [[1.0, 2.0], [3.0, float("nan")], [float("nan"), 1.0], [0.0, 0.0]]
GRID = np.arange(40.0).reshape(20, 2)


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (np.arange(9.0), r"dkef\.fit: the rows have one dimension \(9 numbers\).*x\.reshape\(-1, 1\) for one column"),
        (np.zeros((2, 2, 2)), r"the shape \(2, 2, 2\) where \[rows, columns\] is needed"),
        (NAN, r"column '1' has NaN in row 1 \(from 0\), the first of 2 such values; remove or fill such rows"),
        (pd.DataFrame(NAN, columns=["a", "b"]), r"column 'b' has NaN in row 1"),
        ([[1.0, float("inf")]], "column '1' has an infinite value in row 0"),
        (pd.DataFrame({"a": [1], "b": ["x"], "c": ["y"]}), r"not numbers: columns 'b', 'c'; drop or encode"),
        ([[1.0], [2.0, 3.0]], "the rows are not a table of numbers"),
        (np.ones((9, 2)) * 1j, "complex numbers"),
        ("rows.csv", r"the rows are the text 'rows\.csv'; read the file first, such as by pandas\.read_csv"),
        (np.ma.masked_greater(GRID, 30.0), "the rows have masked values; remove or fill such rows"),
        (np.column_stack([GRID, np.full(20, 7.0), np.zeros(20)]), r"constant in every row: columns '2', '3'; drop"),
        (np.column_stack([GRID[:, 0], GRID[:, 0]]), "columns '0' and '1' are equal in every row; drop one"),
        (np.column_stack([GRID[:, 0], 2 * GRID[:, 0] + 1]), "the 2 columns are linearly dependent; drop a column"),
        (np.eye(3), "3 rows for 3 columns are too few; 5 are the least"),
    ],
)
def test_rows_that_cannot_be_fitted_get_one_sentence(rows, sentence):
    with pytest.raises(DkefError, match=sentence) as caught:
        dkef.fit(rows, "gaussian")
    assert isinstance(caught.value, ValueError)


def test_rows_of_another_width_are_named(x):
    fit = dkef.fit(x, "gaussian")
    for ask in (fit.log_prob, fit.score, lambda rows: dkef.compare({"a": fit}, rows)):
        with pytest.raises(DkefError, match="the rows have 3 columns, the density was fitted to 2"):
            ask(np.zeros((4, 3)))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"model": "mfa"}, r"dkef\.fit: model 'mfa' is unknown; did you mean maf\?"),
        ({"model": "maf", "max_iteration": 5}, r"max_iteration is an unknown key; did you mean max_iterations\?"),
        (
            {"model": "maf", "width": "wide"},
            r"dkef\.fit\(model='maf'\): width is 'wide'; allowed is a whole number >= 1",
        ),
        ({"model": "gaussian", "width": 3}, "width is an unknown key; this section takes no keys"),
        ({"model": "MFA"}, r"dkef\.fit: model 'MFA' is unknown; did you mean maf\?"),
        ({"model": 3}, r"dkef\.fit: model is 3; allowed is a name or a specification with `fit`"),
        ({"model": GaussianModel}, r"dkef\.fit: model is the class GaussianModel; pass an instance, GaussianModel\(\)"),
        ({"seed": "a"}, r"dkef\.fit: seed is 'a'; allowed is a whole number >= 0"),
        ({"seed": -1}, r"dkef\.fit: seed is -1; allowed is a whole number >= 0"),
        ({"threads": 0}, r"dkef\.fit: threads is 0; allowed is a whole number >= 1"),
        ({"log_z_samples": 5}, r"dkef\.fit: log_z_samples is 5; allowed is 0 for no log Z, or >= 1000"),
    ],
)
def test_settings_are_keys_of_the_specification(x, settings, sentence):
    with pytest.raises(DkefError, match=sentence):
        dkef.fit(x, **settings)


def test_without_log_z_the_score_is_there_and_log_prob_says_why_it_is_not(x):
    fit = dkef.fit(x, **TINY | {"max_iterations": np.int64(2)}, log_z_samples=0)
    assert fit.notes["iterations"] == 2
    assert np.isfinite(fit.score(x)).all()
    with pytest.raises(DkefError, match=r"log_prob: log Z of this dkef is undefined: not asked for"):
        fit.log_prob(x)
    table = dkef.compare({"dkef": fit}, x)
    assert math.isnan(table.loc["dkef", "log_likelihood"])
    assert "log_likelihood undefined: not asked for" in table.loc["dkef", "remarks"]
    assert np.isfinite(table.loc["dkef", "fssd2"])


def test_what_is_compared_must_be_fits(x):
    with pytest.raises(DkefError, match=r"dkef\.compare: 'a' is a int; expected is what dkef\.fit or dkef\.load gives"):
        dkef.compare({"a": 3}, x)
    with pytest.raises(DkefError, match=r"the fits are a list; pass a mapping such as \{'maf': fit\}"):
        dkef.compare([dkef.fit(x, "gaussian")], x)
    with pytest.raises(DkefError, match="there is no fit to compare"):
        dkef.compare({}, x)


def test_whitening_does_not_depend_on_the_units():
    rows = rng_for("test", "units").standard_normal((50, 3)) @ [[1, 2, 0], [0, 1, 1], [0, 0, 3]]
    one, other = Whitening.of_any_scale(rows), Whitening.of_any_scale(rows * [1e9, 1, 1e-9] + [1e9, 0, 0])
    white = one.apply(rows)
    np.testing.assert_allclose(white.T @ white / 50, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(other.apply(rows * [1e9, 1, 1e-9] + [1e9, 0, 0]), white, atol=1e-6)
    np.testing.assert_allclose(one.invert(white), rows, atol=1e-12)


def test_a_checkpoint_goes_when_the_fit_is_done(x, tmp_path):
    place = tmp_path / "fit.checkpoint"
    seen = []
    spec = Watched(lambda context: seen.append(context.checkpoint))
    dkef.fit(x, spec, checkpoint=place)
    assert seen == [place]
    place.write_bytes(b"left by a fit")
    assert dkef.fit(x, spec, checkpoint=place).name == "Watched"
    assert not place.exists()


def test_a_specification_of_ones_own_takes_no_settings_beside(x):
    with pytest.raises(DkefError, match=r"dkef\.fit: width: set them in the specification that is passed as model"):
        dkef.fit(x, Watched(print), width=3)


@dataclass(frozen=True)
class Watched:
    """A specification of a user's own."""

    look: Callable[[FitContext], None]

    def fit(self, train, valid, context):
        self.look(context)
        return Fit(GaussianModel.fit(train))


@pytest.mark.parametrize("n", [-1, 2.5, True])
def test_a_number_of_draws_is_a_whole_number(x, n):
    with pytest.raises(DkefError, match=f"sample: n is {n}; allowed is a whole number >= 0"):
        dkef.fit(x, "gaussian").sample(n)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(DkefError, match=r"absent\.h5 does not exist; dkef\.fit\(x\)\.save"):
        dkef.load(tmp_path / "absent.h5")


@pytest.mark.slow
def test_the_default_fit_of_2000_rows_of_two_columns_ends_within_a_minute():
    """By the clock of the process, which work of others on this machine does not move much; half of it as measured."""
    rng = rng_for("test", "library", "clock")
    angle = rng.uniform(0, 2 * np.pi, 2000)
    x = 3 * np.column_stack([np.cos(angle), np.sin(angle)]) + 0.4 * rng.standard_normal((2000, 2))
    start = time.process_time()
    fit = dkef.fit(x)
    assert time.process_time() - start < 60
    assert (fit.status, fit.log_z.status) == ("ok", "ok")
    # A circle is no normal distribution: its likelihood must be clearly better than that of one.
    assert fit.log_prob(x).mean() > dkef.fit(x, "gaussian").log_prob(x).mean() + 0.3


def in_a_process(code: str) -> subprocess.CompletedProcess[str]:
    """With no variable set that would keep TensorFlow quiet."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("TF_", "CUDA_"))}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=variables)


def test_fitting_writes_nothing_to_stderr_and_loads_no_tensorflow_where_none_is_needed():
    rows = "import sys, numpy as np, dkef\nx = np.random.default_rng(0).standard_normal((60, 2))\n"
    done = in_a_process(rows + "dkef.fit(x, 'made', max_iterations=3); print('tensorflow' in sys.modules)")
    assert (done.stdout, done.stderr) == ("True\n", "")
    done = in_a_process(rows + "dkef.fit(x, 'gaussian'); print('tensorflow' in sys.modules)")
    assert (done.stdout, done.stderr) == ("False\n", "")


def test_a_bar_is_shown_if_wanted_and_log_lines_go_to_the_logger(x, capsys, caplog):
    with caplog.at_level("INFO", "dkef.fit"):
        dkef.fit(x, "made", max_iterations=20, progress=True)
    assert "iteration 20" in capsys.readouterr().err
    assert any("stopped: max_iterations" in line for line in caplog.messages)
    dkef.fit(x, "made", max_iterations=20)  # no terminal: no bar
    assert capsys.readouterr().err == ""


def test_help_lists_what_there_is():
    shown = in_a_process("import dkef; help(dkef)").stdout
    for name in ("fit(", "load(", "compare(", "load_model(", "class FittedDensity", "sklearn", "stein"):
        assert name in shown, name


@pytest.mark.parametrize(("width", "worse"), [(1.0, False), (0.9, False), (0.3, True)])
def test_a_fit_that_a_normal_distribution_beats_is_told(width, worse, caplog):
    train, valid = np.random.default_rng(0).standard_normal((2, 200, 2))
    log_p = norm(scale=width).logpdf(valid).sum(axis=1)
    warn_if_worse_than_normal("dkef", log_p, train, valid)
    assert ("dkef is worse on held-out rows than a normal distribution" in caplog.text) == worse
