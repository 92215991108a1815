"""Chunk files: computed once, merged in any order, resumed after a kill."""

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dkef.config.schema.normaliser import Normaliser
from dkef.core.errors import DkefError
from dkef.core.files import read_json, write_json
from dkef.models.kef.parameters import KefParameters
from dkef.normaliser.chunks import HEAVY_TAIL, ChunkRun, clock
from dkef.normaliser.estimate import estimate
from dkef.normaliser.integrand import KernelIntegrand
from dkef.normaliser.weights import STAGES, Q0Weights, Weights
from tests.normaliser.examples import random_kef

NAME = ("toy", "dkef", 0)
SETTINGS = Normaliser(samples=3000, bound_samples=2000, pilot_samples=2000, chunk_samples=1000)
LOG = logging.getLogger("test")


class CountingRun(ChunkRun):
    """Notes the chunks it computes, and can be killed before a given one."""

    def __init__(
        self, settings: Normaliser = SETTINGS, parameters: KefParameters | None = None, die_at: int | None = None
    ) -> None:
        super().__init__(KernelIntegrand(parameters or random_kef()), settings, NAME, 1, LOG)
        self.computed: list[tuple[str, int]] = []
        self.die_at = die_at

    def chunk(self, stage: str, number: int, *args: Any) -> dict[str, Any]:
        if len(self.computed) == self.die_at:
            raise KeyboardInterrupt
        self.computed.append((stage, number))
        return super().chunk(stage, number, *args)


def test_a_folder_of_chunks_gives_the_estimate_in_memory(tmp_path):
    assert CountingRun().in_folder(tmp_path) == estimate("q0", Q0Weights(random_kef(), *NAME), SETTINGS)


def test_going_from_three_chunks_to_five_computes_exactly_two(tmp_path):
    CountingRun().in_folder(tmp_path)
    more = CountingRun(replace(SETTINGS, samples=5000))
    record = more.in_folder(tmp_path)
    assert more.computed == [("z", 3), ("z", 4)]
    assert record["samples"] == 5000
    assert record == CountingRun(replace(SETTINGS, samples=5000)).in_folder(tmp_path / "fresh")


@pytest.mark.parametrize("die_at", [0, 1, 4, 6])
def test_a_killed_and_resumed_run_equals_an_undisturbed_one(tmp_path, die_at):
    whole = CountingRun()
    undisturbed = whole.in_folder(tmp_path / "undisturbed")
    killed = CountingRun(die_at=die_at)
    with pytest.raises(KeyboardInterrupt):
        killed.in_folder(tmp_path / "killed")
    resumed = CountingRun()
    assert resumed.in_folder(tmp_path / "killed") == undisturbed
    assert killed.computed + resumed.computed == whole.computed
    for path in sorted((tmp_path / "undisturbed").rglob("*.json")):
        assert (tmp_path / "killed" / path.relative_to(tmp_path / "undisturbed")).read_bytes() == path.read_bytes()


def test_files_are_merged_alike_in_any_order(tmp_path):
    run = CountingRun()
    run.in_folder(tmp_path)
    files = {stage: sorted(tmp_path.glob(f"{stage}/*.json")) for stage in ("variance", "bound_z", "z")}
    backwards = {stage: paths[::-1] for stage, paths in files.items()}
    assert run.merge(tmp_path / "pilot.json", files) == run.merge(tmp_path / "pilot.json", backwards)


def test_chunks_of_another_model_or_size_are_computed_again(tmp_path):
    CountingRun().in_folder(tmp_path)
    other = CountingRun(parameters=random_kef(seed=1))
    other.in_folder(tmp_path)
    assert len(other.computed) == 7
    smaller = CountingRun(replace(SETTINGS, chunk_samples=500), parameters=random_kef(seed=1))
    assert smaller.in_folder(tmp_path)["samples"] == 3000
    assert len(smaller.computed) == 6 + 4 + 4


def edit(path: Path, **changes: Any) -> None:
    write_json(path, read_json(path) | changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"parameters": "another"}, "parameters 'another'"),
        ({"stage": "variance"}, "stage 'variance'"),
        ({"chunk": 0}, "second time"),
        ({"chunk": 7}, "gaps"),
        ({"count": 10}, "count 10"),
    ],
)
def test_wrong_chunks_are_refused_with_a_sentence(tmp_path, changes, message):
    run = CountingRun()
    run.in_folder(tmp_path)
    files = {stage: sorted(tmp_path.glob(f"{stage}/*.json")) for stage in ("variance", "bound_z", "z")}
    edit(files["z"][2], **changes)
    with pytest.raises(DkefError, match=message):
        run.merge(tmp_path / "pilot.json", files)


def test_a_reached_tolerance_stops_the_run_before_the_budget(tmp_path):
    generous = CountingRun(replace(SETTINGS, samples=64_000, bound_samples=64_000, tolerance=1.0))
    record = generous.in_folder(tmp_path)
    assert record["stopped"] == "tolerance"
    assert record["log_z_bias_bound"] < 1.0
    assert record["samples"] == 3000  # a chunk of each of three streams; a fourth one decided on that
    tighter = CountingRun(replace(SETTINGS, samples=64_000, bound_samples=64_000, tolerance=3e-5))
    record = tighter.in_folder(tmp_path)
    assert record["stopped"] == "tolerance"
    assert record["log_z_bias_bound"] < 3e-5
    assert 3000 < record["samples"] < 3 * 64_000
    assert ("z", 0) not in tighter.computed  # found in the folder


def test_a_spent_budget_is_told(tmp_path):
    record = CountingRun(replace(SETTINGS, tolerance=1e-9)).in_folder(tmp_path)
    assert record["stopped"] == "budget"
    assert (record["samples"], record["variance_samples"]) == (7000, 2000)


class Pareto(Weights):
    """Weights of density k^-1 r^(-1 / k - 1) for r >= 1: those of a stage and chunk are fixed by their names."""

    log_a, span = 0.0, 1000

    def __init__(self, k: float) -> None:
        self.k = k

    def span_log_r(self, stage: str, chunk: int, first: int, count: int) -> np.ndarray:
        return self.k * np.random.default_rng([STAGES.index(stage), chunk]).standard_exponential(count)


@pytest.mark.parametrize(("k", "follows", "stopped", "samples"), [
    (0.9, True, HEAVY_TAIL, 6000),  # two looks: at one chunk and at two
    (0.9, False, "budget", 3 * 16_000),
    (0.2, True, "budget", 3 * 16_000),
])  # fmt: skip
def test_a_heavy_tail_is_given_up_where_another_proposal_follows(tmp_path, k, follows, stopped, samples):
    run = CountingRun(replace(SETTINGS, samples=16_000, bound_samples=16_000, tolerance=1e-9))
    run.weights = Pareto(k)
    record, method = run.estimate_in(tmp_path, another_follows=follows)
    assert (record["stopped"], record["samples"], method.moments.count) == (stopped, samples, samples)


def test_without_a_bound_the_width_of_the_interval_decides(tmp_path):
    linear = random_kef(kind="linear", alpha_scale=0.02)
    wide, narrow = (replace(SETTINGS, tolerance=0.01, half_width=width) for width in (1.0, 1e-9))
    assert CountingRun(wide, linear).in_folder(tmp_path)["stopped"] == "tolerance"
    assert CountingRun(narrow, linear).in_folder(tmp_path)["stopped"] == "budget"


def test_settings_round_samples_up_to_whole_chunks():
    assert [SETTINGS.chunks(stage) for stage in ("variance", "bound_z", "z")] == [2, 2, 3]
    assert replace(SETTINGS, samples=3001).chunks("z") == 4


def test_time_left_reads_like_a_clock():
    assert clock(3 * 3600 + 7 * 60 + 5.4) == "3:07:05"


HALF = {"count": 500, "log_mean": 0.0, "log_m2": 1.0, "log_max": 1.0, "largest": [1.0, 0.5]}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"halves": None}, "halves is None; allowed is a list"),
        ({"halves": [HALF]}, "does not hold two halves of 1000 samples"),
        ({"halves": [HALF, HALF | {"count": 400}]}, "does not hold two halves of 1000 samples"),
        ({"halves": [HALF, {"count": 500}]}, "log_mean is missing"),
        ({"halves": [HALF, HALF | {"count": -500}]}, "their number is -500"),
        ({"halves": [HALF, HALF | {"log_mean": "high"}]}, "log_mean is 'high'; allowed is a number"),
        ({"halves": [HALF, HALF | {"log_mean": 10**400}]}, "allowed is a number that floating point can hold"),
        ({"halves": [HALF, HALF | {"log_mean": 1e300}]}, "a logarithm is not finite or beyond all use"),
        ({"halves": [HALF, HALF | {"log_max": 800.0}]}, "below the mean or above the sum"),
        ({"halves": [HALF, HALF | {"log_m2": 900.0}]}, "spread more than the largest"),
        ({"halves": [HALF, HALF | {"largest": [0.5, 1.0]}]}, "not in descending order"),
        ({"chunk": "one"}, "chunk is 'one'; allowed is a whole number"),
    ],
)
def test_forged_moments_are_refused_with_a_sentence(tmp_path, changes, message):
    run = CountingRun(replace(SETTINGS, chunk_samples=1000))
    run.in_folder(tmp_path)
    files = {stage: sorted(tmp_path.glob(f"{stage}/*.json")) for stage in ("variance", "bound_z", "z")}
    edit(files["z"][2], **changes)
    with pytest.raises(DkefError, match=message):
        run.merge(tmp_path / "pilot.json", files)


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"rho": None}, "rho is None"), ({"rho": 1e-20}, "rho is 1e-20"), ({"log_s": []}, r"log_s is \[\]")],
)
def test_a_forged_pilot_is_refused_with_a_sentence(tmp_path, changes, message):
    run = CountingRun()
    run.in_folder(tmp_path)
    files = {stage: sorted(tmp_path.glob(f"{stage}/*.json")) for stage in ("variance", "bound_z", "z")}
    edit(tmp_path / "pilot.json", **changes)
    with pytest.raises(DkefError, match=rf"pilot\.json: {message}; .*delete it"):
        run.merge(tmp_path / "pilot.json", files)


class OneLarge(Weights):
    """Uneven weights with mean 1, one of which, among the first of z, is as large as `large`."""

    span = 1 << 20
    log_a = -40.0

    def __init__(self, large: float) -> None:
        self.large = large

    def span_log_r(self, stage: str, chunk: int, first: int, count: int) -> np.ndarray:
        stages = ("percentile", "hoeffding", "stopping", "variance", "bound_z", "z")
        log_r = np.random.default_rng([stages.index(stage), chunk]).standard_normal(count) - 0.5
        if (stage, chunk) == ("z", 0):
            log_r[0] = np.log(self.large)
        return log_r


@pytest.mark.parametrize(("large", "status"), [(60.0, "ok"), (300.0, "untrusted: one sample makes")])
def test_where_one_weight_carries_the_result_more_are_drawn_and_none_is_left_out(tmp_path, large, status):
    """The others have mean 1 and mean square e: among 3,000 a weight of 60 makes a third of the sum of squares."""
    run = CountingRun(replace(SETTINGS, samples=16_000, bound_samples=16_000, tolerance=0.1))
    run.weights = OneLarge(large)
    record = run.in_folder(tmp_path)
    assert record["status"].startswith(status)
    assert (record["stopped"], record["variance_samples"], record["bound_z_samples"]) == ("tolerance", 1000, 1000)
    chunks = [("variance", 0), ("bound_z", 0), *(("z", k) for k in range((record["samples"] - 2000) // 1000))]
    drawn = np.exp(np.concatenate([run.weights.span_log_r(stage, k, 0, 1000) for stage, k in chunks]))
    assert record["log_z"] == pytest.approx(np.log(drawn.mean()), abs=1e-9)
    shares = large / drawn.sum(), large**2 / (drawn**2).sum()
    half = drawn[: 2000 + (len(drawn) - 2000) // 2]
    before = large / half.sum(), large**2 / (half**2).sum()
    assert before[0] > 0.005  # one doubling less would not have done
    assert before[1] > 0.1
    assert len(drawn) == 18_000 or shares[0] < 0.005 or shares[1] < 0.1
