"""Which models and sets of an experiment are only variants beside others."""

from dkef.config.experiment import Experiment, Variant, models_beside, varied_sets
from dkef.config.plan import Plan
from dkef.results.experiment import ExperimentInfo

PAIRS = [("a", "dkef"), ("b", "dkef"), ("a", "wide"), ("b", "wide"), ("a", "quiet"), ("a2", "other")]


def experiment() -> Experiment:
    variants = {
        "wide": Variant("dkef"),
        "quiet": Variant("dkef"),
        "other": Variant("absent"),
        "unused": Variant("dkef"),
    }
    return Experiment(
        title="", suites={}, figures=[], models=variants, datasets={"a2": Variant("a"), "c2": Variant("c")}
    )


def test_a_variant_on_every_set_of_its_model_is_no_side_experiment():
    assert models_beside(experiment(), PAIRS) == {"quiet"}


def test_a_set_varies_another_only_where_both_are_run():
    assert varied_sets(experiment(), PAIRS) == {"a2": "a"}
    assert varied_sets(experiment(), [("a2", "other"), ("c2", "other")]) == {}


def test_the_reproduction_tells_its_reports_what_to_draw_and_how_many_runs_to_expect():
    info = ExperimentInfo.parse(Plan("reproduction").experiment_slice())
    entries = {entry.name: entry for entry in info.datasets}
    red = entries["redwine"]
    assert {"dkef_no_noise", "maf_200", "dkef_by_q0"} <= set(red.beside)
    assert not {"dkef", "maf"} & set(red.beside)
    assert "dkef_g15_recommended" not in entries["ring"].beside
    assert (red.planned("dkef"), red.planned("dkef_no_noise"), red.planned("dkef_by_q0")) == (15, 5, 1)
    assert entries["redwine_distinct"].variant_of == "redwine"
    assert red.variant_of is None


def test_a_null_reference_trains_no_other_model_for_a_p_value():
    keys = ("reference_model", "fixed_q0_reference")
    redwine = tuple(Plan("laptop").reference("redwine", "maf", key) for key in keys)
    assert redwine == ("dkef", "dkef_fixed_q0")
    plan = Plan("laptop", ["comparison.reference_model=null", "comparison.fixed_q0_reference=null"])
    assert [plan.reference("redwine", "maf", key) for key in keys] == [None, None]
