"""The train stage continues only what belongs to it, and tidies up after killed runs."""

import json
import logging
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from dkef.core.arrays import Array
from dkef.core.files import pid_space
from dkef.data.splits import write_splits
from dkef.models.gaussian.density import GaussianModel
from dkef.models.protocol import Fit, FitContext
from dkef.stages import train
from tests.data.test_splits import made_up

PLACES: list[Path | None] = []
DRAWN: list[float] = []


@dataclass(frozen=True)
class Watched:
    """A Gaussian that notes where its checkpoint would be and what it draws."""

    def fit(self, rows: Array, valid: Array, context: FitContext) -> Fit:
        PLACES.append(context.checkpoint)
        DRAWN.append(context.rng("init").normal())
        return Fit(GaussianModel.fit(rows))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with splits, for which `train.main()` trains the watched model."""
    write_splits(tmp_path / "seed0.h5", made_up(), {"config": {"seed": 0}})
    spec = {"_target_": "tests.stages.test_train.Watched"}
    config = json.dumps({"dataset": "ring", "model": "a", "of": "watched", "seed": 0, "threads": 1, "spec": spec})
    files = ("--data", str(tmp_path / "seed0.h5"), "--out", str(tmp_path / "cell/model.h5"))
    arguments = ("train", "--config", config, *files, "--trace", str(tmp_path / "cell/trace.csv"))
    monkeypatch.setattr(sys, "argv", list(arguments))
    monkeypatch.setattr(train, "instantiate", lambda section: Watched())
    PLACES.clear()
    DRAWN.clear()
    return tmp_path / "cell"


def test_a_checkpoint_has_another_name_after_an_edit_of_the_code(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train.main()
    train.main()
    asked = []
    monkeypatch.setattr("dkef.training.checkpoint.sources_digest", lambda *modules: asked.append(modules) or "an edit")
    train.main()
    assert PLACES[0] == PLACES[1] != PLACES[2]
    assert asked == [("tests.stages.test_train",)]  # somebody's own model counts too


def test_the_log_opens_with_what_is_trained_before_anything_starts(
    place: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        train.main()
    n, d = made_up().train.shape
    assert caplog.messages[0] == f"a on ring, seed 0: {n} rows of {d} columns"
    assert len(caplog.messages) == 2


def test_what_killed_runs_left_is_named_and_removed(place: Path, caplog: pytest.LogCaptureFixture) -> None:
    place.mkdir()
    (place / "checkpoint-0123456789ab.h5").write_text("of other code")
    (place / f".checkpoint-0123456789ab.h5.{2**22 + 1}@{pid_space()}.partial").write_text("half of one")
    with caplog.at_level(logging.INFO):
        train.main()
    assert "checkpoint-0123456789ab.h5 is of other settings, data or code and is not continued" in caplog.text
    assert sorted(path.name for path in place.iterdir()) == ["model.h5", "trace.csv", "trace.csv.sha256"]


def test_a_variant_draws_what_the_model_it_varies_draws(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train.main()
    for names in ({"model": "b"}, {"of": "another"}):
        told = sys.argv.index("--config") + 1
        config = json.dumps(json.loads(sys.argv[told]) | names)
        monkeypatch.setattr(sys, "argv", [*sys.argv[:told], config, *sys.argv[told + 1 :]])
        train.main()
    assert DRAWN[0] == DRAWN[1] != DRAWN[2]
