"""The deep kernel exponential family at the paper's sizes: training step, validation pass, full-data statistics."""

import json
import math
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from limits import best_time, sgemm_time

from dkef.specs.kef import KernelExponentialFamily
from dkef.training.kef_variables import Layout, frozen_names, initial_values

PAPER = KernelExponentialFamily()  # R = 3, L = 3, W = 30, M = 300, |Dt| = |Dv| = 100


def problem(spec: KernelExponentialFamily, d: int, n: int = 1000):
    """A graph of functions, a start and some rows."""
    from dkef.training.kef_graph import KefGraph

    rng = np.random.default_rng(0)
    # Inducing points apart from the rows: at x = z automatic differentiation of the clamped distance is off.
    values = initial_values(spec, rng.standard_normal((spec.inducing_points, d)), rng)
    x = rng.standard_normal((n, d))
    layout = Layout.of(values, frozen_names(spec))
    return KefGraph(spec, layout), layout.pack(values), x


def step_figures() -> dict[str, float]:
    """Step and validation pass in units of T, the time of one 2048^3 float32 product in this process."""
    figures = {}
    T = sgemm_time()
    for d in (11, 22, 43):
        graph, theta, x = problem(PAPER, d)
        start = time.perf_counter()
        graph.step_gradient(theta, x[:100], x[100:200])
        figures[f"dkef_step_first_call_seconds_d{d}"] = time.perf_counter() - start
        step = best_time(lambda g=graph, t=theta, x=x: g.step_gradient(t, x[:100], x[100:200]), 30)
        alpha = np.full(300, 0.01)

        def validation(g=graph, t=theta, x=x, alpha=alpha) -> None:
            g.statistics(t, x)
            g.loss_rows(t, alpha, x)

        validation()
        T = min(T, sgemm_time())
        figures[f"dkef_step_over_sgemm_d{d}"] = step / T
        figures[f"dkef_validation_over_sgemm_d{d}"] = best_time(validation, 6) / T
    return figures


def witness_figures() -> dict[str, float]:
    """Speed-up over automatic differentiation of the kernel, and the largest relative difference of the gradients."""
    import kef_witnesses as witnesses
    import tensorflow as tf

    graph, theta, x = problem(PAPER, 11)
    rows = [tf.constant(part, tf.float32) for part in (theta, x[:100], x[100:200])]
    gradient = graph.step_gradient(theta, x[:100], x[100:200]).gradient
    nested = witnesses.step_gradient(graph, witnesses.by_nested_tapes)
    forward = witnesses.step_gradient(graph, witnesses.by_forward_accumulator)
    difference = np.abs(nested(*rows).numpy() - gradient).max() / np.abs(gradient).max()
    forward(*rows)  # traced here, timed below
    ours = best_time(lambda: graph.step_gradient(theta, x[:100], x[100:200]), 20)
    return {
        "dkef_step_speedup_over_nested_tapes_d11": best_time(lambda: nested(*rows).numpy(), 3) / ours,
        "dkef_step_speedup_over_forward_accumulator_d11": best_time(lambda: forward(*rows).numpy(), 3) / ours,
        "dkef_step_float32_difference_d11": float(difference),
    }


def growth_figures() -> dict[str, float]:
    """log2 of the processor time of statistics and loss when one size doubles.

    By the algebra at most 1 in n and d, between 1 and 2 in m (products m^2) and in w.
    """
    base = {"n": 400, "m": 300, "d": 20, "w": 30}

    def seconds(n: int, m: int, d: int, w: int) -> float:
        graph, theta, x = problem(replace(PAPER, width=w, inducing_points=m, block_rows=n), d, n=1000)
        alpha = np.full(m, 0.01)
        graph.statistics(theta, x[:n])
        graph.loss_rows(theta, alpha, x[:n])
        times = []
        for _ in range(8):
            begun = time.process_time()
            graph.statistics(theta, x[:n])
            graph.loss_rows(theta, alpha, x[:n])
            times.append(time.process_time() - begun)
        return min(times)

    start = seconds(**base)
    return {f"dkef_growth_{key}": math.log2(seconds(**base | {key: 2 * base[key]}) / start) for key in base}


def peak_megabytes() -> float:
    """Largest resident memory of this process; ru_maxrss would count that of the parent before exec."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return float(status["VmHWM"].split()[0]) / 1024


def full_statistics_child() -> dict[str, float]:
    """N = 30,000, D = 43, as phase 2 takes them; in a process of its own, for its peak memory."""
    graph, theta, x = problem(PAPER, 43, n=30_000)
    graph.statistics(theta, x[:100])
    start = time.perf_counter()
    graph.statistics(theta, x)
    rate = len(x) / (time.perf_counter() - start)
    return {"dkef_statistics_rows_per_second_d43": rate, "dkef_statistics_peak_mb_d43": peak_megabytes()}


def step_child() -> dict[str, float]:
    graph, theta, x = problem(PAPER, 43)
    graph.step_gradient(theta, x[:100], x[100:200])
    peak = {"dkef_step_peak_mb_d43": peak_megabytes()}
    graph.statistics(theta, x)
    graph.loss_rows(theta, np.full(300, 0.01), x)
    return peak | {"dkef_validation_peak_mb_d43": peak_megabytes()}


def in_child(function: str) -> dict[str, float]:
    code = f"import json, bench_kef; print(json.dumps(bench_kef.{function}()))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parent, capture_output=True, text=True, check=True
    )
    child: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return child


def measure() -> dict[str, float]:
    """All figures of this topic."""
    return (
        step_figures()
        | witness_figures()
        | growth_figures()
        | in_child("full_statistics_child")
        | in_child("step_child")
    )
