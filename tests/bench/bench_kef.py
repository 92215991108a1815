"""The deep kernel exponential family at the paper's sizes: step, validation, phase 2, full-data statistics."""

import json
import math
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from kef_products import graph_flop, step_flop
from limits import Limit, best_time, sgemm_time

from dkef.models.kef.spec import KernelExponentialFamily
from dkef.models.kef.variables import frozen_names, initial_values
from dkef.training.layout import Layout

PAPER = KernelExponentialFamily()  # R = 3, L = 3, W = 30, M = 300, |Dt| = |Dv| = 100
BATCH = PAPER.batch_rows
CPU = time.process_time
SGEMM_FLOP = 2 * 2048**3  # in T
AGREED = "agreed for the deep kernel exponential family, on a quiet machine"
ONE_THREAD = "agreed for one thread, whose sgemm takes 159 ms, on a quiet machine"
DISTURBED = (
    "no step is faster than its products, so T was measured too long beside other work, and ratios to it are off"
)
ROWWISE = "every product and tensor is linear in it or does not depend on it"
IN_M = "G and U are quadratic in m and the rest at most linear, but for a Cholesky factor that is small at m = 600"
IN_W = "layers and the quadratic term are quadratic in w, and tensors of size n x d x m do not depend on it"
NOISE = 0.2  # of an exponent: both times are uncertain by some percent
GROWTH = {"n": (0.5, 1.0, ROWWISE), "d": (0.5, 1.0, ROWWISE), "m": (0.5, 2.0, IN_M), "w": (0.0, 2.0, IN_W)}
LIMITS = (
    Limit("dkef_step_over_sgemm_d11", AGREED, most=1.0),
    Limit("dkef_step_over_sgemm_d43", AGREED, most=1.6),
    Limit("dkef_step_speedup_over_forward_accumulator_d11", AGREED, least=4.0),
    Limit("dkef_iteration_over_sgemm_d11", ONE_THREAD, most=0.75),
    Limit("dkef_iteration_over_sgemm_d22", ONE_THREAD, most=1.3),
    Limit("dkef_iteration_over_sgemm_d43", ONE_THREAD, most=2.2),
    Limit("phase2_step_ms_d11", ONE_THREAD, most=2.0),
    Limit("phase2_step_over_sgemm_d11", ONE_THREAD, most=0.0126),
    Limit("dkef_statistics_peak_mb_d43", AGREED, most=1300.0),
    *(Limit(f"dkef_step_over_its_products_d{d}", DISTURBED, least=1.0) for d in (11, 22, 43)),
    *(
        Limit(f"{name}_{key}", reason, least - NOISE, most + NOISE)
        for name in ("dkef_growth", "dkef_step_growth")
        for key, (least, most, reason) in GROWTH.items()
    ),
)


def problem(spec: KernelExponentialFamily, d: int, n: int = 1000):
    """A graph of functions, a start and some rows."""
    from dkef.models.kef.graph import KefGraph

    rng = np.random.default_rng(0)
    # Inducing points apart from the rows: at x = z automatic differentiation of the clamped distance is off.
    values = initial_values(spec, rng.standard_normal((spec.inducing_points, d)), rng)
    x = rng.standard_normal((n, d))
    layout = Layout.of(values, frozen_names(spec))
    return KefGraph(spec, layout), layout.pack(values), x


def step_figures() -> dict[str, float]:
    """Step and validation pass in units of T, the time of one 2048^3 float32 product in this process.

    The step also in units of its own matrix products at the speed of that one.
    """
    figures = {}
    T = sgemm_time()
    for d in (11, 22, 43):
        graph, theta, x = problem(PAPER, d)
        start = time.perf_counter()
        graph.step_gradient(theta, x[:BATCH], x[BATCH : 2 * BATCH])
        figures[f"dkef_step_first_call_seconds_d{d}"] = time.perf_counter() - start
        step = best_time(lambda g=graph, t=theta, x=x: g.step_gradient(t, x[:BATCH], x[BATCH : 2 * BATCH]), 30)
        alpha = np.full(PAPER.inducing_points, 0.01)
        validation(graph, theta, alpha, x)  # traced here, timed below
        T = min(T, sgemm_time())
        figures[f"dkef_step_over_sgemm_d{d}"] = step / T
        flop = counted_flop(graph, d)
        figures[f"dkef_step_gflop_d{d}"] = flop / 1e9
        figures[f"dkef_step_over_its_products_d{d}"] = step / (flop / SGEMM_FLOP * T)
        passes = best_time(lambda g=graph, t=theta, a=alpha, x=x: validation(g, t, a, x), 6)
        figures[f"dkef_validation_over_sgemm_d{d}"] = passes / T
    return figures


def validation(graph, theta, alpha, x) -> None:
    """What one validation computes, but for the solution of m equations."""
    tiled = graph.tiled(theta)
    tiled.statistics(x)
    tiled.loss_rows(x, alpha)


def iteration_child(d: int) -> dict[str, float]:
    """Step and validation with its solution, as phase 1 repeats them, in units of T; for a process of one thread.

    There processor time is what a quiet machine takes, and other work on the machine does not count.
    """
    from dkef.models.kef.statistics import solve
    from dkef.models.kef.variables import regularisers

    graph, theta, x = problem(PAPER, d, n=2000)
    weights = regularisers(PAPER, graph.layout.unpack(theta))

    def iteration() -> None:
        graph.step_gradient(theta, x[:BATCH], x[BATCH : 2 * BATCH])
        tiled = graph.tiled(theta)
        tiled.loss_rows(x[1000:], solve(tiled.statistics(x[:1000]), weights).alpha)

    iteration()  # traced and compiled here
    # In turns, because machines change their speed.
    own, T = zip(*((best_time(iteration, clock=CPU), sgemm_time(clock=CPU)) for _ in range(4)), strict=True)
    return {f"dkef_iteration_over_sgemm_d{d}": min(own) / min(T)}


def phase2_child(d: int) -> dict[str, float]:
    """A step of phase 2 with the loss after it, 1000 validation rows, beyond what is computed once."""
    from dkef.models.kef.phase2 import Phase2
    from dkef.models.protocol import FitContext

    graph, theta, x = problem(PAPER, d, n=2000)

    def steps(number: int) -> float:
        graph.spec = replace(PAPER, phase2_iterations=number, patience=number)
        stage = Phase2(graph, x[:1000], x[1000:], FitContext())
        statistics = stage.statistics(theta, x[:1000])
        return best_time(lambda: stage.adam_steps(theta, statistics), clock=CPU)

    steps(1)  # compiled here
    step = (steps(250) - steps(50)) / 200
    return {f"phase2_step_ms_d{d}": 1e3 * step, f"phase2_step_over_sgemm_d{d}": step / sgemm_time(clock=CPU)}


def counted_flop(graph, d: int) -> float:
    """Operations in the matrix products of a step, once the algebra and the graph agree on them."""
    algebra, traced = sum(step_flop(PAPER, d, BATCH).values()), graph_flop(graph, d, BATCH)
    if algebra != traced:
        raise RuntimeError(
            f"products of a step at D = {d}: {algebra:.0f} FLOP by the algebra, {traced:.0f} in the graph"
        )
    return algebra


def witness_figures() -> dict[str, float]:
    """Speed-up over automatic differentiation of the kernel, and the largest relative difference of the gradients."""
    import kef_witnesses as witnesses
    import tensorflow as tf

    figures = {}
    for d in (11, 22, 43):
        graph, theta, x = problem(PAPER, d)
        fit_rows, loss_rows = x[:BATCH], x[BATCH : 2 * BATCH]
        rows = [tf.constant(part, tf.float32) for part in (theta, fit_rows, loss_rows)]
        gradient = graph.step_gradient(theta, fit_rows, loss_rows).gradient
        ours = best_time(lambda g=graph, t=theta, a=fit_rows, b=loss_rows: g.step_gradient(t, a, b), 20)
        ways = {"nested_tapes": witnesses.by_nested_tapes}
        if d == 11:  # half a minute to trace
            ways["forward_accumulator"] = witnesses.by_forward_accumulator
        for name, derivatives in ways.items():
            witness = witnesses.step_gradient(graph, derivatives)
            difference = np.abs(witness(*rows).numpy() - gradient).max() / np.abs(gradient).max()
            theirs = best_time(lambda w=witness, r=rows: w(*r).numpy(), 3)
            figures[f"dkef_step_speedup_over_{name}_d{d}"] = theirs / ours
        figures[f"dkef_step_float32_difference_d{d}"] = float(difference)
    return figures


def growth_figures() -> dict[str, float]:
    """log2 of the processor time when one size doubles, of statistics and loss and of the step; see GROWTH."""
    base = {"n": 400, "m": 300, "d": 20, "w": 30}

    def seconds(n: int, m: int, d: int, w: int) -> tuple[float, float]:
        graph, theta, x = problem(replace(PAPER, width=w, inducing_points=m), d, n=2 * n)
        alpha = np.full(m, 0.01)
        return (
            processor_time(lambda: validation(graph, theta, alpha, x[:n])),
            processor_time(lambda: graph.step_gradient(theta, x[:n], x[n:])),
        )

    start = seconds(**base)
    figures = {}
    for key in base:
        doubled = seconds(**base | {key: 2 * base[key]})
        for name, after, before in zip(("dkef_growth", "dkef_step_growth"), doubled, start, strict=True):
            figures[f"{name}_{key}"] = math.log2(after / before)
    return figures


def processor_time(call: Callable[[], object]) -> float:
    """Least seconds of all threads, after a first call that traces."""
    call()
    return best_time(call, 8, CPU)


def peak_megabytes() -> float:
    """Largest resident memory of this process; ru_maxrss would count that of the parent before exec."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return float(status["VmHWM"].split()[0]) / 1024


def statistics_child(d: int) -> dict[str, float]:
    """N = 30,000, as phase 2 takes them."""
    graph, theta, x = problem(PAPER, d, n=30_000)
    graph.tiled(theta).statistics(x[:BATCH])
    start = time.perf_counter()
    graph.tiled(theta).statistics(x)
    rate = len(x) / (time.perf_counter() - start)
    return {f"dkef_statistics_rows_per_second_d{d}": rate, f"dkef_statistics_peak_mb_d{d}": peak_megabytes()}


def step_child(d: int) -> dict[str, float]:
    graph, theta, x = problem(PAPER, d)
    graph.step_gradient(theta, x[:BATCH], x[BATCH : 2 * BATCH])
    return {f"dkef_step_peak_mb_d{d}": peak_megabytes()}


def validation_child(d: int) -> dict[str, float]:
    graph, theta, x = problem(PAPER, d)
    validation(graph, theta, np.full(PAPER.inducing_points, 0.01), x)
    return {f"dkef_validation_peak_mb_d{d}": peak_megabytes()}


def in_child(function: str, d: int, threads: int | None = None) -> dict[str, float]:
    """What the function returns in a process of its own, so that its peak memory and number of threads are its own."""
    pin = f"from dkef.core.threads import pin_threads; pin_threads({threads}); " if threads else ""
    code = f"{pin}import json, bench_kef; print(json.dumps(bench_kef.{function}({d})))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parent, stdout=subprocess.PIPE, text=True, check=True
    )
    child: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return child


def measure() -> dict[str, float]:
    """All figures of this topic."""
    figures = step_figures() | witness_figures() | growth_figures()
    for function in ("step_child", "validation_child", "statistics_child"):
        for d in (11, 43):
            figures |= in_child(function, d)
    for d in (11, 22, 43):
        figures |= in_child("iteration_child", d, threads=1)
    figures |= in_child("phase2_child", 11, threads=1)
    return figures
