import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dkef.config.compose import compose_cell
from dkef.config.typed import instantiate, plain
from dkef.core.errors import ConfigError, DkefError
from dkef.core.streams import rng_for
from dkef.data.copies import EXACT
from dkef.data.particles import repeated_minimum
from dkef.data.prepare import median_gaps
from dkef.data.source import RawTable
from dkef.data.splits import Splits, read_provenance, read_splits
from dkef.stages.preprocess import main

MIRRORS = [Path(entry) for entry in os.environ.get("DKEF_DATA_MIRROR", "").split(os.pathsep) if entry]
SIZES = {  # D, train, valid, test
    "redwine": (11, 1296, 144, 159),
    "whitewine": (11, 3969, 440, 489),
    "parkinsons": (15, 4760, 528, 587),
    "miniboone_part": (43, 6849, 761, 845),
    "hepmass_part": (22, 5961, 662, 3307),
}
SYNTHETIC = ("funnel", "banana", "ring", "square", "cosine", "mog", "mor")


def raw_folder(*files: str) -> Path:
    """The mirror that holds some raw files; skips the test where there is none."""
    if not MIRRORS:
        pytest.skip("real data: set DKEF_DATA_MIRROR to a folder with the raw files")
    for folder in MIRRORS:
        if all((folder / file).is_file() for file in files):
            return folder
    pytest.skip(f"no folder of DKEF_DATA_MIRROR holds {', '.join(files)}")


def run(folder: Path, name: str, seed: int = 0, raw: Path | None = None, overrides: tuple[str, ...] = ()) -> Splits:
    dataset = plain(compose_cell((f"dataset={name}", *overrides)).dataset)
    out = folder / "processed" / name / f"seed{seed}.h5"
    config = json.dumps({"name": name, "seed": seed, "dataset": dataset})
    main(["--config", config, "--raw", str(raw or folder), "--out", str(out)])
    return read_splits(out)


def raw_table(name: str) -> RawTable:
    source = instantiate(compose_cell((f"dataset={name}",)).dataset.source)
    table = source.read(raw_folder(*source.files), rng_for("test"))
    assert isinstance(table, RawTable)
    return table


def real(folder: Path, name: str, seed: int = 0, overrides: tuple[str, ...] = ()) -> Splits:
    files = instantiate(compose_cell((f"dataset={name}",)).dataset.source).files
    return run(folder, name, seed, raw_folder(*files), overrides)


@pytest.mark.parametrize(("name", "d", "rows"), [("wine_recognition", 13, 178), ("breast_cancer", 30, 569)])
def test_bundled_tables_need_no_network(tmp_path: Path, name: str, d: int, rows: int) -> None:
    from sklearn import datasets

    splits = run(tmp_path, name)
    assert splits.dimension == d
    x = np.concatenate([splits.train, splits.valid, splits.test])
    order = np.concatenate([splits.train_rows, splits.valid_rows, splits.test_rows])
    assert len(x) == rows
    expected = (datasets.load_wine if d == 13 else datasets.load_breast_cancer)().data
    back = splits.whitening.invert(x)
    # Whitened coordinates are of size 1, so raw ones come back to rounding times the largest column (4e3).
    np.testing.assert_allclose(back, expected[order], atol=1e-7)
    np.testing.assert_allclose(np.cov(splits.train, rowvar=False, bias=True), np.eye(d), atol=1e-8)


@pytest.mark.parametrize("name", SYNTHETIC)
def test_synthetic_sets_have_the_papers_sizes_and_raw_units(tmp_path: Path, name: str) -> None:
    splits = run(tmp_path, name)
    assert (len(splits.train), len(splits.valid), len(splits.test)) == (8100, 900, 1000)
    assert not splits.whitened
    law = instantiate(compose_cell((f"dataset={name}",)).dataset.source).true_density()
    assert np.isfinite(law.log_density(splits.test)).all()


def test_figure_1_has_its_own_sizes_and_is_shuffled(tmp_path: Path) -> None:
    splits = run(tmp_path, "gaussian_scales")
    assert (len(splits.train), len(splits.valid), len(splits.test)) == (8910, 990, 100)
    # 30 % of the first thousand rows come from the narrow component, whose rows are drawn first: sd 0.0145.
    assert (splits.train_rows[:1000] < 3000).mean() == pytest.approx(0.3, abs=0.06)


def test_seeds_draw_other_rows_and_datasets_have_streams_of_their_own(tmp_path: Path) -> None:
    ring, again, other = run(tmp_path, "ring"), run(tmp_path, "ring"), run(tmp_path, "ring", seed=1)
    np.testing.assert_array_equal(ring.train, again.train)
    assert not set(ring.train[:, 0]) & set(other.train[:, 0])
    assert not np.array_equal(ring.train_rows, run(tmp_path, "mor").train_rows)


def test_provenance_is_in_the_file(tmp_path: Path) -> None:
    run(tmp_path, "ring", seed=3)
    record = read_provenance(tmp_path / "processed/ring/seed3.h5")
    assert record["config"]["seed"] == 3
    assert {"config_digest", "code_version", "libraries"} <= set(record)


def test_the_law_of_a_whitened_synthetic_set_is_known_too(tmp_path: Path) -> None:
    raw = run(tmp_path / "raw", "banana")
    white = run(tmp_path / "white", "banana", overrides=("dataset.preprocessing.whiten=true",))
    law = instantiate(compose_cell(("dataset=banana",)).dataset.source).true_density()
    image = law.image(white.whitening.mean, white.whitening.W)
    expected = law.log_density(raw.test) - white.whitening.log_det
    np.testing.assert_allclose(image.log_density(white.test), expected, rtol=1e-9)


def test_fetch_and_preprocess_import_neither_tensorflow_nor_scikit_learn() -> None:
    code = "import sys, dkef.stages.fetch, dkef.stages.preprocess;"
    code += "import dkef.data.synthetic.source, dkef.data.tables, dkef.data.particles;"
    code += "sys.exit(bool({'tensorflow', 'sklearn', 'matplotlib', 'snakemake'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def own_dataset(path: str, **steps: object) -> dict[str, object]:
    source = {"_target_": "dkef.data.tables.Csv", "paths": [path], "drop": {"label": "not a measurement"}}
    return {"title": "Mine", "source": source, "preprocessing": steps}


def test_ones_own_csv_needs_a_path_and_nothing_else(tmp_path: Path) -> None:
    x = rng_for("test", "mine").standard_normal((100, 2))
    rows = "\n".join(f"{a!r},yes,{b!r}" for a, b in x.tolist())
    (tmp_path / "mine.csv").write_text(f"a,label,b\n{rows}\n")
    config = {"name": "mine", "seed": 0, "dataset": own_dataset(str(tmp_path / "mine.csv"), whiten=False)}
    main(["--config", json.dumps(config), "--out", str(tmp_path / "out.h5")])
    splits = read_splits(tmp_path / "out.h5")
    np.testing.assert_array_equal(splits.train, x[splits.train_rows])
    assert splits.columns == ("a", "b")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a,label,b\n1,x,2\n", "dataset mine: 1 rows are too few|dataset mine: column 'a' is constant"),
        ("a,label,b\n" + "1,x,2\n3,x,4\n5,x,7\n", "dataset mine: 3 rows are too few"),
        ("a,b\n1,2\n", "dataset mine: .*column 'label' is missing"),
        ("<html></html>", "dataset mine: .*is a web page, not data"),
        ("a,label,b\n" + "1,x,2\n" * 50, "dataset mine: column 'a' is constant"),
        ("a,label,b\n" + "".join(f"{i},x,{i}\n" for i in range(50)), "columns 'a' and 'b' are equal in every row"),
        ("a,label,b\n" + "".join(f"{i},x,{2 * i}\n" for i in range(50)), "2 columns are linearly dependent"),
    ],
)
def test_bad_input_is_one_sentence_and_leaves_nothing_behind(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "mine.csv").write_text(text)
    out = tmp_path / "processed" / "out.h5"
    config = {"name": "mine", "seed": 0, "dataset": own_dataset(str(tmp_path / "mine.csv"))}
    with pytest.raises(DkefError, match=sentence) as caught:
        main(["--config", json.dumps(config), "--out", str(out)])
    assert "\\n" not in str(caught.value)  # a line break shows as its escape
    assert not list(tmp_path.rglob("*out.h5*"))


def test_a_misspelt_key_is_one_sentence(tmp_path: Path) -> None:
    dataset = own_dataset("x.csv", whitenn=True)
    with pytest.raises(ConfigError, match="whitenn"):
        main(["--config", json.dumps({"name": "mine", "seed": 0, "dataset": dataset}), "--out", str(tmp_path / "o.h5")])


@pytest.mark.parametrize(
    ("name", "seed"),
    [(name, seed) for name in SIZES for seed in range(1 if name.endswith("_part") else 15)],
)
def test_real_sets_have_the_sizes_of_the_fact_sheet_on_every_seed(tmp_path: Path, name: str, seed: int) -> None:
    splits = real(tmp_path, name, seed)
    assert (splits.dimension, len(splits.train), len(splits.valid), len(splits.test)) == SIZES[name]
    np.testing.assert_allclose(np.cov(splits.train, rowvar=False, bias=True), np.eye(splits.dimension), atol=1e-8)
    rows = np.concatenate([splits.train_rows, splits.valid_rows, splits.test_rows])
    assert len(set(rows)) == len(rows)
    known = {row.tobytes() for row in np.concatenate([splits.train, splits.valid])}
    assert not any(row.tobytes() in known for row in splits.test)
    assert (splits.subset_of is not None) == name.endswith("_part")


def test_parkinsons_loses_the_four_columns_of_the_fact_sheet_in_order(tmp_path: Path) -> None:
    splits = real(tmp_path, "parkinsons")
    filtered = [entry.name for entry in splits.removed if "correlation" in entry.reason]
    assert filtered == ["Jitter(%)", "Jitter:RAP", "Shimmer", "Shimmer:APQ3"]
    correlation = np.abs(np.corrcoef(splits.whitening.invert(splits.train), rowvar=False)) - np.eye(15)
    assert correlation.max() < 0.98


def test_no_column_that_maf_kept_of_miniboone_has_a_repeated_minimum() -> None:
    x = raw_table("miniboone_part").values
    assert not repeated_minimum(x, 5).any()
    assert (x[:, 0] > -100).all()


@pytest.mark.parametrize(
    ("name", "gaps", "distinct"),
    [
        ("redwine", [0.1, 0.005, 0.01, 0.1, 0.001, 1, 1, 1e-5, 0.01, 0.01, 0.1], 1359),
        ("whitewine", [0.1, 0.005, 0.01, 0.05, 0.001, 1, 1, 1e-5, 0.01, 0.01, 0.05], 3961),
    ],
)
def test_wine_gaps_and_duplicates_are_those_of_the_fact_sheet(
    tmp_path: Path, name: str, gaps: list[float], distinct: int
) -> None:
    np.testing.assert_allclose(median_gaps(raw_table(name).values), gaps, rtol=1e-6)
    splits = real(tmp_path, name, overrides=("dataset.preprocessing.drop_duplicate_rows=true",))
    assert len(splits.train) + len(splits.valid) + len(splits.test) == distinct


def test_fidelity_changes_the_noise_of_the_wines_and_not_the_split(tmp_path: Path) -> None:
    paper = real(tmp_path / "paper", "redwine")
    code = real(tmp_path / "code", "redwine", overrides=("fidelity=code",))
    np.testing.assert_array_equal(paper.train_rows, code.train_rows)
    table = raw_table("redwine")
    gaps = median_gaps(table.values)
    for splits, width in ((paper, 1.0), (code, 2.0)):
        noise = (splits.whitening.invert(splits.train) - table.values[splits.train_rows]) / gaps
        assert np.abs(noise).max() == pytest.approx(width / 2, rel=1e-3)
    # Whitened on all rows, the training part alone is not quite white.
    excess = np.abs(np.cov(code.train, rowvar=False, bias=True) - np.eye(11)).max()
    assert 1e-3 < excess < 0.5


def test_copies_in_a_table_of_the_users_own_are_a_warning_that_says_what_to_do(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    distinct = np.round(rng_for("test", "own copies").normal(size=(80, 2)), 3)
    rows = "".join(f"{a},{b}\n" for a, b in np.concatenate([distinct, distinct]))
    (tmp_path / "mine.csv").write_text(f"a,b\n{rows}")
    source = {"_target_": "dkef.data.tables.Csv", "paths": [str(tmp_path / "mine.csv")]}
    for how, warned in (("rows", True), ("distinct_rows", False)):
        dataset = {"title": "Mine", "source": source, "preprocessing": {"split_by": how}}
        config = json.dumps({"name": "mine", "seed": 0, "dataset": dataset})
        caplog.clear()
        main(["--config", config, "--raw", str(tmp_path), "--out", str(tmp_path / f"{how}.h5")])
        warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
        assert bool(warnings) == warned
        if warned:
            exact = int((read_splits(tmp_path / "rows.h5").test_copies == EXACT).sum())
            assert any(f"{exact} test rows are exact and 0 near copies" in text for text in warnings)
            assert all("split_by: distinct_rows" in text for text in warnings)
