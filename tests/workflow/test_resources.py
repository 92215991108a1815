"""What rules ask for, against the highest peaks that were seen in real runs."""

import csv

import pytest

from tests.workflow.demands import HEAD_ROOM, requests
from tests.workflow.project import ROOT

LEAST_REQUEST = 1000  # MB; TensorFlow alone takes half of it
LARGEST_FACTOR = 5  # a request beyond it keeps other jobs off a machine for nothing
LONG = 10  # seconds, after which Snakemake has looked at a job often enough to have seen its peak

with open(ROOT / "results/published/resources/peaks.csv") as file:
    PEAKS = {row["rule"]: row for row in csv.DictReader(file)}


def test_the_peak_of_every_rule_is_known():
    assert PEAKS.keys() == requests().keys()


@pytest.mark.parametrize("rule", PEAKS)
def test_a_rule_asks_for_its_highest_peak_with_head_room_and_not_for_many_times_of_it(rule):
    asked, peak = requests()[rule], float(PEAKS[rule]["max_rss_mb"])
    assert asked >= HEAD_ROOM * peak
    if float(PEAKS[rule]["seconds"]) >= LONG:
        assert asked <= max(LEAST_REQUEST, LARGEST_FACTOR * peak)
