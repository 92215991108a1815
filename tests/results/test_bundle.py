"""Bundles: what goes in comes out, machines merge, and damage is one sentence."""

import json
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest

from dkef.config.plan import Plan
from dkef.core.errors import DkefError
from dkef.report.bundled import write_all
from dkef.report.figures.drawing import draw
from dkef.results.bundle import CELL_NUMBERS, CELLS, Bundle, merge, read_bundle, write_bundle
from dkef.results.publish import results_of
from dkef.results.read import Grid
from dkef.results.tables import GRIDS, METRICS, OBJECTIVE_COSTS
from dkef.stages import publish
from tests.made_up import benchmark_metrics, scales_inputs, synthetic_inputs, trace

ROOT = Path(__file__).parents[2]


def planar_inputs():
    return synthetic_inputs(("ring",), ("gaussian", "dkef_g15"))


def bundle(seeds: int = 3, code_date: str = "2026-01-01", digest: str = "c0", experiment: str = "mine") -> Bundle:
    """RedWine with two models, every metric of which says which code it is of."""
    metrics = benchmark_metrics(("redwine",), seeds)
    metrics = metrics[metrics["model"].isin(["dkef", "maf"])].assign(code_version=code_date)
    texts = metrics.assign(value=[repr(v) if v == v else "" for v in metrics["value"]], stderr="0.1").astype(str)
    keys = sorted({(d, m, int(s)) for d, m, s in texts[["dataset", "model", "seed"]].to_numpy()})
    cells = pd.DataFrame([
        dict.fromkeys(CELLS, "x") | {
            "dataset": d, "model": m, "seed": s, "config_digest": digest, "code_date": code_date,
            "code_version": code_date, **dict.fromkeys(CELL_NUMBERS), "train_seconds": 1.5,
        }
        for d, m, s in keys
    ])  # fmt: skip
    rng = np.random.default_rng(0)
    traces = {key: trace(-40.0, 30, rng) for key in keys if key[1] == "dkef"}
    facts = {"dataset": "redwine", "model": "dkef", "seed": 0, "masses": {"first_mode": 0.5}}
    arrays = {"axis": np.arange(3.0), "log_density": np.array([[-75.0, -76.5, -1e9]] * 3)}
    grids = {("redwine", "dkef", 0): Grid(arrays, facts)}
    return Bundle(experiment, cells, texts, traces, {("redwine", "dkef", 0): facts}, grids)


def config(seeds: int = 3) -> str:
    entry = {"name": "redwine", "title": "RedWine", "models": ["dkef", "maf"], "seeds": list(range(seeds)),
             "synthetic": False, "subset_of": None, "reference": "dkef"}  # fmt: skip
    return json.dumps({"experiment": "mine", "title": "Mine", "reduced": None, "datasets": [entry]})


def test_a_bundle_reads_as_it_was_written(tmp_path):
    wrote = bundle()
    write_bundle(tmp_path, wrote)
    read = read_bundle(tmp_path)
    assert read.keys == wrote.keys
    assert dict(read.facts) == dict(wrote.facts)
    assert set(read.traces) == set(wrote.traces)
    one = ("redwine", "dkef", 1)
    np.testing.assert_allclose(read.traces[one]["validation_loss"], wrote.traces[one]["validation_loss"], rtol=1e-5)
    # Figures show 9 nats below the maximum, wherever that is: most of the mass may lie outside the panel.
    np.testing.assert_allclose(read.grids["redwine", "dkef", 0]["log_density"][0], [-75.0, -76.5, -99.0], atol=0.05)
    results = results_of(read, config())
    values = benchmark_metrics(("redwine",), 3)
    maf = values[(values["model"] == "maf") & (values["metric"] == "score_loss")]["value"]
    assert [run.value for run in results.runs("redwine", "maf", "score_loss").values()] == list(maf)
    assert results.median("redwine", "maf", "score_loss").value == np.median(maf)


def test_claims_on_cost_read_the_step_times_of_a_bundle(tmp_path):
    wrote = bundle()
    wrote = replace(wrote, cells=wrote.cells.assign(cpu_seconds_per_step=np.arange(6.0)))
    write_bundle(tmp_path, wrote)
    costs = results_of(read_bundle(tmp_path), config()).frame(OBJECTIVE_COSTS)
    chosen = costs[(costs["model"] == "dkef") & (costs["seed"] == 2)]
    assert list(chosen["cpu_seconds_per_step"]) == [2.0]


def test_a_density_of_one_coordinate_is_drawn_as_a_smooth_line(tmp_path):
    """Figure 1 draws exp of it, where steps of 1/64 nat are to be seen: 1.6 %."""
    axis = np.linspace(-3, 3, 401)
    arrays = {"axis": axis, "log_density": -(axis**2) / 2, "kernel": np.exp(-(axis**2) / 8)[None]}
    key = ("gaussian_scales", "kef_g_scales", 0)
    facts = dict(zip(("dataset", "model", "seed"), key, strict=True))
    write_bundle(tmp_path, replace(bundle(), grids={key: Grid(arrays, facts)}))
    read = read_bundle(tmp_path).grids[key]
    for name, array in arrays.items():
        np.testing.assert_allclose(read[name], array, rtol=2**-11, atol=1e-6)  # float16 has 11 bits


def test_the_truth_of_a_set_is_kept_once_and_belongs_to_every_grid(tmp_path):
    """A grid with a truth of its own, as after a change of the distribution, keeps it."""
    axis, low, high = np.arange(4.0), np.full((4, 4), -3.0), np.full((4, 4), -1.0)
    truths = {"a": low, "b": low, "c": high}
    grids = {
        ("ring", model, 0): Grid(
            {"axis": axis, "log_density": np.eye(4), "true_log_density": truth},
            {"dataset": "ring", "model": model, "seed": 0},
        )
        for model, truth in truths.items()
    }
    write_bundle(tmp_path, replace(bundle(), grids=grids))
    stored = {path.stem: set(h5py.File(path)) for path in (tmp_path / "grids/ring").glob("*.h5")}
    assert [name for name, arrays in sorted(stored.items()) if "true_log_density" in arrays] == ["c_seed0", "truth"]
    read = read_bundle(tmp_path).grids
    for model, truth in truths.items():
        np.testing.assert_array_equal(read["ring", model, 0]["true_log_density"], truth)
    (tmp_path / "grids/ring/truth.h5").write_bytes(b"cut")
    with pytest.raises(DkefError, match=r"truth\.h5 .*take the bundle from git again"):
        read_bundle(tmp_path)


def test_a_bundle_that_was_read_is_written_as_equal_bytes(tmp_path):
    write_bundle(tmp_path / "a", bundle())
    write_bundle(tmp_path / "b", read_bundle(tmp_path / "a"))
    files = sorted(path.relative_to(tmp_path / "a") for path in (tmp_path / "a").rglob("*") if path.is_file())
    assert files
    assert all((tmp_path / "a" / f).read_bytes() == (tmp_path / "b" / f).read_bytes() for f in files)


def test_machines_merge_and_the_later_code_wins():
    old, new = bundle(5, "2026-01-01"), bundle(3, "2026-02-01")
    for order in ([old, new], [new, old]):
        merged = merge(order)
        assert len(merged.cells) == 2 * 5
        versions = dict(zip(merged.keys, merged.cells["code_version"], strict=True))
        assert versions["redwine", "dkef", 2] == "2026-02-01"
        assert versions["redwine", "dkef", 4] == "2026-01-01"
        of_metrics = merged.metrics.groupby(["dataset", "model", "seed"])["code_version"].unique()
        assert list(of_metrics["redwine", "dkef", "2"]) == ["2026-02-01"]
        assert len(merged.metrics) == len(old.metrics)


def test_two_configurations_of_one_cell_are_an_error_that_names_both():
    with pytest.raises(DkefError, match=r"redwine/dkef/0 was run with configuration c0 .* and with c1"):
        merge([bundle(), bundle(digest="c1")])


def test_a_cell_that_was_run_again_replaces_its_older_self_when_asked(tmp_path, monkeypatch):
    write_bundle(tmp_path, bundle(5, experiment="smoke"))
    again = bundle(2, "2026-02-01", digest="c1", experiment="smoke")
    monkeypatch.setattr(publish, "collect", lambda *_: again)
    asked = ["--experiment", "smoke", "--out", str(tmp_path)]
    with pytest.raises(DkefError, match="--replace"):
        publish.main(asked)
    publish.main([*asked, "--replace"])
    found = read_bundle(tmp_path)
    digests = dict(zip(found.keys, found.cells["config_digest"], strict=True))
    assert {key for key, digest in digests.items() if digest == "c1"} == set(again.keys)
    assert len(digests) == 2 * 5


def test_panels_that_no_figure_draws_leave_the_bundle_and_their_facts_stay(tmp_path):
    whole = bundle()
    write_bundle(tmp_path, whole)
    assert [path.name for path in tmp_path.glob("grids/*/*_seed*.h5")] == ["dkef_seed0.h5"]
    write_bundle(tmp_path, whole.without_panels({("redwine", "dkef")}))
    assert not list(tmp_path.glob("grids/*/*_seed*.h5"))
    assert read_bundle(tmp_path).facts == whole.facts


def test_variants_that_one_of_several_sets_has_are_not_drawn():
    undrawn = Plan("reproduction").undrawn()
    assert ("ring", "dkef_g15_no_skip") in undrawn
    assert ("ring", "dkef_g15_recommended") not in undrawn, "all synthetic sets have it"


def test_other_experiments_do_not_merge():
    with pytest.raises(DkefError, match="different experiments"):
        merge([bundle(), bundle(experiment="other")])


def _cut_a_cell(folder: Path) -> None:
    """A metrics table of fewer cells, with a note of its own."""
    shorter = bundle()
    write_bundle(folder / "other", shorter.part(set(shorter.keys[:-1])))
    for name in ("metrics.csv", "metrics.csv.sha256"):
        (folder / "other" / name).replace(folder / name)


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda folder: (folder / "bundle.json").unlink(), "is not a bundle"),
        (lambda folder: (folder / "metrics.csv").write_text("a,b\n1,2\n"), "metrics.csv"),
        (lambda folder: (folder / "traces.csv.gz").write_bytes(b"\x1f\x8b cut"), "traces.csv.gz cannot be read"),
        (_cut_a_cell, "of different cells"),
    ],
)
def test_a_foreign_or_cut_bundle_is_one_sentence(tmp_path, damage, sentence):
    write_bundle(tmp_path, bundle())
    damage(tmp_path)
    with pytest.raises(DkefError, match=sentence):
        read_bundle(tmp_path)


@pytest.mark.parametrize("seeds", [1, 3])  # one run has no interval
def test_figures_tables_and_report_come_from_a_bundle_alone(tmp_path, monkeypatch, seeds):
    monkeypatch.chdir(ROOT)
    write_bundle(tmp_path / "bundle", bundle(seeds))
    results = results_of(read_bundle(tmp_path / "bundle"), config(seeds=15))
    assert f"{2 * seeds} of 30 runs are finished" in str(results.info.reduced)
    written = list(write_all(results, ["real_data", "real_traces"], tmp_path / "tables", tmp_path / "figures"))
    assert all(path.is_file() for path in written)
    assert {path.name for path in written} >= {"claims.csv", "summary.csv", "real_data.png", "report.html"}
    text = (tmp_path / "tables" / "report.html").read_text()
    assert "runs are finished" in text
    assert "data:image/png;base64" in text
    assert "Runs, versions, configuration" in text
    assert "Cards of the datasets and whole configurations of the models are not here" in text
    rows = pd.read_csv(tmp_path / "tables" / "metrics.csv")
    assert len(rows) == len(bundle(seeds).metrics)
    assert list(rows.columns) == list(METRICS.columns)


def test_published_results_load_as_a_frame():
    import dkef

    table = dkef.published.load("synthetic_quick")
    assert list(table.columns) == list(METRICS.columns)
    assert table["value"].dtype == float
    with pytest.raises(DkefError, match="did you mean synthetic_quick"):
        dkef.published.load("sythetic_quick")


@pytest.mark.parametrize(("figure", "inputs"), [("gaussian_scales", scales_inputs), ("toys", planar_inputs)])
def test_a_run_of_which_only_facts_are_kept_does_not_stop_a_figure(figure, inputs):
    results = inputs()
    (dataset, model, _), grid = next(iter(results.grids.items()))
    grids = {(dataset, model, 99): Grid({}, grid.facts), **results.grids}
    assert draw(figure, replace(results, tables={**results.tables, GRIDS.name: grids})).axes
