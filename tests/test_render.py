"""Every figure from made-up tables: what it shows, what it says about what is missing, and equal bytes twice."""

import json
import re
import subprocess
import sys
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.text import Text

from dkef.core.errors import DkefError
from dkef.core.streams import rng_for
from dkef.data.splits import write_splits
from dkef.data.whitening import Whitening
from dkef.metrics.grid import write_grid
from dkef.report.figures import benchmarks, objective_scaling
from dkef.report.figures.catalogue import FIGURES
from dkef.report.figures.drawing import draw, save
from dkef.report.figures.look import look_of
from dkef.results.experiment import ExperimentInfo
from dkef.results.lookup import Results
from dkef.results.tables import METRICS, SUMMARY
from tests import made_up

PLANAR = ("ring", "square", "mor")
MODELS = ("gaussian", "made_mog", "kef_g", "dkef_g15", "mixture_dkef_g15")
MAKERS: dict[str, Callable[[], Results]] = {
    "gaussian_scales": made_up.scales_inputs,
    "toys": lambda: made_up.synthetic_inputs(PLANAR, MODELS),
    "real_data": lambda: made_up.benchmark_inputs(seeds=6),
    "toy_traces": lambda: made_up.trace_inputs("toy_traces"),
    "real_traces": lambda: made_up.trace_inputs("real_traces"),
    "real_data_q0": lambda: made_up.benchmark_inputs(seeds=6),
    "marginals": made_up.split_inputs,
    "ablation": made_up.ablation_inputs,
    "sensitivity": made_up.sensitivity_inputs,
    "normalisers": made_up.proposal_inputs,
    "mixtures": made_up.separated_inputs,
    "objectives": made_up.objective_inputs,
    "objective_scaling": made_up.scaling_inputs,
}


@pytest.fixture(scope="module")
def drawn() -> dict[str, Figure]:
    return {name: draw(name, make()) for name, make in MAKERS.items()}


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(Text) if text.get_text()]


def test_every_figure_of_the_catalogue_is_drawn_here() -> None:
    assert MAKERS.keys() == FIGURES.keys()


@pytest.mark.parametrize("name", FIGURES)
def test_no_text_leaves_the_page(name: str, drawn: dict[str, Figure]) -> None:
    figure = drawn[name]
    box = figure.get_tightbbox(FigureCanvasAgg(figure).get_renderer())  # of all that is visible, in inches
    width, height = figure.get_size_inches()
    assert box.x0 >= 0, f"{name} is cut at the left by {-box.x0:.2f} in"
    assert box.y0 >= 0, f"{name} is cut at the bottom by {-box.y0:.2f} in"
    assert box.x1 <= width, f"{name} is cut at the right by {box.x1 - width:.2f} in"
    assert box.y1 <= height, f"{name} is cut at the top by {box.y1 - height:.2f} in"


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_of_an_experiment_without_results_says_so(name: str) -> None:
    entries = (made_up.entry("ring", ("gaussian",), 1, True), made_up.entry("redwine", ("gaussian",), 1, False))
    figure = draw(name, Results(ExperimentInfo("empty", "", entries)))
    assert any(re.search(r"\bno\b|not ", text) for text in texts(figure))


def test_two_renders_of_the_same_tables_are_equal_bytes(tmp_path: Path) -> None:
    makers = {
        "real_data": lambda: made_up.benchmark_inputs(("redwine",), 3),
        "toys": lambda: made_up.synthetic_inputs(("mor",), ("kef_g", "mixture_dkef_g15")),
        "toy_traces": MAKERS["toy_traces"],
    }
    for name, make in makers.items():
        paths = [tmp_path / f"{copy}{ending}" for copy in "ab" for ending in (".pdf", ".png")]
        for first, second in (paths[:2], paths[2:]):
            figure = draw(name, make())
            save(figure, first)
            save(figure, second)
        assert paths[0].read_bytes() == paths[2].read_bytes()
        assert paths[1].read_bytes() == paths[3].read_bytes()


def test_fonts_are_embedded_as_truetype_and_no_date_is_written(tmp_path: Path, drawn: dict[str, Figure]) -> None:
    save(drawn["toy_traces"], tmp_path / "figure.pdf")
    pdf = (tmp_path / "figure.pdf").read_bytes()
    inflated = b"".join(_inflate(part) for part in re.findall(rb"stream\r?\n(.*?)endstream", pdf, re.S))
    assert b"/FontFile2" in pdf + inflated
    assert b"/Type3" not in pdf + inflated
    assert b"/CreationDate" not in pdf + inflated


def _inflate(stream: bytes) -> bytes:
    try:
        return zlib.decompress(stream)
    except zlib.error:
        return b""


def test_reduced_runs_and_subsets_are_labelled_in_the_figure(drawn: dict[str, Figure]) -> None:
    shown = texts(drawn["real_data"])
    assert any("Reduced run" in text and "made-up numbers" in text for text in shown)
    assert "subset of HepMass" in shown
    assert "subset of MiniBoone" in shown


def test_invalid_runs_are_counted_in_the_figure(drawn: dict[str, Figure]) -> None:
    # every third of 6 runs of MADE-MOG is made invalid on two sets, in each of four rows
    assert texts(drawn["real_data"]).count("\u27152") == 8


def test_the_reference_has_no_p_value_of_its_own(drawn: dict[str, Figure]) -> None:
    assert texts(drawn["real_data"]).count("reference") == 5


def test_figure_6_shows_the_fixed_base_measure_and_figure_3_the_trained_one(drawn: dict[str, Figure]) -> None:
    assert "DKEF, fixed q0" in texts(drawn["real_data_q0"])
    assert "DKEF" not in texts(drawn["real_data_q0"])
    assert "DKEF, fixed q0" not in texts(drawn["real_data"])


def test_p_values_of_figure_6_are_against_the_fixed_base_measure(drawn: dict[str, Figure]) -> None:
    inputs = made_up.benchmark_inputs()
    median = inputs.median("redwine", "maf", "fssd_p_value_fixed_q0").value
    assert median != inputs.median("redwine", "maf", "fssd_p_value").value
    shown = texts(drawn["real_data_q0"])
    assert shown.count("reference") == 5
    assert any("(near 0 favours DKEF, fixed q0)" in text.replace("\n", " ") for text in shown)
    assert any("near 0 favours DKEF)" in text for text in texts(drawn["real_data"]))
    assert median in _medians(benchmarks.draw_fixed_q0(inputs).axes[5])  # RedWine in the second of four rows


def test_figure_6_names_one_reference_even_where_a_set_has_not_run_it_yet() -> None:
    inputs = made_up.benchmark_inputs()
    first, *rest = inputs.info.datasets
    first = replace(first, models=tuple(model for model in first.models if model != "dkef_fixed_q0"))
    early = replace(inputs, info=replace(inputs.info, datasets=(first, *rest)))
    shown = [text.replace("\n", " ") for text in texts(benchmarks.draw_fixed_q0(early))]
    assert any("(near 0 favours DKEF, fixed q0)" in text for text in shown)


def _medians(axes: Any) -> list[float]:
    """Medians of a panel from left to right: its diamonds have the largest area of all marks."""
    marks = [c for c in axes.collections if isinstance(c, PathCollection) and c.get_sizes()[0] == 20]
    return [float(mark.get_offsets()[0, 1]) for mark in sorted(marks, key=lambda mark: mark.get_offsets()[0, 0])]


def _intervals(axes: Any) -> list[tuple[float, float]]:
    """Ends of the thick vertical lines of a panel."""
    lines = [c for c in axes.collections if isinstance(c, LineCollection) and c.get_linewidth()[0] == 1.6]
    return [tuple(sorted(segment[:, 1])) for line in lines for segment in line.get_segments()]


def likelihood_panel(inputs: Results) -> Any:
    return benchmarks.draw(inputs).axes[-1]


def changed(inputs: Results, chosen: Callable[[pd.DataFrame], Any], **values: Any) -> Results:
    """Inputs with some cells of metrics.csv changed, and the summary that follows."""
    metrics = inputs.frame(METRICS).copy()
    metrics.loc[chosen(metrics), list(values)] = list(values.values())
    return replace(inputs, tables={"metrics": metrics, "summary": made_up.summary_of(metrics)})


def test_points_have_the_interval_of_the_median_or_of_the_test_rows_of_the_only_run() -> None:
    several = made_up.benchmark_inputs(("redwine",), 3)
    medians = [several.median("redwine", m, "log_likelihood") for m in several.info.datasets[0].models]
    ends = sorted((m.low, m.high) for m in medians)
    shown = _intervals(likelihood_panel(several))
    assert {pair for pair in shown if pair[0] > -20} <= set(ends)
    assert len(shown) == 8
    one = made_up.benchmark_inputs(("redwine",), 1)
    one = changed(one, lambda m: m["metric"] == "log_likelihood", stderr=0.25)
    panel = likelihood_panel(one)
    for value, (low, high) in zip(sorted(_medians(panel)), sorted(_intervals(panel)), strict=True):
        assert (low, high) == pytest.approx((value - 0.25, value + 0.25))


def test_a_difference_within_the_errors_of_single_runs_is_drawn_small() -> None:
    one = made_up.benchmark_inputs(("redwine",), 1)
    panel = likelihood_panel(changed(one, lambda m: m["metric"] == "log_likelihood", stderr=30.0))
    medians = _medians(panel)
    assert max(medians) - min(medians) < 0.1 * (panel.get_ylim()[1] - panel.get_ylim()[0])


def test_an_error_bar_of_a_single_run_is_whole_or_ends_in_a_mark() -> None:
    """Marks at the edge have the area 10, in a panel nothing else has."""
    one = made_up.benchmark_inputs(("redwine",), 1)
    values = one.frame(METRICS).query("metric == 'log_likelihood'").set_index("model")["value"]
    one = changed(one, lambda m: m["metric"] == "log_likelihood", stderr=0.25)
    spread = values.max() - values.min()
    for error, whole in ((2 * spread, True), (40 * spread, False)):
        wide = changed(one, lambda m: (m["model"] == "maf") & (m["metric"] == "log_likelihood"), stderr=error)
        panel = likelihood_panel(wide)
        low, high = max(_intervals(panel), key=lambda ends: ends[1] - ends[0])
        assert ((low, high) == pytest.approx((values["maf"] - error, values["maf"] + error))) == whole
        marks = [c for c in panel.collections if isinstance(c, PathCollection) and c.get_sizes()[0] == 10]
        assert len(marks) == (0 if whole else 2)


def test_a_figure_of_single_runs_says_what_its_bars_are() -> None:
    one, several = (benchmarks.draw(made_up.benchmark_inputs(("redwine",), seeds)) for seeds in (1, 3))
    legends = [[text.get_text() for text in figure.legends[0].get_texts()] for figure in (one, several)]
    assert legends[0][0] == "value and standard error"
    assert legends[1][:2] == ["median and its interval", "one run"]
    assert any("One run of each model" in text for text in texts(one))
    assert not any("One run of each model" in text for text in texts(several))


def test_a_panel_without_values_gives_the_reason_that_all_runs_share() -> None:
    inputs = made_up.benchmark_inputs(("redwine",), 1)
    why = "undefined: the reference dkef is not part of this run"
    inputs = changed(inputs, lambda m: m["metric"] == "fssd_p_value", value=np.nan, status=why)
    shown = [text.get_text().replace("\n", " ") for text in benchmarks.draw(inputs).axes[1].texts]
    assert shown == ["the reference dkef is not part of this run"]


def test_a_median_far_from_all_others_stands_behind_a_break_with_its_value() -> None:
    inputs = made_up.benchmark_inputs(("redwine",), 3)
    far = changed(
        inputs, lambda m: (m["model"] == "kef_g") & (m["metric"] == "log_likelihood"), value=-812.5, status="ok"
    )  # fmt: skip
    panel = likelihood_panel(far)
    assert "-812" in [text.get_text() for text in panel.texts]
    low, high = panel.get_ylim()
    assert low > -40  # the axis shows where the others differ
    assert low < min(_medians(panel)) < min(panel.get_yticks())
    assert max(panel.get_yticks()) <= high


def test_runs_that_are_not_trusted_are_hollow() -> None:
    inputs = made_up.benchmark_inputs(("redwine",), 3)
    doubted = changed(
        inputs, lambda m: (m["model"] == "dkef") & (m["metric"] == "log_likelihood"), status="untrusted: ESS 3"
    )
    blue = to_rgba(look_of("dkef").color)

    def faces(results: Results) -> set[tuple[float, ...]]:
        marks = [c for c in likelihood_panel(results).collections if isinstance(c, PathCollection)]
        return {
            tuple(m.get_facecolor()[0]) for m in marks if len(m.get_edgecolor()) and tuple(m.get_edgecolor()[0]) == blue
        }

    assert faces(inputs) == {blue}
    assert faces(doubted) == {(1.0, 1.0, 1.0, 1.0)}


@pytest.mark.parametrize("figure", ["real_data", "real_data_q0", "ablation"])
def test_an_unfinished_experiment_says_how_many_runs_are_behind_the_points(figure: str) -> None:
    inputs = made_up.benchmark_inputs(("redwine",), 3)
    (one,) = inputs.info.datasets

    def shown(runs: dict[str, int]) -> list[str]:
        info = replace(inputs.info, datasets=(replace(one, runs=runs),))
        return texts(draw(figure, replace(inputs, info=info)))

    assert "3 of 15 runs" in shown(dict.fromkeys(one.models, 15))
    assert "MAF, 3 of 5" in shown(dict.fromkeys(one.models, 3) | {"maf": 5})
    assert not [text for text in shown(dict.fromkeys(one.models, 3)) if re.search(r"\d of \d", text)]


def test_variants_on_some_sets_and_variants_of_sets_are_named_and_not_drawn() -> None:
    inputs = made_up.benchmark_inputs(("redwine", "parkinsons"), 2)
    red, parkinsons = inputs.info.datasets
    entries = (replace(red, beside=("maf",)), replace(parkinsons, variant_of="redwine"))
    shown = texts(draw("real_data", replace(inputs, info=replace(inputs.info, datasets=entries))))
    assert "MAF" not in shown
    assert "Not drawn: Parkinsons, MAF." in shown
    many = tuple(model for model in red.models if model != "dkef")
    entries = (replace(red, beside=many), replace(parkinsons, variant_of="redwine"))
    shown = texts(draw("real_data", replace(inputs, info=replace(inputs.info, datasets=entries))))
    assert f"Not drawn: {len(many) + 1} variants of sets and models, see the tables." in shown


def test_figure_1_draws_the_median_seed_and_states_the_range(drawn: dict[str, Figure]) -> None:
    shown = texts(drawn["gaussian_scales"])
    assert any("Seed 2 of 3" in text for text in shown)
    titles = [text for text in shown if "sharp component 0" in text]
    assert any("sharp component 0.410 [0.377, 0.452], truth 0.352" in text for text in titles)
    assert any("KL 0.0300 [0.0100, 0.0300]" in text for text in titles)  # of DKEF, on the same draw


def test_figure_3_states_score_losses_without_copies_where_there_are_copies() -> None:
    inputs = made_up.benchmark_inputs()
    assert not [text for text in texts(benchmarks.draw(inputs)) if "copies" in text]
    summary = inputs.frame(SUMMARY)
    chosen = (summary["metric"] == "score_loss") & (summary["dataset"] == "redwine")
    more = summary[chosen].assign(metric="score_loss_no_copies", median=-12.345)
    tables = {**inputs.tables, "summary": pd.concat([summary, more])}
    shown = " ".join(texts(benchmarks.draw(replace(inputs, tables=tables))))
    assert "without test rows that are copies" in shown
    assert "DKEF -12.3" in shown


def test_marginals_show_the_columns_of_the_table_by_name() -> None:
    rng = rng_for("marginals")
    raw = rng.normal(size=(400, 3)) @ np.diag([1.0, 10.0, 100.0]) + [5.0, 0.0, -3.0]
    raw[:, 2] += 90 * raw[:, 0]  # whitened coordinates mix the columns
    splits = made_up.splits_of(raw)
    whitening = Whitening.fit(raw, raw.mean(axis=0))
    splits = replace(splits, train=whitening.apply(splits.train), whitening=whitening, whitened=True,
                     columns=("age", "hours worked in the last week", "wage"))  # fmt: skip
    one = made_up.entry("wages", ("gaussian",), 1, False)
    figure = draw("marginals", Results(ExperimentInfo("mine", "", (one,)), {"splits": {("wages", 0): splits}}))
    assert {"age", "wage"} <= set(texts(figure))
    assert any(text.startswith("hours worked") and text.endswith("\u2026") for text in texts(figure))
    shown = figure.axes[1].collections[0].get_offsets()  # the second column against the first
    expected = raw[:320, :2]
    expected = (expected - expected.mean(axis=0)) / expected.std(axis=0)
    np.testing.assert_allclose(np.asarray(shown), expected, atol=1e-9)


def test_the_best_numbers_of_a_column_are_bold(drawn: dict[str, Figure]) -> None:
    inputs = MAKERS["toys"]()
    m = inputs.tables["metrics"]
    ring = m[(m["dataset"] == "ring") & ~m["model"].str.startswith("mixture") & (m["metric"] == "fisher_divergence")]
    bold = {text.get_text() for text in drawn["toys"].findobj(Text) if text.get_fontweight() == "bold"}
    assert f"{ring['value'].min():.2g}" in bold
    assert f"{ring['value'].max():.2g}" not in bold


def test_a_diverged_run_and_a_cell_that_was_not_run_are_drawn_as_such(drawn: dict[str, Figure]) -> None:
    shown = texts(drawn["toys"])
    assert "diverged" in shown
    # of four single models three have no mixture, on each set
    assert shown.count("not run") == 3 * len(PLANAR)


def test_a_doubted_log_z_is_marked(tmp_path: Path) -> None:
    inputs = MAKERS["toys"]()
    metrics = inputs.tables["metrics"]
    doubted = metrics["metric"].eq("log_likelihood") & metrics["model"].eq("dkef_g15")
    status = metrics["status"].mask(doubted, "untrusted: effective sample size 3")
    figure = draw("toys", replace(inputs, tables={**inputs.tables, "metrics": metrics.assign(status=status)}))
    assert sum(text.endswith("?") for text in texts(figure)) == len(PLANAR)


def test_a_partial_experiment_of_two_sets_and_three_models_is_drawn() -> None:
    full = made_up.benchmark_inputs(("redwine", "parkinsons"), 2)
    entries = tuple(replace(entry, models=("dkef", "maf", "gaussian")) for entry in full.info.datasets)
    figure = draw("real_data", replace(full, info=replace(full.info, datasets=entries)))
    assert {"RedWine", "Parkinsons", "DKEF", "MAF", "Gaussian"} <= set(texts(figure))
    assert "Real NVP" not in texts(figure)


def test_the_command_line_draws_a_figure_from_files(tmp_path: Path) -> None:
    inputs = made_up.synthetic_inputs(("ring",), ("gaussian", "dkef_g15"))
    inputs.tables["metrics"].to_csv(tmp_path / "metrics.csv", index=False)
    paths = []
    for (dataset, model, seed), grid in inputs.grids.items():
        paths.append(tmp_path / f"{dataset}-{model}-{seed}.h5")
        write_grid(paths[-1], grid.arrays, grid.facts)
    data = tmp_path / "processed" / "ring" / "seed0.h5"
    write_splits(data, made_up.splits_of(np.zeros((10, 2))), {})
    config = json.dumps({
        "experiment": "made_up", "title": "", "reduced": None,
        "datasets": [{"name": "ring", "title": "Ring", "subset_of": None, "synthetic": True,
                      "models": ["gaussian", "dkef_g15"], "seeds": [0]}],
    })  # fmt: skip
    out = [tmp_path / "toys.pdf", tmp_path / "toys.png"]
    command = [sys.executable, "-m", "dkef", "render", "--config", config, "--figure", "toys"]
    command += ["--table", "metrics", str(tmp_path / "metrics.csv"), "--table", "grids", *map(str, paths)]
    command += ["--table", "splits", str(data)]
    subprocess.run([*command, "--out", *map(str, out)], check=True, capture_output=True)
    assert out[0].read_bytes().startswith(b"%PDF")
    assert out[1].read_bytes().startswith(b"\x89PNG")


def test_an_unknown_figure_is_named_with_a_hint() -> None:
    with pytest.raises(DkefError, match="did you mean toys"):
        draw("toyz", Results(ExperimentInfo("", "", ())))


def test_a_format_that_cannot_be_made_reproducible_is_refused(tmp_path: Path, drawn: dict[str, Figure]) -> None:
    with pytest.raises(DkefError, match="figures are written as"):
        save(drawn["real_traces"], tmp_path / "figure.jpg")


def test_memory_of_wide_networks_is_within_its_panel():
    """Columns share an axis whose lower end is 0; the first and narrowest must not set the upper one."""
    results = made_up.scaling_inputs()
    largest = max(value for name, value in results.tables["objective_scaling"].items() if "peak_mb" in name)
    figure = objective_scaling.draw(results)
    for axes in figure.axes[3:]:
        assert axes.get_ylim()[0] == 0
        assert axes.get_ylim()[1] >= largest
