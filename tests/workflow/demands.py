"""What jobs asked for against what they took, from the benchmark files of a run under --benchmark-extended."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HEAD_ROOM = 1.25  # of memory; Snakemake looks every half second, so a short peak may stand higher than what it saw


def measured(project: Path) -> Iterator[dict[str, Any]]:
    """One record for each job: its rule, `max_rss` in MB, `s` in seconds, and the `resources` it asked for."""
    for path in sorted(project.rglob("*.benchmark.jsonl")):
        yield from map(json.loads, path.read_text().splitlines())


def overdrawn(project: Path) -> list[str]:
    """Jobs that took more memory or time than they asked for, less the head-room."""
    found = []
    for job in measured(project):
        asked, name = job["resources"], f"{job['rule_name']} {job['wildcards']}"
        if job["max_rss"] != "NA" and job["max_rss"] * HEAD_ROOM > asked["mem_mb"]:
            found.append(f"{name} took {job['max_rss']:.0f} MB and asked for {asked['mem_mb']}")
        if job["s"] / 60 > asked["runtime"]:
            found.append(f"{name} took {job['s'] / 60:.0f} min and asked for {asked['runtime']}")
    return found
