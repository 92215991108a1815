"""One look for every model, whatever the experiment calls it."""

import itertools
import subprocess
import sys

import numpy as np
import pytest

from dkef.core.errors import ConfigError
from dkef.report.figures.catalogue import FIGURES, find
from dkef.report.figures.look import LOOKS, look_of
from dkef.report.figures.scale import window
from dkef.results.names import component_of, dataset_order, model_order, paper_set
from dkef.results.read import READERS


def test_models_of_one_figure_differ_in_marker_or_line_and_not_by_colour_alone() -> None:
    shown = [name for name in LOOKS if name not in ("dkef", "dkef_fixed_q0")]  # never beside DKEF-G-15
    for first, second in itertools.combinations(shown, 2):
        one, two = LOOKS[first], LOOKS[second]
        assert (one.marker, one.line) != (two.marker, two.line), (first, second)
        assert one.color != two.color, (first, second)


def test_a_mixture_looks_like_its_component() -> None:
    assert component_of("mixture_maf") == "maf"
    assert component_of("maf") is None
    assert look_of("mixture_maf").color == look_of("maf").color
    assert look_of("mixture_maf").label == "MAF mixture"


def test_figure_1_runs_look_like_their_models() -> None:
    assert look_of("dkef_scales") == look_of("dkef")
    assert look_of("kef_g_scales") == look_of("kef_g")


def test_a_model_of_the_users_own_gets_a_name_and_a_colour() -> None:
    assert look_of("my_model", 0).label == "my model"
    assert look_of("my_model", 0).color != look_of("other", 1).color


def test_models_stand_in_the_order_of_the_paper_with_dkef_g15_last_and_strangers_after() -> None:
    assert model_order(["dkef_g15", "mine", "kef_g", "made"]) == ["made", "kef_g", "dkef_g15", "mine"]


def test_datasets_stand_in_the_order_of_the_paper() -> None:
    assert dataset_order(["miniboone_part", "mine", "mor", "redwine"]) == ["mor", "redwine", "miniboone_part", "mine"]


@pytest.mark.parametrize(
    ("name", "plain"),
    [("redwine", "redwine"), ("hepmass_part", "hepmass"), ("ring_tiny", "ring"), ("wine_recognition", None)],
)
def test_a_part_of_a_set_is_that_set_and_another_set_is_none(name: str, plain: str | None) -> None:
    assert paper_set(name) == plain


def test_each_ablation_has_a_figure_name_of_its_own() -> None:
    assert find("ablation_noise") is FIGURES["ablation"]
    with pytest.raises(ConfigError, match="known are"):
        find("nothing_like_it")


def test_every_table_of_a_figure_has_a_reader_and_a_name_of_its_own() -> None:
    for figure in FIGURES.values():
        assert all(table.reader in READERS for table in figure.tables)
        assert len({table.name for table in figure.tables}) == len(figure.tables)


def test_the_catalogue_loads_no_drawing_library() -> None:
    code = (
        "import sys, dkef.report.figures.catalogue, dkef.report.pages.catalogue;"
        " sys.exit(any(heavy in sys.modules for heavy in ('matplotlib', 'pandas', 'jinja2', 'tensorflow')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_all_medians_are_shown_unless_one_alone_would_squash_the_rest() -> None:
    ordinary = np.array([-45.0, -27.0, -27.5, -28.0, -5.0])
    shown = window(ordinary, ordinary)
    assert all(shown.holds(value) for value in ordinary)
    wild = np.append(ordinary, 1e6)
    shown = window(wild, wild)
    assert all(shown.holds(value) for value in ordinary)
    assert not shown.holds(1e6)


def test_a_variant_is_named_after_the_model_it_varies() -> None:
    assert look_of("dkef_g15_linear_top").label == "DKEF-G-15 linear top"
    assert look_of("dkef_squared").label == "DKEF squared"
    assert look_of("my_own_model").label == "my own model"


def test_medians_that_differ_by_less_than_runs_do_are_not_magnified() -> None:
    runs = np.array(
        [[-11.86, -12.17, -12.83], [-11.75, -11.93, -12.83], [-11.82, -12.19, -12.80], [-11.87, -12.20, -12.9]]
    )
    shown = window(np.median(runs, axis=1), runs.ravel())
    assert all(shown.holds(value) for value in runs.ravel())


def test_a_window_without_any_value_still_has_two_ends() -> None:
    empty = window(np.array([np.nan]), np.array([]))
    assert empty.low < empty.high
    single = window(np.array([3.0]), np.array([3.0]))
    assert single.low < 3.0 < single.high
