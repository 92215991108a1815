"""What jobs asked for against what they took, from the benchmark files of runs under --benchmark-extended.

`python -m tests.workflow.demands FOLDER ...` prints the highest peak of every rule in some projects' folders, and with
`--rates` before them what jobs took by rule, dataset and model, for `make plan`.
"""

import csv
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from dkef.results.cost import COLUMNS as RATE_COLUMNS
from dkef.results.cost import memory_requests

HEAD_ROOM = 1.25  # of memory; Snakemake looks every half second, so a short peak may stand higher than what it saw
COLUMNS = ("rule", "max_rss_mb", "seconds", "job")
RULES = Path(__file__).parents[2] / "workflow" / "rules"


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


def peaks(projects: Iterable[Path]) -> list[dict[str, Any]]:
    """A row for each rule: its job with the most memory."""
    found: dict[str, dict[str, Any]] = {}
    for project in projects:
        for path in sorted(project.rglob("*.benchmark.jsonl")):
            stem = path.name.partition(".")[0]
            for job in map(json.loads, path.read_text().splitlines()):
                rule = job.get("rule_name", stem)  # most files are named after their rule, should it not be in them
                if job["max_rss"] != "NA" and job["max_rss"] > found.get(rule, {"max_rss_mb": 0.0})["max_rss_mb"]:
                    where = str(path.relative_to(project).with_name(stem))
                    found[rule] = {"rule": rule, "max_rss_mb": job["max_rss"], "seconds": job["s"], "job": where}
    return [found[rule] for rule in sorted(found.keys() & requests().keys())]


def rates(projects: Iterable[Path]) -> list[dict[str, Any]]:
    """A row for each rule, dataset and model: the mean of its jobs.

    In seconds by the clock, which are core-seconds for jobs of one thread on a quiet machine: of processor time
    Snakemake misses what comes after its last look, up to half a minute.
    """
    found: dict[tuple[str, ...], list[float]] = {}
    for project in projects:
        for job in measured(project):
            names = job["wildcards"] or {}
            key = (job["rule_name"], names.get("dataset", ""), names.get("model", ""))
            found.setdefault(key, []).append(job["s"])
    return [
        dict(zip(RATE_COLUMNS, (*key, "", round(sum(s) / len(s), 2), "benchmark files"), strict=True))
        for key, s in sorted(found.items())
    ]


def requests() -> dict[str, int]:
    """MB that each rule of the workflow asks for at first."""
    return memory_requests(RULES)


def main(arguments: list[str]) -> None:
    wanted = "--rates" in arguments
    folders = [Path(argument) for argument in arguments if argument != "--rates"]
    writer = csv.DictWriter(sys.stdout, RATE_COLUMNS if wanted else COLUMNS, lineterminator="\n")
    writer.writeheader()
    if wanted:
        writer.writerows(rates(folders))
        return
    for row in peaks(folders):
        writer.writerow(row | {"max_rss_mb": round(row["max_rss_mb"]), "seconds": round(row["seconds"])})


if __name__ == "__main__":
    main(sys.argv[1:])
