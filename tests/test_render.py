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
from matplotlib.figure import Figure
from matplotlib.text import Text

from dkef.core.errors import DkefError
from dkef.data.splits import write_splits
from dkef.metrics.grid import write_grid
from dkef.report.figures import benchmarks
from dkef.report.figures.catalogue import FIGURES
from dkef.report.figures.drawing import draw, save
from dkef.results.experiment import ExperimentInfo
from dkef.results.lookup import Results
from dkef.results.tables import SUMMARY
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
    assert any("near 0 favours DKEF, fixed q0" in text for text in shown)
    assert any("near 0 favours DKEF)" in text for text in texts(drawn["real_data"]))
    heights = [patch.get_height() + patch.get_y() for patch in _bars(benchmarks.draw_fixed_q0(inputs), row=1)]
    assert any(height == pytest.approx(median) for height in heights)


def _bars(figure: Figure, row: int) -> list[Any]:
    """The bars of a row of panels, from left to right."""
    columns = len(figure.axes) // 4
    return [patch for axes in figure.axes[row * columns : (row + 1) * columns] for patch in axes.patches]


def test_figure_1_draws_the_median_seed_and_states_the_range(drawn: dict[str, Figure]) -> None:
    shown = texts(drawn["gaussian_scales"])
    assert any("Seed 2 of 3" in text for text in shown)
    titles = [text for text in shown if "sharp component 0" in text]
    assert any("sharp component 0.41 [0.38, 0.45], truth 0.352" in text for text in titles)
    assert any("KL 0.03 [0.01, 0.03]" in text for text in titles)  # of DKEF, on the same draw


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
