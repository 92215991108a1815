"""The stage `proposals`: every proposal at every size, kept and found again."""

import json
import sys

import numpy as np
import pytest

from dkef.data.splits import Splits, read_splits, write_splits
from dkef.data.whitening import Whitening
from dkef.models.kef.density import KefModel
from dkef.models.protocol import Fit
from dkef.models.storage import write_model
from dkef.results.read import read_frame
from dkef.results.tables import PROPOSALS
from dkef.stages import proposals
from tests.normaliser.examples import log_moment, random_kef

CONFIG = {
    "dataset": "toy", "model": "dkef", "seed": 0,
    "normaliser": {
        "percentile": 30.0,
        "defensive_mixture": {"clusters": 3, "modes": 4, "mode_starts": 30, "adapt_draws": 200, "adapt_rounds": 1,
                              "renewals": 0},
        "annealing": {"temperatures": 8, "leapfrog": 2, "pilot_chains": 32},
    },
    "proposals": {"q0": [1000, 4000], "mixture": [1000], "annealed": [300]},
}  # fmt: skip


@pytest.fixture
def files(tmp_path):
    write_model(tmp_path / "model.h5", Fit(KefModel(random_kef())), {})
    rows = np.random.default_rng(0).normal(size=(90, 2))
    splits = Splits(
        train=rows[:60], valid=rows[60:75], test=rows[75:], train_rows=np.arange(60), valid_rows=np.arange(60, 75),
        test_rows=np.arange(75, 90), whitening=Whitening(np.zeros(2), np.eye(2)), title="toy", whitened=False,
        columns=("a", "b"), removed=(), digest="abc", subset_of=None,
    )  # fmt: skip
    write_splits(tmp_path / "splits.h5", splits, {})
    return tmp_path


def run(files, monkeypatch):
    words = {"config": json.dumps(CONFIG), "model": files / "model.h5", "data": files / "splits.h5",
             "folder": files / "parts", "out": files / "proposals.csv"}  # fmt: skip
    monkeypatch.setattr(sys, "argv", ["proposals", *(str(w) for k, v in words.items() for w in (f"--{k}", v))])
    proposals.main()
    return (files / "proposals.csv").read_bytes()


def test_every_estimate_has_its_row_and_agrees_with_quadrature(files, monkeypatch):
    run(files, monkeypatch)
    table = read_frame(PROPOSALS, files / "proposals.csv")
    assert list(zip(table["proposal"], table["samples"], strict=True)) == [
        ("q0", 1000), ("q0", 4000), ("mixture", 1000), ("annealed", 300)
    ]  # fmt: skip
    truth = log_moment(random_kef())
    assert (np.abs(table["log_z"] - truth) < 4 * table["stderr"]).all()  # chance of a miss about 1e-4 each
    log_p = KefModel(random_kef()).log_density(read_splits(files / "splits.h5").test).mean()
    np.testing.assert_allclose(table["log_likelihood"], log_p - table["log_z"])
    assert (table["evaluations"] >= table["samples"]).all()


def test_a_second_run_finds_everything_and_writes_the_same_bytes(files, monkeypatch):
    first = run(files, monkeypatch)
    written = {path: path.stat().st_mtime_ns for path in (files / "parts").rglob("*") if path.is_file()}
    assert len(written) > 10
    assert run(files, monkeypatch) == first
    assert written == {path: path.stat().st_mtime_ns for path in (files / "parts").rglob("*") if path.is_file()}


def estimate(proposal: str, log_z: float, stderr: float, limit: float, status: str = "ok") -> dict[str, object]:
    known = {"proposal": proposal, "samples": 10_000, "log_z": log_z, "stderr": stderr, "status": status}
    return known | {"lower_limit": limit}


def test_an_estimate_is_told_of_mass_that_another_one_found():
    """As seen on Parkinsons: 10^4 samples of q0 had no doubt of their own, and were 5.7 nats too small."""
    q0, mixture = estimate("q0", 32.2, 0.003, 32.19), estimate("mixture", 37.9, 0.07, 36.0, "untrusted: few")
    near = estimate("annealed", 37.8, 0.1, 37.5)
    rows = [q0, mixture, near]
    assert proposals.status_among(q0, rows) == "untrusted: 1e+04 samples of annealed find at least 5.3 nats more"
    assert proposals.status_among(mixture, rows) == "untrusted: few"
    assert proposals.status_among(near, rows) == "ok"
    below = estimate("mixture", 37.0, 0.1, 36.5, "untrusted: few")
    found = "untrusted: few; 1e+04 samples of annealed find at least 0.5 nats more"
    assert proposals.status_among(below, rows) == found


def test_the_table_says_what_the_estimates_say_of_each_other(files, monkeypatch):
    unknown = dict.fromkeys(
        ("bias_bound", "effective_sample_size", "pareto_k_hat", "halves_apart", "log_likelihood"), 0.0
    )
    made_up = [estimate("q0", 32.2, 0.003, 32.1), estimate("annealed", 37.9, 0.07, 37.7)]
    rows = [row | unknown | {"evaluations": 10_000} for row in made_up]
    monkeypatch.setattr(proposals, "estimates", lambda *arguments: iter(rows))
    run(files, monkeypatch)
    statuses = read_frame(PROPOSALS, files / "proposals.csv")["status"].tolist()
    assert statuses == ["untrusted: 1e+04 samples of annealed find at least 5.5 nats more", "ok"]
