"""Target `records`: JSON records and CSV tables that one stage leaves for the next."""

import functools
import json
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from dkef.config.schema.metrics import Comparison
from dkef.core.files import record_digest
from dkef.metrics.agreement import agreement_rows
from dkef.metrics.case import read_normaliser
from dkef.metrics.summary import paired_rows, summary_rows
from dkef.models.storage import read_log_z
from dkef.report.claims.verdict import HELD
from dkef.report.pages.html import html_of
from dkef.report.reference_values import beside_ours
from dkef.results.experiment import ExperimentInfo
from dkef.results.gather import gather_metrics, gather_sensitivity
from dkef.results.lookup import Results
from dkef.results.read import read_benchmark, read_frame, read_trace
from dkef.results.tables import AGREEMENT, CLAIMS, KNOWN_VALUES, METRICS, PROPOSALS, SENSITIVITY, SUMMARY
from tests.fuzz import log_z_parts
from tests.fuzz.mutations import TEXT, changed_tree, edited

FACTOR = Comparison().fssd_bandwidth_factor
METRIC_ROWS = [
    "ring,gaussian,0,log_likelihood,-2.5,0.1,ok,abc,v1",
    "ring,gaussian,0,score_loss,-1.25,0.1,ok,abc,v1",
    "ring,dkef,0,log_likelihood,-2.25,0.2,untrusted: few samples,abc,v1",
    "ring,dkef,0,fssd_p_value,,,undefined: the model is its own reference,abc,v1",
]
ORDER_ROWS = [
    f"ring,{model},0,{statistic},{FACTOR},{count},{value},0.1,ok,abc,v1"
    for value, model in enumerate(("gaussian", "dkef", "made"))
    for statistic, count in (("fssd2", Comparison().fssd_locations), ("ksd2", ""))
]
PROPOSAL_ROWS = [f"ring,dkef,0,{kind}," + ",".join("1" * 9) + ",ok,abc,v1" for kind in ("q0", "mixture")]
INFO = ExperimentInfo("fuzz", "Fuzzed", ())
KNOWN = "paper,Fig. 1,yes,redwine,dkef,log_likelihood,-12.5,0.1,read off"
BENCHMARK = {"s": 1.5, "h:m:s": "0:00:01", "max_rss": 120.5, "mean_load": 0.9, "cpu_time": 1.1}
LOG_Z = {"log_z": 1.5, "log_z_stderr": 0.1, "log_z_bias_bound": None, "status": "ok", "samples": 100}


def _csv(columns: Any, *rows: str) -> bytes:
    return ("\n".join([",".join(columns), *rows]) + "\n").encode()


TABLES = {
    "metrics": _csv(METRICS.columns, *METRIC_ROWS),
    "cell": _csv(METRICS.columns, *METRIC_ROWS),
    "sensitivity": _csv(SENSITIVITY.columns, "ring,gaussian,0,fssd2,1.0,100,0.5,0.1,ok,abc,v1"),
    "summary": _csv(SUMMARY.columns, "ring,gaussian,score_loss," + ",".join("1" * (len(SUMMARY.columns) - 3))),
    "known_values": _csv(KNOWN_VALUES.columns, KNOWN),
    "claims": _csv(CLAIMS.columns, ",".join(HELD if name == "verdict" else "x" for name in CLAIMS.columns)),
    "agreement": _csv(AGREEMENT.columns, "ring,0,1.0,100,4,dkef,dkef,0.5,,1.0,ok"),
    "orders": _csv(SENSITIVITY.columns, *ORDER_ROWS),
    "proposals": _csv(PROPOSALS.columns, *PROPOSAL_ROWS),
    "trace": _csv(("iteration", "loss"), "1,0.5", "2,0.25"),
}
TREES: dict[str, dict[str, Any]] = {"log_z": LOG_Z, "benchmark": BENCHMARK}


@functools.cache
def _trees() -> dict[str, dict[str, Any]]:
    return TREES | log_z_parts.whole_records()


def _json(record: Any, sealed: bool) -> bytes:
    if sealed and isinstance(record, dict):
        record = record | {"sha256": record_digest(record)}
    return json.dumps(record).encode()  # on one line, as a benchmark has to be


def whole_files() -> list[tuple[str, bytes]]:
    return [*TABLES.items(), *((kind, _json(tree, sealed=True)) for kind, tree in _trees().items())]


@st.composite
def cases(draw: Any) -> tuple[str, bytes]:
    trees = _trees()
    kind = draw(st.sampled_from([*TABLES, *trees, *trees]))
    if kind in TABLES:
        return kind, draw(edited(TABLES[kind], TEXT))
    if draw(st.booleans()):
        return kind, _json(draw(changed_tree(trees[kind])), sealed=draw(st.booleans()))
    return kind, draw(edited(_json(trees[kind], sealed=draw(st.booleans())), TEXT))


def read(kind: str, data: bytes, folder: Path) -> None:
    path = folder / "set" / "model" / "seed0" / f"{kind}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    if kind == "log_z":
        read_log_z(path)
        read_normaliser(path)
    elif kind in log_z_parts.KINDS:
        log_z_parts.read(kind, data, path.parent)
    elif kind == "proposals":
        read_frame(PROPOSALS, path, path)
    elif kind == "orders":
        list(agreement_rows(gather_sensitivity([path]), Comparison()))
    elif kind == "benchmark":
        read_benchmark(path)
    elif kind == "cell":
        table = gather_metrics([path])
        list(summary_rows(table))
        list(paired_rows(table, {"ring": "dkef"}))
    elif kind == "claims":
        html_of("claims", Results(INFO, {"claims": read_frame(CLAIMS, path)}))
    elif kind == "known_values":
        list(beside_ours(Results(INFO, {"known_values": read_frame(KNOWN_VALUES, path)})))
    elif kind == "trace":
        read_trace(path)
    else:
        read_frame(
            {"metrics": METRICS, "sensitivity": SENSITIVITY, "summary": SUMMARY, "agreement": AGREEMENT}[kind], path
        )
