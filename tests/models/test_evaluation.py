"""Evaluations are read whole or refused in one sentence."""

from pathlib import Path

import h5py
import numpy as np
import pytest

from dkef.core.errors import DkefError
from dkef.models.evaluation import read_evaluation, write_evaluation

ARRAYS = {"log_density": np.arange(4.0), "score": np.arange(8.0).reshape(4, 2), "curvature": -np.ones((4, 2))}
RECORD = {"status": "ok", "normalised": False, "log_z_status": "ok", "config_digest": "abc"}


def test_what_the_evaluate_stage_writes_comes_back(tmp_path: Path) -> None:
    write_evaluation(tmp_path / "e.h5", ARRAYS, RECORD)
    found = read_evaluation(tmp_path / "e.h5", (4, 2))
    assert found.record == RECORD
    assert found.status == "ok"
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(getattr(found, name), array)
    assert found.true_score is None


def test_a_missing_a_damaged_and_an_incomplete_file_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(DkefError, match="does not exist"):
        read_evaluation(tmp_path / "missing.h5", (4, 2))
    (tmp_path / "text.h5").write_text("no HDF5")
    write_evaluation(tmp_path / "part.h5", {"score": ARRAYS["score"]}, RECORD)
    with h5py.File(tmp_path / "bare.h5", "w") as file:
        file["score"] = ARRAYS["score"]
    for name in ("text.h5", "part.h5", "bare.h5"):
        with pytest.raises(DkefError, match="is not an evaluation"):
            read_evaluation(tmp_path / name, (4, 2))


def test_an_array_of_another_length_is_named(tmp_path: Path) -> None:
    write_evaluation(tmp_path / "e.h5", ARRAYS | {"curvature": -np.ones((3, 2))}, RECORD)
    with pytest.raises(DkefError, match=r"curvature has the shape \(3, 2\) for test points of the shape \(4, 2\)"):
        read_evaluation(tmp_path / "e.h5", (4, 2))
