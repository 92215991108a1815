"""Algorithm 1 as it runs: what ends it, what it skips, what it tells, and that it can be killed."""

import itertools
import logging
import math
import re
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from dkef.core.errors import DkefError
from dkef.core.streams import rng_for
from dkef.models.kef.spec import KernelExponentialFamily
from dkef.models.protocol import Fit, FitContext
from dkef.training import loop
from dkef.training.checkpoint import read_progress, write_progress
from dkef.training.progress import Progress
from tests.training.small_runs import TINY, VARIANTS, rows


def fit(spec: KernelExponentialFamily, **context) -> Fit:
    return spec.fit(rows("train", 60), rows("valid", 25), FitContext("toy", "dkef", **context))


def same_parameters(a: Fit, b: Fit) -> bool:
    left, right = a.model.arrays(), b.model.arrays()
    return left.keys() == right.keys() and all(np.array_equal(left[key], right[key]) for key in left)


# Every stream of random numbers and every term of the step that a resumed run must find again.
NOISY = replace(
    TINY, validation_noise=True, weight_decay=1e-3, phase2_stopping="fixed", phase2_parameters="lambda_and_q0"
)


@pytest.fixture(scope="module")
def undisturbed() -> Fit:
    return fit(NOISY)


def test_the_same_seed_gives_the_same_parameters_and_another_seed_others(undisturbed: Fit):
    assert same_parameters(undisturbed, fit(NOISY))
    assert not same_parameters(undisturbed, fit(NOISY, seed=1))


def test_a_killed_run_continues_from_its_checkpoint_to_the_same_parameters(
    undisturbed: Fit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    from dkef.models.kef.fit import ScoreMatching

    advance, done = ScoreMatching.advance, []

    def killed_at_iteration_5(self, progress, stop):
        if progress.iteration == 5:
            raise KeyboardInterrupt
        done.append(progress.iteration)
        return advance(self, progress, stop)

    checkpoint = tmp_path / "checkpoint.h5"
    monkeypatch.setattr(ScoreMatching, "advance", killed_at_iteration_5)
    with pytest.raises(KeyboardInterrupt):
        fit(NOISY, checkpoint=checkpoint)
    monkeypatch.setattr(
        ScoreMatching, "advance", lambda self, p, stop: done.append(p.iteration) or advance(self, p, stop)
    )
    resumed = fit(NOISY, checkpoint=checkpoint)
    assert done == [0, 1, 2, 3, 4, 4, 5]  # the checkpoint after iteration 4 was the last
    assert same_parameters(undisturbed, resumed)
    assert repr(resumed.trace) == repr(undisturbed.trace)  # equal texts: 1 is not 1.0 in a table


def test_a_checkpoint_of_other_code_is_not_continued_and_the_log_says_so(
    undisturbed: Fit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    checkpoint = tmp_path / "checkpoint.h5"
    with monkeypatch.context() as edited:
        edited.setattr("dkef.training.checkpoint.sources_digest", lambda *modules: "before an edit")
        fit(NOISY, checkpoint=checkpoint)
    with caplog.at_level(logging.INFO):
        assert same_parameters(undisturbed, fit(NOISY, checkpoint=checkpoint))
        assert "checkpoint.h5 is of other settings, data or code; training starts again" in caplog.text
        assert "continuing" not in caplog.text
        fit(NOISY, checkpoint=checkpoint)
    assert "continuing from iteration" in caplog.text


def test_progress_is_read_back_exactly_and_only_for_the_settings_and_data_it_belongs_to(tmp_path: Path):
    path = tmp_path / "checkpoint.h5"
    theta = rng_for("test progress").normal(size=5)
    progress = Progress.start(theta, 200)
    theta, adam = progress.adam.step(theta, theta, 0.1)
    progress = (
        replace(progress, theta=theta, adam=adam, iteration=1).validated(-2.5).recorded({"iteration": 1, "b": 0.1})
    )
    progress = replace(progress.without_step(), iteration=2, seconds=1.25, loss_sum=0.1, validation_loss=math.nan)
    write_progress(path, progress, "these settings")
    log = logging.getLogger("test")
    restored = read_progress(path, "these settings", log)
    assert restored is not None
    np.testing.assert_equal(asdict(restored), asdict(progress))
    assert read_progress(path, "other settings", log) is None
    path.write_text("not a checkpoint")
    assert read_progress(path, "these settings", log) is None


def test_training_lowers_the_validation_loss_and_keeps_a_trace_of_every_iteration():
    spec = replace(TINY, components=2, layers=2, max_iterations=60, phase2_iterations=20, validation_interval=2)
    result = fit(spec)
    assert (result.status, result.stopped, len(result.trace)) == ("ok", "max_iterations", 60)
    validated = [row["validation_loss"] for row in result.trace if not math.isnan(row["validation_loss"])]
    assert len(validated) == 30
    assert result.notes["best_validation_loss"] == min(validated) < validated[0]
    assert result.notes["final_validation_loss"] < -0.5  # N(0, 4 I) alone has about -0.25
    assert set(result.trace[0]) == {
        "iteration", "validation_loss", "minibatch_loss", "lambda_alpha", "lambda_c", "tau_0", "tau_1", "beta_min",
        "beta_max", "gradient_norm",
    }  # fmt: skip


def test_patience_ends_phase_1_as_converged():
    # With a vanishing learning rate only the first validation can improve by more than rounding.
    result = fit(replace(TINY, layers=0, learning_rate=1e-300, patience=3))
    assert (result.stopped, result.notes["iterations"], result.notes["best_iteration"]) == ("converged", 4, 1)


def test_a_spent_time_budget_ends_phase_1_and_still_gives_a_model():
    result = fit(replace(TINY, layers=0, time_budget_hours=1e-9))
    assert (result.status, result.stopped, result.notes["iterations"]) == ("ok", "time_budget", 1)


def test_steps_without_a_finite_gradient_are_skipped_counted_and_in_the_end_a_divergence(monkeypatch):
    from dkef.models.kef.graph import KefGraph

    calls = []

    def fails_from_the_third_call_on(self, theta, fit_rows, loss_rows, *noise):
        calls.append(1)
        return genuine(self, theta, fit_rows, loss_rows, *noise) if len(calls) < 3 else None

    genuine = KefGraph.step_gradient
    monkeypatch.setattr(KefGraph, "step_gradient", fails_from_the_third_call_on)
    result = fit(replace(TINY, layers=0, max_skipped=4))
    assert (result.status, result.stopped, result.notes["skipped_steps"]) == ("diverged", "diverged", 4)
    assert np.isfinite(result.model.log_density(rows("test", 5))).all()  # the last good model


def test_a_finite_loss_whose_gradient_is_not_finite_is_no_step_either_and_is_counted(monkeypatch):
    from dkef.models.kef.graph import KefGraph

    calls = []

    def infinite_slope_at_the_second_call(self, theta, fit_rows, loss_rows, *noise):
        calls.append(theta)
        step = genuine(self, theta, fit_rows, loss_rows, *noise)
        assert step is not None
        return step._replace(gradient=np.where(np.arange(len(theta)) == 3, math.inf, 0)) if len(calls) == 2 else step

    genuine = KefGraph.step_gradient
    monkeypatch.setattr(KefGraph, "step_gradient", infinite_slope_at_the_second_call)
    result = fit(replace(TINY, layers=0))
    assert (result.status, result.notes["skipped_steps"], len(calls)) == ("ok", 1, TINY.max_iterations)
    moved = [not np.array_equal(before, after) for before, after in itertools.pairwise(calls)]
    assert moved == [True, False, True, True, True]
    assert math.isfinite(result.trace[1]["minibatch_loss"])
    assert [math.isfinite(row["gradient_norm"]) for row in result.trace] == [True, False, True, True, True, True]


def test_a_run_without_a_finite_alpha_at_its_end_is_a_divergence(monkeypatch):
    from dkef.models.kef.phase2 import Phase2

    monkeypatch.setattr(Phase2, "alpha", lambda self, *_: np.full(TINY.inducing_points, math.inf))
    result = fit(replace(TINY, layers=0, phase2_stopping="fixed"))
    assert (result.status, result.stopped) == ("diverged", "max_iterations")
    assert np.isfinite(result.model.log_density(rows("test", 5))).all()  # that of q0


def test_log_lines_tell_the_rate_and_the_time_left(monkeypatch, caplog):
    monkeypatch.setattr(loop, "LOG_SECONDS", 0.0)
    with caplog.at_level(logging.INFO):
        fit(replace(TINY, layers=0, max_iterations=3, time_budget_hours=1.0))
    lines = [record.getMessage() for record in caplog.records if record.getMessage().startswith("iteration")]
    number = r"-?\d+\.\d+"
    head = rf"iteration %d: validation loss {number}, best {number} at [1-3], skipped 0, ({number}) iterations/s, "
    for i, line in enumerate(lines[:-1], start=1):
        told = re.fullmatch(head % i + r"at most (\d+) s left", line)
        assert told, line
        rate, left = map(float, told.groups())
        # The rate is told to 0.1 and the time to a second; an hour is what the budget leaves of an endless wait.
        longest = (3 - i) / (rate - 0.05) if rate > 0.05 else 3600
        assert (3 - i) / (rate + 0.05) - 0.5 <= left <= longest + 0.5
    assert re.fullmatch(head % 3 + "stopped: max_iterations", lines[-1])
    assert len(lines) == 3


@pytest.mark.parametrize("name", ["extra unit", "fixed q0 and points, no lambda_C"])
def test_other_variants_train_to_a_model_that_can_be_evaluated(name: str):
    result = fit(replace(TINY, max_iterations=2, **VARIANTS[name]))
    values = result.model.evaluate(rows("test", 5))
    assert np.isfinite([*values.log_density, *values.score.ravel(), *values.curvature.ravel()]).all()


def test_more_inducing_points_than_rows_are_refused_with_both_numbers():
    with pytest.raises(DkefError, match="inducing_points is 61 and there are 60 training rows"):
        fit(replace(TINY, inducing_points=61))
