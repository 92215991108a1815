"""What a bundle says of a cell's jobs and of its log Z, from the files that they leave."""

import json
from pathlib import Path

import pytest

from dkef.results.publish import _of_log_z, _seconds


def test_seconds_of_a_cell_are_those_of_all_its_jobs(tmp_path):
    """Processor time where Snakemake measured it; chunks of log Z lie deeper than other jobs."""
    measured = {
        "train": {"s": 100.0, "cpu_time": 47.5},
        "normalise_merge": {"s": 1.0},
        "normalise/pilot": {"s": 3.0, "cpu_time": 2.0},
        "normalise/z/chunk0": {"s": 60.0, "cpu_time": 50.0},
        "normalise/z/chunk1": {"s": 60.0, "cpu_time": 51.0},
    }
    for name, record in measured.items():
        file = tmp_path / f"{name}.benchmark.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(record) + "\n")
    assert _seconds(tmp_path, "train") == 47.5
    assert _seconds(tmp_path, "normalise_*", "normalise/**/*") == 104.0
    assert _seconds(tmp_path, "evaluate", "grid") is None


def test_the_published_reproduction_stays_small():
    folder = Path(__file__).parents[2] / "results/published/reproduction"
    assert 1e6 < sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) < 15e6


@pytest.mark.parametrize("record", [{}, {"effective_sample_size": 5.0, "concentration": None}])
def test_a_log_z_without_draws_has_no_spread(tmp_path, record):
    file = tmp_path / "log_z.json"
    file.write_text(json.dumps(record))
    found = _of_log_z(file)
    assert found == {"effective_sample_size": record.get("effective_sample_size"), "nearest_neighbour_ratio": None}
    assert set(_of_log_z(tmp_path / "absent.json").values()) == {None}
