"""log Z: samples per second at the paper's sizes, against the library limit and against plain TensorFlow.

Limit: the matrix products of one sample at the best sgemm rate of this run, plus its exponentials and logarithms at
NumPy's rate, on all cores. All rates are measured in turn in the same few minutes, the best of several rounds each.
"""

import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
from limits import best_time, sgemm_time

from dkef.models.kef.parameters import BaseMeasure, Component, KefParameters
from dkef.models.layers import Layer
from dkef.normaliser.weights import Q0Weights

M, R, W = 300, 3, 30
CORES = os.cpu_count() or 1
ROUNDS = 4
SAMPLES = 1 << 21
PLAIN_BATCH = 100_000


def paper_model(d: int, fixed_q0: bool) -> KefParameters:
    """R networks of three layers of W units with a skip to the last, M inducing points, the paper's initial widths."""
    rng = np.random.default_rng(d)

    def normal(*shape: int) -> np.ndarray:
        return rng.normal(size=shape) / math.sqrt(W)

    networks = [
        (
            Layer(normal(d, W), normal(W), None, "softplus"),
            Layer(normal(W, W), normal(W), None, "softplus"),
            Layer(normal(W, W), normal(W), normal(d, W), "softplus"),
        )
        for _ in range(R)
    ]
    components = tuple(
        Component("gaussian", 1 / R, tau, layers) for tau, layers in zip((1.0, 3.16, 10.0), networks, strict=True)
    )
    beta = np.full(d, 2.0) if fixed_q0 else rng.uniform(1.4, 4.8, d)
    q0 = BaseMeasure(np.zeros(d), np.full(d, 2.0), beta)
    return KefParameters(rng.normal(size=M), rng.normal(size=(M, d)), components, q0)


def far_model(d: int) -> KefParameters:
    """As paper_model under a q0 ten times as wide: most kernel values are next to nothing, as under a trained q0."""
    near = paper_model(d, False)
    return replace(near, q0=replace(near.q0, sigma=10 * near.q0.sigma))


def flop(d: int) -> int:
    """Of one sample: three layers, products with the inducing features (two columns more, for the norms), alpha."""
    return R * (2 * (d * W + W * W + (W + d) * W) + 2 * M * (W + 2) + 2 * M)


EXPONENTIALS = R * (M + 2 * 3 * W)  # one a kernel value; an exponential and a logarithm a softplus


def exp_rate() -> float:
    """NumPy's float32 exponentials per second, in the L2 cache, on all cores at once."""
    n, repeats = 1 << 16, 200
    inputs = np.random.default_rng(0).uniform(-20, 0, (CORES, n)).astype(np.float32)
    outputs = np.empty_like(inputs)

    def work(core: int) -> None:
        for _ in range(repeats):
            np.exp(inputs[core], out=outputs[core])

    with ThreadPoolExecutor(CORES) as pool:
        return CORES * n * repeats / best_time(lambda: list(pool.map(work, range(CORES))), 3)


def plain_batch(parameters: KefParameters) -> Callable[[], object]:
    """One batch the plain way: TensorFlow ops on the whole batch, its own samplers; returns log mean r."""
    import tensorflow as tf

    def constant(array: np.ndarray) -> tf.Tensor:
        return tf.constant(array, tf.float32)

    q0, z = parameters.q0, parameters.z
    mu, beta, scale = constant(q0.mu), constant(q0.beta), constant(2 * q0.sigma**2)
    normal = bool((q0.beta == 2).all())
    alpha, phi_z = constant(parameters.alpha), [constant(c.features(z)) for c in parameters.components]

    def sample() -> tf.Tensor:
        shape = (PLAIN_BATCH, len(q0.mu))
        if normal:
            return mu + tf.sqrt(scale / 2) * tf.random.normal(shape)
        magnitude = (scale * tf.random.gamma((PLAIN_BATCH,), 1 / beta)) ** (1 / beta)
        return mu + magnitude * tf.sign(tf.random.uniform(shape, -1, 1))

    def features(x: tf.Tensor, component: Component) -> tf.Tensor:
        h = x
        for layer in component.layers:
            pre = h @ constant(layer.weight) + constant(layer.bias)
            h = tf.nn.softplus(pre if layer.skip is None else pre + x @ constant(layer.skip))
        return h

    @tf.function
    def batch() -> tf.Tensor:
        x = sample()
        f = tf.zeros(PLAIN_BATCH)
        for component, psi in zip(parameters.components, phi_z, strict=True):
            phi = features(x, component)
            squared = tf.reduce_sum(phi**2, 1)[:, None] - 2 * phi @ tf.transpose(psi) + tf.reduce_sum(psi**2, 1)
            f += component.rho * tf.linalg.matvec(tf.exp(-tf.maximum(squared, 0) / (2 * component.tau)), alpha)
        return tf.reduce_logsumexp(f)

    batch()
    return lambda: batch().numpy()


def setup_seconds(cache: str) -> float:
    """A fresh process, until its first block of samples is done (imports included)."""
    code = (
        "import bench_normaliser as b; from dkef.normaliser.weights import Q0Weights;"
        "Q0Weights(b.paper_model(43, False), 'setup').moments('z', 0, 64)"
    )
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | {"NUMBA_CACHE_DIR": cache})
    return time.perf_counter() - start


def measure() -> dict[str, float]:
    cases = {
        f"{'fixed_q0_' if fixed else ''}d{d}": paper_model(d, fixed) for d in (11, 22, 43) for fixed in (False, True)
    }
    weights = {name: Q0Weights(model, name) for name, model in cases.items()}
    plain = {name: plain_batch(model) for name, model in cases.items()}
    fused_rate = dict.fromkeys(cases, 0.0)
    plain_rate = dict.fromkeys(cases, 0.0)
    product_rate = exponential_rate = 0.0
    for turn in range(ROUNDS):
        product_rate = max(product_rate, 2 * 2048**3 / sgemm_time())
        exponential_rate = max(exponential_rate, exp_rate())
        for name, w in weights.items():
            fused = best_time(lambda w=w, turn=turn: w.moments("z", turn, SAMPLES, CORES), 1)
            fused_rate[name] = max(fused_rate[name], SAMPLES / fused)
            plain_rate[name] = max(plain_rate[name], PLAIN_BATCH / best_time(plain[name], 2))
    figures = {"sgemm_gflops": product_rate / 1e9, "exp_giga_per_second": exponential_rate / 1e9}
    far = Q0Weights(far_model(11), "far")
    far_time = best_time(lambda: far.moments("z", 0, SAMPLES, CORES), ROUNDS)
    figures["logz_far_over_near_rate_d11"] = SAMPLES / far_time / fused_rate["d11"]
    for name, model in cases.items():
        limit = 1 / (flop(model.z.shape[1]) / product_rate + EXPONENTIALS / exponential_rate)
        figures[f"logz_million_samples_per_second_{name}"] = fused_rate[name] / 1e6
        figures[f"logz_fraction_of_limit_{name}"] = fused_rate[name] / limit
        figures[f"logz_over_plain_{name}"] = fused_rate[name] / plain_rate[name]
    with tempfile.TemporaryDirectory() as cache:
        figures["logz_setup_seconds"] = setup_seconds(cache)
        figures["logz_setup_again_seconds"] = setup_seconds(cache)
    return figures
