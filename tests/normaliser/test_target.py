"""log Z to a tolerance: the right proposal, confirmed by another method, the same from every folder."""

import json
from dataclasses import replace

import numpy as np
import pytest

from dkef.models.kef.parameters import KefParameters
from dkef.normaliser.concentration import of_draws
from dkef.normaliser.integrand import KernelIntegrand
from dkef.normaliser.target import LEAST_CHAINS, TargetRun
from tests.normaliser.coverage import LOG, SETTINGS, bump, intervals, log_z_of_bump
from tests.normaliser.examples import log_moment, random_kef


def rows_for(parameters: KefParameters) -> np.ndarray:
    return parameters.q0.mu + 0.8 * np.random.default_rng(0).normal(size=(150, parameters.z.shape[1]))


def methods(record: dict) -> list[str]:
    return [entry["method"] for entry in record["methods"]]


def test_q0_is_chosen_where_it_does_and_chains_confirm_it(tmp_path):
    parameters = random_kef(seed=1, alpha_scale=0.1)
    record = TargetRun(KernelIntegrand(parameters), rows_for(parameters), SETTINGS, ("easy",), 1, LOG).in_folder(
        tmp_path
    )
    assert (record["proposal"], record["stopped"], record["status"]) == ("q0", "tolerance", "ok")
    assert record["log_z_bias_bound"] < 0.01
    assert record["log_z_high"] - record["log_z_low"] < 0.1
    assert abs(record["log_z"] - log_moment(parameters)) < 5 * record["log_z_stderr"]
    assert methods(record) == ["q0", "q0", "mixture", "annealed"]
    assert record["methods"][-1]["samples"] >= LEAST_CHAINS
    assert not record["concentration"]["collapsed"]


def test_the_mixture_is_chosen_where_q0_misses_the_mass(tmp_path):
    parameters = bump(np.zeros(8), 1.0, 0.1, 28.0)  # samples of q0 seldom hit it
    rows = 0.08 * np.random.default_rng(1).normal(size=(200, 8))
    record = TargetRun(KernelIntegrand(parameters), rows, SETTINGS, ("hard",), 1, LOG).in_folder(tmp_path)
    assert (record["proposal"], record["status"]) == ("mixture", "ok")
    assert record["log_z_bias_bound"] < 0.01
    assert abs(record["log_z"] - log_z_of_bump(parameters)) < 5 * record["log_z_stderr"]
    again = TargetRun(KernelIntegrand(parameters), rows, SETTINGS, ("hard",), 2, LOG).in_folder(tmp_path / "fresh")
    assert again == record
    assert (
        TargetRun(KernelIntegrand(parameters), None, SETTINGS, ("hard",), 1, LOG).in_folder(tmp_path) == record
    )  # all found there


def test_chains_have_a_word_where_the_chosen_proposal_was_given_up(tmp_path, monkeypatch):
    """As if its weights had a heavy tail: it ends after two looks, and chains get the whole budget."""
    parameters = bump(np.zeros(8), 1.0, 0.1, 28.0)
    rows = 0.08 * np.random.default_rng(1).normal(size=(200, 8))
    settings = replace(SETTINGS, tolerance=1e-9)
    monkeypatch.setattr("dkef.normaliser.chunks.has_heavy_tail", lambda moments: True)
    record = TargetRun(KernelIntegrand(parameters), rows, settings, ("heavy",), 1, LOG).in_folder(tmp_path)
    assert record["stopped"] == "heavy tail"
    assert (methods(record)[0], methods(record)[-1]) == ("mixture", "annealed")
    chains = record["methods"][-1]
    assert chains["evaluations"] > record["methods"][0]["evaluations"]
    assert abs(chains["log_z"] - log_z_of_bump(parameters)) < 5 * chains["stderr"]


def test_a_first_look_at_another_model_is_not_taken_for_this_one(tmp_path):
    one, other = random_kef(seed=1, alpha_scale=0.5), random_kef(seed=2, alpha_scale=0.5)
    TargetRun(KernelIntegrand(one), rows_for(one), SETTINGS, ("easy",), 1, LOG).in_folder(tmp_path)
    again = TargetRun(KernelIntegrand(other), rows_for(other), SETTINGS, ("easy",), 1, LOG)
    assert again.in_folder(tmp_path) == again.in_folder(tmp_path / "fresh")


def test_a_budget_that_does_not_do_is_spent_and_said_so(tmp_path):
    parameters = random_kef(seed=3, alpha_scale=4.0)
    few = replace(SETTINGS, samples=60, bound_samples=60, chunk_samples=30, pilot_samples=600)
    record = TargetRun(KernelIntegrand(parameters), rows_for(parameters), few, ("few",), 1, LOG).in_folder(tmp_path)
    assert record["stopped"] == "budget"
    assert abs(record["log_z"] - log_moment(parameters)) < 5 * record["log_z_stderr"]
    json.dumps(record, allow_nan=False)


@pytest.mark.parametrize("kind", ["gaussian", "linear"])
def test_a_linear_kernel_has_an_interval_though_it_has_no_bound(tmp_path, kind):
    parameters = random_kef(kind=kind, alpha_scale=0.02)
    record = TargetRun(KernelIntegrand(parameters), rows_for(parameters), SETTINGS, ("linear",), 1, LOG).in_folder(
        tmp_path
    )
    assert (record["log_z_bias_bound"] is None) == (kind == "linear")
    assert (record["stopped"], record["status"]) == ("tolerance", "ok")


def test_a_model_with_all_its_mass_in_one_narrow_peak_is_called_collapsed(tmp_path):
    """As KEF-G on RedWine, seed 0; its log Z is nevertheless known."""
    parameters = bump(np.full(4, 0.3), 1.0, 0.02, 14.0)
    rows = np.random.default_rng(2).normal(size=(300, 4))
    record = TargetRun(KernelIntegrand(parameters), rows, SETTINGS, ("peak",), 1, LOG).in_folder(tmp_path)
    assert record["status"] == "ok"
    assert record["log_z_low"] - 0.02 < log_z_of_bump(parameters) < record["log_z_high"] + 0.02
    assert record["concentration"]["collapsed"]
    assert record["concentration"]["nearest_neighbour_ratio"] < 0.3


def test_draws_around_rows_are_near_them_and_draws_like_rows_are_not():
    rng = np.random.default_rng(0)
    rows, fresh = rng.normal(size=(2, 500, 5))
    spikes = of_draws(rows[rng.integers(500, size=400)] + 0.01 * rng.normal(size=(400, 5)), rows, rng)
    honest = of_draws(fresh[:400], rows, rng)
    assert spikes["mass_near_rows"] == 1.0
    assert honest["mass_near_rows"] == pytest.approx(honest["rows_near_rows"], abs=0.06)
    assert honest["nearest_neighbour_ratio"] == pytest.approx(1, abs=0.1)
    assert not honest["collapsed"]


def test_intervals_hold_the_truth_as_often_as_they_say():
    """16 of 20 at the least: fewer have a chance of 3 in 1000 where each holds it with 95 %."""
    held = [record["log_z_low"] <= truth <= record["log_z_high"] for record, truth in intervals(range(20))]
    assert sum(held) >= 16
