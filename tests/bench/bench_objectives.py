"""Objectives of the kernel exponential family: when do random directions pay, and what does a step of each cost?

Time and memory of one step over D and W, along all coordinates (exact) and along 1 and 10 random directions (sliced),
with the time of its matrix products at the speed of one large product as the floor. Processor time of one thread, one
component (R = 1), otherwise the paper's sizes: M = 300, three layers with a skip, |Dt| = |Dv| = 100. Rows are made up;
the time of a step does not depend on them.

    python tests/bench/__main__.py objectives --out results/published/objectives/scaling.json
"""

import json
import statistics
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np
from bench_kef import peak_megabytes, problem
from kef_products import graph_flop
from limits import Limit, sgemm_time

from dkef.models.kef.objectives.choice import draw_noise
from dkef.models.kef.spec import KernelExponentialFamily, Objective

DIMENSIONS = (10, 22, 43, 100, 200, 400)
WIDTHS = (30, 100, 300)
KINDS = {"exact": ("exact", 1), "sliced_1": ("sliced", 1), "sliced_10": ("sliced", 10)}
ONE = KernelExponentialFamily(components=1)
# The models of experiment=objectives, whose budgets in iterations follow from these ratios.
MODELS = {
    "wine": (KernelExponentialFamily(), 11),
    "parkinsons": (KernelExponentialFamily(), 15),
    "ring": (KernelExponentialFamily(components=1, width=15, inducing_points=200), 2),
}
REPEATS = 3
FEWER = "one direction of 400 is a small part of the work"
LIMITS = tuple(Limit(f"objectives_sliced_1_over_exact_d400_w{w}", FEWER, most=0.5) for w in WIDTHS)


def step_time(spec: KernelExponentialFamily, d: int, repeats: int = REPEATS) -> tuple[float, float]:
    """Median processor seconds of a step after a first one that traces, and FLOP of its products."""
    n = spec.batch_rows
    graph, theta, x = problem(spec, d, n=2 * n)
    noise = [draw_noise(spec, (n, d), np.random.default_rng(i)) for i in range(2)]

    def step() -> float:
        start = time.process_time()
        graph.step_gradient(theta, x[:n], x[n:], *noise)
        return time.process_time() - start

    step()
    drawn = [part.shape for part in noise if part is not None]
    return statistics.median(step() for _ in range(repeats)), graph_flop(graph, d, n, *drawn)


def scaling_child(kind: str, w: int) -> dict[str, float]:
    """One line of the figure: rising D, so that the peak of memory is that of the last one."""
    objective, slices = KINDS[kind]
    spec = replace(ONE, objective=objective, slices=slices, width=w)
    rate = 2 * 1024**3 / sgemm_time(1024, clock=time.process_time)
    figures = {}
    for d in DIMENSIONS:
        seconds, flop = step_time(spec, d)
        end = f"{kind}_d{d}_w{w}"
        figures[f"objectives_step_ms_{end}"] = 1e3 * seconds
        figures[f"objectives_products_ms_{end}"] = 1e3 * flop / rate
        figures[f"objectives_peak_mb_{end}"] = peak_megabytes()
    return figures


def models_child(name: str) -> dict[str, float]:
    """A step of every objective over the exact one's, for one model of the experiment."""
    spec, d = MODELS[name]
    seconds = {one: step_time(replace(spec, objective=one), d, repeats=9)[0] for one in get_args(Objective)}
    return {f"objectives_{one}_over_exact_{name}": t / seconds["exact"] for one, t in seconds.items() if one != "exact"}


def in_child(call: str) -> dict[str, float]:
    """What the function returns in a process of its own, of one thread."""
    code = (
        "from dkef.core.threads import pin_threads; pin_threads(1); "
        f"import json, bench_objectives as b; print(json.dumps(b.{call}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parent, stdout=subprocess.PIPE, text=True, check=True
    )
    child: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return child


def measure() -> dict[str, float]:
    """All figures of this topic."""
    figures: dict[str, float] = {}
    for name in MODELS:
        figures |= in_child(f"models_child({name!r})")
    for w in WIDTHS:
        for kind in KINDS:
            figures |= in_child(f"scaling_child({kind!r}, {w})")
        for kind in ("sliced_1", "sliced_10"):
            for d in DIMENSIONS:
                own, exact = (figures[f"objectives_step_ms_{k}_d{d}_w{w}"] for k in (kind, "exact"))
                figures[f"objectives_{kind}_over_exact_d{d}_w{w}"] = own / exact
    return figures
