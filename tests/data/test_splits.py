from pathlib import Path

import h5py
import numpy as np
import pytest

from dkef.config.schema.dataset import Dataset, Preprocessing
from dkef.core.errors import DkefError
from dkef.core.streams import rng_for
from dkef.data.copies import count_copies
from dkef.data.prepare import prepare
from dkef.data.source import RawTable, Removed
from dkef.data.splits import Splits, read_provenance, read_splits, write_splits
from dkef.models.gaussian.density import GaussianModel
from dkef.report.pages.of_files import condition_number


def made_up(whiten: bool = True, d: int = 3) -> Splits:
    rng = rng_for("test", "splits")
    x = rng.standard_normal((400, d)) @ rng.standard_normal((d, d)) * 10.0 ** np.arange(d)
    table = RawTable(x, tuple(f"c{i}" for i in range(d)), (Removed("column", "label", "not a measurement"),))
    dataset = Dataset("Made up", None, Preprocessing(whiten=whiten), subset_of="Everything")
    return prepare(table, dataset, lambda purpose: rng_for(purpose, "made up", 0))


def test_a_splits_file_gives_back_what_was_written(tmp_path: Path) -> None:
    splits = made_up()
    write_splits(tmp_path / "seed0.h5", splits, {"config": {"seed": 0}})
    again = read_splits(tmp_path / "seed0.h5")
    for name in ("train", "valid", "test", "train_rows", "valid_rows", "test_rows"):
        np.testing.assert_array_equal(getattr(again, name), getattr(splits, name))
    np.testing.assert_array_equal(again.whitening.W, splits.whitening.W)
    np.testing.assert_array_equal(again.whitening.mean, splits.whitening.mean)
    for name in ("title", "columns", "removed", "digest", "subset_of", "whitened"):
        assert getattr(again, name) == getattr(splits, name)
    assert read_provenance(tmp_path / "seed0.h5")["config"] == {"seed": 0}


def test_equal_splits_are_equal_bytes(tmp_path: Path) -> None:
    for name in ("a.h5", "b.h5"):
        write_splits(tmp_path / name, made_up(), {})
    assert (tmp_path / "a.h5").read_bytes() == (tmp_path / "b.h5").read_bytes()


def test_train_valid_and_test_are_top_level_arrays(tmp_path: Path) -> None:
    write_splits(tmp_path / "x.h5", made_up(), {})
    with h5py.File(tmp_path / "x.h5") as file:
        assert {"train", "valid", "test"} <= set(file)
        assert file["train"].dtype == np.float64


def test_a_bad_splits_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(DkefError, match=r"none\.h5 does not exist; `snakemake"):
        read_splits(tmp_path / "none.h5")
    write_splits(tmp_path / "x.h5", made_up(), {})
    whole = (tmp_path / "x.h5").read_bytes()
    (tmp_path / "x.h5").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DkefError, match="is not a whole splits file"):
        read_splits(tmp_path / "x.h5")
    (tmp_path / "x.h5").write_text("nothing of the kind")
    with pytest.raises(DkefError, match="is not a whole splits file"):
        read_splits(tmp_path / "x.h5")


def test_a_flipped_bit_in_the_rows_is_noticed(tmp_path: Path) -> None:
    splits = made_up()
    write_splits(tmp_path / "x.h5", splits, {})
    data = bytearray((tmp_path / "x.h5").read_bytes())
    place = data.find(splits.train[5].tobytes())
    assert place > 0
    data[place] ^= 1
    (tmp_path / "x.h5").write_bytes(bytes(data))
    with pytest.raises(DkefError, match="is not a whole splits file"):
        read_splits(tmp_path / "x.h5")


def test_log_det_takes_a_log_likelihood_to_raw_units() -> None:
    splits = made_up()
    x = splits.whitening.invert(splits.test)
    raw = GaussianModel.fit(splits.whitening.invert(splits.train)).log_density(x)
    whitened = GaussianModel.fit(splits.train).log_density(splits.test)
    # The same Gaussian in two systems of units: equal but for rounding times the condition number (about 1e3).
    np.testing.assert_allclose(whitened + splits.whitening.log_det, raw, rtol=1e-8)


def test_whitening_inverts() -> None:
    splits = made_up()
    x = splits.whitening.invert(splits.train)
    np.testing.assert_allclose(splits.whitening.apply(x), splits.train, atol=1e-9)


def test_raw_splits_have_the_identity_as_whitening() -> None:
    splits = made_up(whiten=False)
    np.testing.assert_array_equal(splits.whitening.W, np.eye(3))
    assert splits.whitening.log_det == 0
    np.testing.assert_array_equal(splits.whitening.invert(splits.test), splits.test)


def test_the_condition_number_is_that_of_the_raw_covariance() -> None:
    splits = made_up()
    covariance = np.cov(splits.whitening.invert(splits.train), rowvar=False)
    assert condition_number(splits) == pytest.approx(np.linalg.cond(covariance), rel=1e-6)


def twins() -> Splits:
    """50 rows that all stand twice in the table; noise hides that from whoever sees only the splits."""
    x = np.repeat(np.round(rng_for("test", "twins").standard_normal((50, 2)), 3), 2, axis=0)
    dataset = Dataset("Twins", None, Preprocessing(dequantise_gaps=1.0))
    return prepare(RawTable(x, ("a", "b")), dataset, lambda purpose: rng_for(purpose, "twins", 0))


def test_rows_are_counted_that_were_copies_of_training_rows_before_noise() -> None:
    splits = twins()
    for part in ("valid", "test"):
        # raw rows 2 i and 2 i + 1 are equal
        by_hand = sum(row // 2 in splits.train_rows // 2 for row in getattr(splits, f"{part}_rows"))
        assert count_copies(getattr(splits, f"{part}_copies")).exact == by_hand > 0


def test_a_splits_file_knows_which_rows_are_copies(tmp_path: Path) -> None:
    splits = twins()
    write_splits(tmp_path / "seed0.h5", splits, {})
    again = read_splits(tmp_path / "seed0.h5")
    assert splits.test_copies is not None
    np.testing.assert_array_equal(again.test_copies, splits.test_copies)
    np.testing.assert_array_equal(again.valid_copies, splits.valid_copies)
    with h5py.File(tmp_path / "seed0.h5") as file:
        assert file["copies/test"].shape == (len(splits.test),)
