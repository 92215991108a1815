"""The plan of an experiment as a table, against sums done by hand from made-up rates."""

from pathlib import Path

import pytest

from dkef.config.jobs import Job, Wanted, pending_jobs
from dkef.config.plan import Plan
from dkef.core.tables import write_table
from dkef.results.cost import CostModel, Estimate, Rate, family, memory_requests, read_rates, read_sizes
from dkef.results.schedule import Schedule
from dkef.results.tables import CELLS

ROOT = Path(__file__).parents[1]
EXPERIMENT = """
title: Two models on one set
figures: [toys]
suites:
  only:
    datasets: [ring]
    models: [gaussian, dkef_g15]
    seeds: 2
    overrides: [protocol=synthetic, normaliser=fast]
"""
WANTED = Wanted({"toys": ("metrics", "grids", "splits")}, ("summary", "claims"))
RATES = [
    Rate("train", "ring", "gaussian", 0, 2.0),
    Rate("train", "redwine", "dkef", 0, 100.0),
    Rate("normalise_chunk", "ring", "dkef_g15", 1_000_000, 3.0),
]
SIZES = {"ring": (10_000.0, 2.0), "redwine": (1599.0, 11.0)}
# The cheapest training is start-up, 2 s give or take 0.5; the other 97.5 s of DKEF on RedWine grow with the dimension.
DKEF_ON_RING = 2.5 + 97.5 * 2 / 11
CHUNK = 5 * 3  # normaliser=fast has chunks of 5e6 samples: 2 for Z, 1 each for the variance and the bound


def plan_of(text: str, name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Plan:
    (folder / "experiment").mkdir()
    (folder / "experiment" / f"{name}.yaml").write_text(text)
    monkeypatch.setenv("DKEF_CONFIG_PATH", str(folder))
    return Plan(name)


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plan:
    return plan_of(EXPERIMENT, "two_models", tmp_path, monkeypatch)


def schedule(plan: Plan, root: Path) -> Schedule:
    return Schedule.of(pending_jobs(plan, WANTED, root), CostModel(plan, RATES, SIZES))


def test_the_total_is_the_sum_by_hand(plan: Plan, tmp_path: Path) -> None:
    found = schedule(plan, tmp_path)
    stages = found.by_stage()
    assert {stage: total.jobs for stage, total in stages.items()} == {
        "preprocess": 2, "train": 4, "evaluate": 4, "grid": 4, "normalise_merge": 2, "normalise_pilot": 2,
        "normalise_chunk": 8, "compare": 4, "summarise": 1, "reference_values": 1, "claims": 1, "page": 2, "render": 1,
        "report": 1,
    }  # fmt: skip
    assert stages["train"].seconds == pytest.approx(2 * 2 + 2 * DKEF_ON_RING)
    assert stages["normalise_chunk"].seconds == pytest.approx(8 * CHUNK)
    assert found.core_seconds == pytest.approx(2 * 2 + 2 * DKEF_ON_RING + 8 * CHUNK)
    assert found.by_dataset()["ring"]["all"].seconds == pytest.approx(found.core_seconds)


def test_wall_time_is_shared_by_the_cores_down_to_the_longest_chain_of_jobs(plan: Plan, tmp_path: Path) -> None:
    found = schedule(plan, tmp_path)
    assert found.wall_seconds(2) == pytest.approx(found.core_seconds / 2)
    assert found.wall_seconds(1000) == pytest.approx(DKEF_ON_RING + CHUNK)


def test_estimates_say_how_they_are_known(plan: Plan, tmp_path: Path) -> None:
    stages = schedule(plan, tmp_path).by_stage()
    assert stages["train"].known == {"measured", "scaled"}
    assert stages["normalise_chunk"].known == {"measured"}
    assert stages["compare"].known == {"unknown"}
    assert stages["train"].hours.startswith("~")
    assert stages["compare"].hours == "?0.00"


@pytest.mark.parametrize(("unit", "growth"), [("epochs", 10_000 / 1599 * 2 / 11), ("minibatches", 2 / 11)])
def test_training_grows_with_the_rows_where_it_is_counted_in_epochs(
    unit: str, growth: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = EXPERIMENT.replace("dkef_g15", "made").replace("normaliser=fast", f"fidelity.baseline_patience_unit={unit}")
    flows = plan_of(text, f"flow_{unit}", tmp_path, monkeypatch)
    rates = [Rate("train", "redwine", "gaussian", 0, 1.0), Rate("train", "redwine", "made", 0, 21.5)]
    found = CostModel(flows, rates, SIZES).estimate(Job("train", Path("x"), "ring", "made"))
    assert found == Estimate(pytest.approx(1.5 + 20 * growth), "scaled")


def test_training_ends_at_its_time_budget(plan: Plan) -> None:
    costs = CostModel(plan, [Rate("train", "ring", "dkef_g15", 0, 1e9)], SIZES)
    hours = plan.spec("ring", "dkef_g15").time_budget_hours
    assert costs.estimate(Job("train", Path("x"), "ring", "dkef_g15")).seconds == 3600 * hours


def test_the_nearest_dataset_serves_for_one_that_was_never_run(plan: Plan) -> None:
    rates = [Rate("evaluate", name, "maf", 0, seconds) for name, seconds in (("redwine", 4.0), ("tiny", 2.0))]
    sizes = SIZES | {"tiny": (9_000.0, 2.0)}
    # the nearest took 2 s, which are start-up
    assert CostModel(plan, rates, sizes).estimate(Job("evaluate", Path("x"), "ring", "gaussian")).seconds == 2.0


def test_what_is_there_is_not_counted_and_its_log_z_needs_no_chunks(plan: Plan, tmp_path: Path) -> None:
    cell = tmp_path / "results/two_models/ring/dkef_g15/seed0"
    cell.mkdir(parents=True)
    for name in ("model.h5", "log_z.json"):
        (cell / name).touch()
    stages = schedule(plan, tmp_path).by_stage()
    assert (stages["train"].jobs, stages["normalise_merge"].jobs, stages["normalise_chunk"].jobs) == (3, 1, 4)


def test_nothing_is_left_when_every_file_is_there(plan: Plan, tmp_path: Path) -> None:
    for job in pending_jobs(plan, WANTED, tmp_path):
        (tmp_path / job.output).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / job.output).touch()
    assert schedule(plan, tmp_path).table("two_models", 2, {}) == "experiment two_models: nothing is left to run\n"


def test_the_table_names_the_largest_request_and_the_wall_time(plan: Plan, tmp_path: Path) -> None:
    table = schedule(plan, tmp_path).table("two_models", 2, {"train": 4000, "evaluate": 3000, "fetch": 9000})
    assert "37 jobs are left" in table
    assert "largest memory request: 4000 MB (train)" in table  # fetch asks for more but has no job here
    assert "CORES=2" in table


def test_families_of_models() -> None:
    assert family("mixture_maf_mog") == "maf"
    assert family("dkef_g15") == family("dkef") == "dkef"


def test_what_the_reproduction_took_goes_before_the_list_of_rates(tmp_path: Path) -> None:
    listed = "ring,gaussian,,9,old\ntrain,ring,maf,,7,old\nevaluate,ring,gaussian,,1,old\n"
    (tmp_path / "resources").mkdir()
    (tmp_path / "resources/rates.csv").write_text("stage,dataset,model,samples,cpu_seconds,source\ntrain," + listed)
    took = [(2.0, 30.0), (4.0, 50.0), (6.0, None)]  # of training and log Z, which one run does not have
    cell = dict.fromkeys(CELLS, "") | {"dataset": "ring", "model": "gaussian"}
    rows = [cell | {"seed": k, "train_seconds": a, "normalise_seconds": b} for k, (a, b) in enumerate(took)]
    write_table(tmp_path / "reproduction/cells.csv", CELLS, rows)
    found = [(rate.stage, rate.dataset, rate.model, rate.cpu_seconds) for rate in read_rates(tmp_path / "resources")]
    assert found == [
        ("train", "ring", "gaussian", 4.0), ("normalise_target", "ring", "gaussian", 40.0),
        ("train", "ring", "maf", 7.0), ("evaluate", "ring", "gaussian", 1.0),
    ]  # fmt: skip


def test_the_recorded_rates_and_sizes_can_be_read_and_fit_together() -> None:
    folder = ROOT / "results/published/resources"
    rates, sizes = read_rates(folder), read_sizes(folder)
    assert {rate.dataset for rate in rates if rate.dataset} <= sizes.keys()
    assert all(rate.cpu_seconds >= 0 for rate in rates)
    assert {rate.stage for rate in rates} == memory_requests(ROOT / "workflow/rules").keys()
