"""Flows at D = 43, two hidden layers of 100, minibatches of 200: training steps, their start, and the curvature."""

import time
import tracemalloc
from dataclasses import replace
from typing import Any

import numpy as np
from limits import best_time, sgemm_time

from dkef.core.arrays import Array
from dkef.core.streams import rng_for
from dkef.models.flows.density import FlowModel, draw_flow, log_density, stored_statistics
from dkef.models.flows.fit import BLOCK_STEPS, flow_shape
from dkef.models.flows.spec import Flow
from dkef.models.flows.steps import compile_flow
from dkef.training.layout import Layout

D, ROWS = 43, 1000
MADE = Flow()
MAF = Flow(layers=5, batch_norm=True)
SPECS = {
    "made": MADE,
    "made_mog": replace(MADE, layers=0, components=10),
    "real_nvp": replace(MAF, transform="coupling"),
    "maf": MAF,
    "maf_mog": replace(MAF, components=10),
}


class Bench:
    """One flow with random data and initial parameters."""

    def __init__(self, spec: Flow) -> None:
        self.spec, self.shape = spec, flow_shape(spec, D)
        self.rng = rng_for("bench", "flows")
        self.drawn, self.orders = draw_flow(
            self.shape, (spec.width,) * spec.hidden_layers, "sequential", "sequential", self.rng
        )
        self.layout = Layout.of(self.drawn.parameters)

    def training(self, jit: bool) -> tuple[float, float]:
        """Seconds until the first block of steps is done, beyond the steps themselves, and seconds of a step."""
        batches = self.rng.standard_normal((BLOCK_STEPS, self.spec.batch_rows, D), dtype=np.float32)
        theta = self.layout.pack(self.drawn.parameters).astype(np.float32)
        free = self.layout.pack(self.drawn.free).astype(np.float32)
        state = (theta, np.zeros_like(theta), np.zeros_like(theta), np.int32(0), batches, np.int32(BLOCK_STEPS))
        start = time.perf_counter()
        compiled = compile_flow(self.spec, self.shape, self.layout, free, jit)
        compiled.advance(*state)
        first = time.perf_counter() - start
        block = best_time(lambda: float(compiled.advance(*state).mean_loss), repeats=4)
        return first - block, block / BLOCK_STEPS

    def step_gflop(self) -> float:
        """Matrix products of a step: forward, and two of the same size backward."""
        weights = sum(array.size for array in self.drawn.parameters.values() if array.ndim == 2)
        return 3 * 2 * self.spec.batch_rows * weights / 1e9

    def model(self) -> FlowModel:
        return FlowModel.with_statistics(self.shape, self.drawn.parameters, self.orders, self.rows(ROWS))

    def rows(self, n: int) -> Array:
        return rng_for("bench", "rows").standard_normal((n, D))


def curvature(bench: Bench) -> tuple[float, float]:
    """Seconds for log density, score and curvature of 1000 points, and peak memory in MB."""
    model, x = bench.model(), bench.rows(ROWS)
    seconds = best_time(lambda: model.evaluate(x), repeats=2)
    tracemalloc.start()
    model.evaluate(x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return seconds, peak / 1e6


def forward_over_reverse_over_jets(bench: Bench, n: int) -> float:
    """Time of TensorFlow for the curvature of n points, a forward derivative of the score a coordinate, over ours."""
    import tensorflow as tf

    model = bench.model()
    parameters = {name: tf.constant(array) for name, array in model.parameters.items()}
    statistics = stored_statistics(model.shape, parameters)
    x = tf.constant(bench.rows(n))

    def one(d: Any) -> Any:
        direction = tf.broadcast_to(tf.one_hot(d, D, dtype=tf.float64), x.shape)
        with tf.autodiff.ForwardAccumulator(x, direction) as forward:
            with tf.GradientTape() as tape:
                tape.watch(x)
                total = tf.reduce_sum(log_density(model.shape, parameters, x, statistics))
            score = tape.gradient(total, x)
        return forward.jvp(score)[:, d]

    every = tf.function(lambda: tf.map_fn(one, tf.range(D), fn_output_signature=tf.float64))
    found = tf.transpose(every()).numpy()
    assert np.allclose(found, model.evaluate(x.numpy()).curvature)
    jets = best_time(lambda: model.evaluate(x.numpy()), repeats=2)
    return best_time(lambda: every().numpy(), repeats=2) / jets


def measure() -> dict[str, float]:
    sgemm = sgemm_time()
    gflops = 2 * 2048**3 / 1e9 / sgemm
    figures = {}
    for name, spec in SPECS.items():
        bench = Bench(spec)
        start, step = bench.training(jit=False)
        start_jit, step_jit = bench.training(jit=True)
        seconds, peak = curvature(bench)
        figures |= {
            f"flow_{name}_steps_per_second_d43": 1 / step,
            f"flow_{name}_fraction_of_sgemm_d43": bench.step_gflop() / gflops / step,
            f"flow_{name}_start_seconds_d43": start,
            f"flow_{name}_jit_steps_per_second_d43": 1 / step_jit,
            f"flow_{name}_jit_start_seconds_d43": start_jit,
            f"flow_{name}_curvature_seconds_d43": seconds,
            f"flow_{name}_curvature_peak_mb_d43": peak,
        }
        if name == "maf":
            figures["flow_maf_forward_over_reverse_over_jets_d43"] = forward_over_reverse_over_jets(bench, 100)
    return figures
