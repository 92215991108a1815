import gzip
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from dkef.core.errors import ConfigError, DkefError
from dkef.core.streams import rng_for
from dkef.data.particles import FEATURES, Hepmass, MiniBoone, repeated_minimum

DROP = dict.fromkeys(("f5", "f9", "f13", "f17", "f21"), "discrete")


def miniboone_text(signal: np.ndarray, background: int = 3) -> str:
    rows = [" ".join(f"{v:.6g}" for v in row) for row in signal]
    return "\n".join([f" {len(signal)}  {background}", *rows, *(["9 " * 50] * background)]) + "\n"


@pytest.fixture
def signal() -> np.ndarray:
    """Like MiniBooNE: two outlier rows, column 3 with a repeated minimum, column 7 with a repeated maximum."""
    x = rng_for("test", "miniboone").standard_normal((200, 50)).round(5)
    x[[4, 70]] = -999.0
    x[10:16, 2] = -50.0
    x[10:60, 6] = 50.0
    return x


def test_miniboone_keeps_signal_rows_without_outliers_and_without_repeated_minima(
    tmp_path: Path, signal: np.ndarray
) -> None:
    (tmp_path / "m.txt").write_text(miniboone_text(signal))
    table = MiniBoone(file="m.txt").read(tmp_path, rng_for("test"))
    kept_rows, kept_columns = np.delete(np.arange(200), [4, 70]), np.delete(np.arange(50), 2)
    np.testing.assert_array_equal(table.values, signal[np.ix_(kept_rows, kept_columns)])
    assert [(entry.kind, entry.name) for entry in table.removed] == [("rows", "2"), ("column", "uci_col_03")]
    assert "uci_col_07" in table.columns  # MAF's slip: only the smallest value is counted


def test_repeated_minimum_is_mafs_rule_counted_by_hand() -> None:
    x = rng_for("test", "repeats").integers(0, 6, (40, 30)).astype(float)
    by_hand = [Counter(column)[min(column)] > 5 for column in x.T]
    assert 0 < sum(by_hand) < 30
    np.testing.assert_array_equal(repeated_minimum(x, 5), by_hand)


def test_row_order_of_the_raw_file_does_not_matter_to_mafs_filters(tmp_path: Path, signal: np.ndarray) -> None:
    tables = []
    for order in (np.arange(200), rng_for("test", "order").permutation(200)):
        (tmp_path / "m.txt").write_text(miniboone_text(signal[order]))
        tables.append(MiniBoone(file="m.txt").read(tmp_path, rng_for("test")))
    assert tables[0].columns == tables[1].columns
    assert tables[0].removed == tables[1].removed
    np.testing.assert_array_equal(np.sort(tables[0].values, axis=0), np.sort(tables[1].values, axis=0))


def test_a_cut_or_foreign_miniboone_file_is_one_sentence(tmp_path: Path, signal: np.ndarray) -> None:
    lines = miniboone_text(signal, background=0).splitlines()
    (tmp_path / "m.txt").write_text("\n".join(lines[:150]))
    with pytest.raises(DkefError, match="is cut off: 149 of 200 signal rows"):
        MiniBoone(file="m.txt").read(tmp_path, rng_for("test"))
    for first in (lines[1], "9" * 40 + " 5"):  # found by fuzzing: a count beyond what an index holds
        (tmp_path / "m.txt").write_text("\n".join([first, *lines[1:]]))
        with pytest.raises(DkefError, match=r"is it MiniBooNE_PID\.txt\?"):
            MiniBoone(file="m.txt").read(tmp_path, rng_for("test"))
    (tmp_path / "m.txt").write_text("\n".join([lines[0], *(line + " 7" for line in lines[1:])]))
    with pytest.raises(DkefError, match="data rows have 51 fields where the columns are 50"):
        MiniBoone(file="m.txt").read(tmp_path, rng_for("test"))


def hepmass_text(x: np.ndarray, label: np.ndarray, spurious: str = "") -> bytes:
    header = ",".join(["# label", *FEATURES]) + (",mass" if spurious else "")
    rows = [",".join(f"{v:.18e}" for v in (a, *row)) + spurious for a, row in zip(label, x, strict=True)]
    return gzip.compress("\n".join([header, *rows]).encode())


@pytest.fixture
def hepmass(tmp_path: Path) -> tuple[np.ndarray, np.ndarray]:
    rng = rng_for("test", "hepmass")
    x, label = rng.standard_normal((300, 27)), rng.integers(0, 2, 300).astype(float)
    (tmp_path / "train.gz").write_bytes(hepmass_text(x[:200], label[:200]))
    (tmp_path / "test.gz").write_bytes(hepmass_text(x[200:], label[200:], spurious=",1.0"))
    return x, label


def test_hepmass_keeps_22_features_of_signal_rows_of_both_files(
    tmp_path: Path, hepmass: tuple[np.ndarray, np.ndarray]
) -> None:
    x, label = hepmass
    table = Hepmass("train.gz", "test.gz", drop=DROP).read(tmp_path, rng_for("test"))
    kept = [i for i in range(27) if f"f{i}" not in DROP]
    np.testing.assert_array_equal(table.values, x[label == 1][:, kept])
    assert len(table.columns) == 22
    assert {entry.name for entry in table.removed} == set(DROP)


def test_mafs_features_of_hepmass_are_those_without_repeated_minima_among_the_rows_of_the_first_file(
    tmp_path: Path,
) -> None:
    rng = rng_for("test", "hepmass features")
    x, label = rng.standard_normal((400, 27)).round(6), np.ones(400)
    x[:200, 5] = rng.integers(0, 3, 200)  # discrete: its smallest value repeats
    x[200:, 9] = -7.0  # repeats in the second file only, which MAF does not look at
    x[:200, 13] = np.where(np.arange(200) < 5, -7.0, 1.0)  # repeats five times, which is allowed
    (tmp_path / "train.gz").write_bytes(hepmass_text(x[:200], label[:200]))
    (tmp_path / "test.gz").write_bytes(hepmass_text(x[200:], label[200:]))
    table = Hepmass("train.gz", "test.gz", features="maf", drop=DROP).read(tmp_path, rng_for("test"))
    by_hand = [i for i, column in enumerate(x[:200].T) if Counter(column)[min(column)] <= 5]
    assert by_hand == [i for i in range(27) if i != 5]
    assert table.columns == tuple(f"f{i}" for i in by_hand)
    np.testing.assert_array_equal(table.values, x[:, by_hand])
    assert [(entry.kind, entry.name) for entry in table.removed] == [("column", "f5")]


@pytest.mark.parametrize("features", ["maf", "listed"])
def test_the_rows_of_the_second_hepmass_file_are_its_own_test_rows(
    tmp_path: Path, hepmass: tuple[np.ndarray, np.ndarray], features: str
) -> None:
    table = Hepmass("train.gz", "test.gz", features=features).read(tmp_path, rng_for("test"))
    assert table.test_rows == int(hepmass[1][200:].sum())
    with pytest.raises(ConfigError, match=r"features is 'all'; allowed is one of maf, listed"):
        Hepmass(features="all")


def test_a_header_longer_than_the_rows_is_read_too(tmp_path: Path, hepmass: tuple[np.ndarray, np.ndarray]) -> None:
    x, label = hepmass
    text = gzip.decompress((tmp_path / "train.gz").read_bytes()).replace(b",f26", b",f26,mass", 1)
    (tmp_path / "train.gz").write_bytes(gzip.compress(text))
    table = Hepmass("train.gz", "test.gz").read(tmp_path, rng_for("test"))
    np.testing.assert_array_equal(table.values, x[label == 1])


def test_hepmass_reads_only_the_rows_asked_for(tmp_path: Path, hepmass: tuple[np.ndarray, np.ndarray]) -> None:
    x, label = hepmass
    table = Hepmass("train.gz", "test.gz", train_file_rows=50, test_file_rows=20).read(tmp_path, rng_for("test"))
    rows = np.r_[0:50, 200:220]
    np.testing.assert_array_equal(table.values, x[rows][label[rows] == 1])


def test_bad_hepmass_input_is_one_sentence(tmp_path: Path, hepmass: tuple[np.ndarray, np.ndarray]) -> None:
    whole = (tmp_path / "train.gz").read_bytes()
    (tmp_path / "train.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DkefError, match=r"train\.gz is cut off"):
        Hepmass("train.gz", "test.gz").read(tmp_path, rng_for("test"))
    (tmp_path / "train.gz").write_bytes(gzip.compress(b"a,b\n1,2\n"))
    with pytest.raises(DkefError, match=r"is not 'label, f0 to f26'; is it HEPMASS\?"):
        Hepmass("train.gz", "test.gz").read(tmp_path, rng_for("test"))
    header, first, *rest = gzip.decompress(whole).decode().splitlines()  # found by fuzzing: pandas counts its fields
    (tmp_path / "train.gz").write_bytes(gzip.compress("\n".join([header, first.rpartition(",")[0], *rest]).encode()))
    for drop in ({}, {"f5": "discrete"}):
        with pytest.raises(DkefError, match=r"train\.gz: the first data row is too short; every row must have as many"):
            Hepmass("train.gz", "test.gz", drop=drop).read(tmp_path, rng_for("test"))
    for name in ("train.gz", "test.gz"):
        (tmp_path / name).write_bytes(hepmass_text(hepmass[0], np.zeros(300)))
    with pytest.raises(DkefError, match="have no signal row"):
        Hepmass("train.gz", "test.gz").read(tmp_path, rng_for("test"))
    with pytest.raises(ConfigError, match=r"drop is 'f27'"):
        Hepmass(drop={"f27": "no such feature"})
    with pytest.raises(ConfigError, match=r"train_file_rows is 0"):
        Hepmass(train_file_rows=0)


PEAK_OF_READING = """
import resource, sys
from pathlib import Path
from dkef.data.particles import Hepmass
from dkef.core.streams import rng_for
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
source = Hepmass("train.gz", "test.gz", train_file_rows=None, drop={f"f{i}": "x" for i in range(5)})
table = source.read(Path(sys.argv[1]), rng_for("test"))
print(table.values.nbytes // 1024, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_reading_takes_memory_for_the_kept_numbers_not_for_the_text(
    tmp_path: Path, hepmass: tuple[np.ndarray, np.ndarray]
) -> None:
    # 600,000 rows, a hundredth of them signal: all at once they are 134 MB as numbers, in more than one copy.
    x, label = rng_for("test", "big").integers(0, 9, (5000, 27)), np.zeros(5000)
    label[::100] = 1
    rows = "".join(f"{a:g},{','.join(map(str, row))}\n" for a, row in zip(label, x, strict=True))
    with gzip.open(tmp_path / "train.gz", "wt", compresslevel=1) as file:
        file.write(",".join(["label", *FEATURES]) + "\n" + rows * 120)
    done = subprocess.run(
        [sys.executable, "-c", PEAK_OF_READING, str(tmp_path)], check=True, capture_output=True, text=True
    )
    kept, peak = map(int, done.stdout.split())
    assert kept == (6000 + int(hepmass[1][200:].sum())) * 22 * 8 // 1024
    # One chunk of 50,000 rows is 11 MB, with the parser's copies 45 MB (in kB here).
    assert peak < 65_000
