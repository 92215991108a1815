"""The fused loops compute the same f as the plain definition in float64."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dkef.core.streams import rng_for
from dkef.models.kef.langevin import ScoreField
from dkef.models.kef.parameters import KefParameters
from dkef.normaliser.integrand import KernelIntegrand
from dkef.normaliser.simd.cover import NEGLIGIBLE_BITS, balls, share_within
from dkef.normaliser.simd.program import SIEVE, evaluate_block, pack, workspace
from dkef.normaliser.simd.vector import BLOCK
from dkef.normaliser.weights import Q0Weights
from tests.normaliser.examples import random_kef

SHAPES = {
    "no network": {"d": 3, "m": 50, "widths": (), "skips": ()},
    "no network, one dimension, one point": {"d": 1, "m": 1, "widths": (), "skips": (), "taus": (1.0,)},
    "one layer": {"d": 2, "m": 7, "widths": (15,), "skips": ()},
    "skip on the only layer": {"d": 2, "m": 7, "widths": (15,), "skips": (0,)},
    "paper": {"d": 11, "m": 300, "widths": (30, 30, 30), "skips": (2,), "taus": (1.0, 3.16, 10.0)},
    "linear top": {"d": 5, "m": 100, "widths": (30, 30, 30), "skips": (2,), "top": "linear"},
    "skips everywhere, odd widths": {"d": 4, "m": 31, "widths": (7, 20, 3, 11), "skips": (0, 1, 2, 3)},
    "narrower than the data": {"d": 43, "m": 60, "widths": (5, 5), "skips": (1,)},
    "linear kernel": {"d": 2, "m": 40, "widths": (50, 50, 50), "skips": (2,), "taus": (1.0,), "kind": "linear"},
    "linear kernel, no network": {"d": 3, "m": 4, "widths": (), "skips": (), "kind": "linear"},
}  # fmt: skip


def fused_f(parameters: KefParameters, x: np.ndarray) -> np.ndarray:
    program = pack(parameters)
    rows, f = workspace(program), np.empty(BLOCK)
    rows[: x.shape[1]] = x.T
    evaluate_block(program, rows, f)
    return f


def scale_of_terms(parameters: KefParameters, x: np.ndarray) -> np.ndarray:
    """sum_m |alpha_m k(x, z_m)|, against which rounding in f is to be measured."""
    k = sum(np.abs(c.kernel(x, parameters.z)) for c in parameters.components)
    return k @ np.abs(parameters.alpha)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_fused_f_equals_the_definition(shape):
    parameters = random_kef(seed=1, **shape)
    x = rng_for("test", "fused", shape["d"]).normal(size=(BLOCK, shape["d"])).astype(np.float32).astype(np.float64)
    # Exponents up to a few tens carry float32 rounding of about 4e-6; so does each term, relative to itself.
    error = np.abs(fused_f(parameters, x) - parameters.f(x))
    assert (error <= 6e-6 * scale_of_terms(parameters, x) + 1e-9).all()


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_the_fused_gradient_equals_reverse_differentiation_in_float64(shape):
    parameters = random_kef(seed=2, **shape)
    n, d = 2 * BLOCK + 7, shape["d"]  # whole blocks and a part of one
    x = rng_for("test", "fused gradient", d).normal(size=(n, d)).astype(np.float32).astype(np.float64)
    log_p, score = KernelIntegrand(parameters).fast_gradient(x)
    expected, gradient = ScoreField(parameters)(x)
    scale = scale_of_terms(parameters, x)
    # Twice what f alone is held to, at twice as many points.
    assert (np.abs(log_p - expected) <= 12e-6 * scale + 1e-9).all()
    # Terms of the gradient are those of f times distances of features over tau and slopes of the network, here of
    # the order of ten; linear kernels have no such terms, only rounded weights.
    assert (np.abs(score - gradient).max(axis=1) <= 1e-4 * scale + 1e-4 * np.abs(gradient).max(axis=1) + 1e-9).all()


@pytest.mark.parametrize("name", ["one layer", "paper", "linear top"])
def test_the_fused_gradient_keeps_its_digits_on_the_narrow_kernels_that_training_can_end_in(name):
    wide = random_kef(seed=5, **SHAPES[name])
    narrow = tuple(replace(component, tau=0.02 * component.tau) for component in wide.components)
    parameters = replace(wide, components=narrow, alpha=30 * wide.alpha)
    near = parameters.z + 0.02 * rng_for("test", "narrow", name).normal(size=parameters.z.shape)
    x = np.concatenate([near, 20 * near]).astype(np.float32).astype(np.float64)
    score, gradient = KernelIntegrand(parameters).fast_gradient(x)[1], ScoreField(parameters)(x)[1]
    # exponents of several hundred are right to 6e-8 of themselves and of a few terms that make them up
    assert np.abs(score - gradient).max() <= 1e-3 * np.abs(gradient).max()


def test_the_fused_gradient_does_not_depend_on_what_the_workspace_held():
    parameters = random_kef(seed=3, d=3, m=20)
    integrand = KernelIntegrand(parameters)
    x = rng_for("test", "workspace").normal(size=(5, 3))
    np.testing.assert_array_equal(integrand.fast_gradient(x)[1], integrand.fast_gradient(np.repeat(x, 60, 0))[1][::60])


def test_f_is_zero_and_finite_far_from_everything():
    parameters = random_kef(d=3, widths=(), skips=())
    x = np.linspace(1e3, 1e6, BLOCK)[:, None] * np.ones(3)
    np.testing.assert_allclose(fused_f(parameters, x), 0.0, atol=1e-30)


def test_kernels_at_the_inducing_points_reach_their_maximum_rho():
    parameters = random_kef(d=4, m=1, widths=(), skips=())
    x = np.broadcast_to(parameters.z.astype(np.float32), (BLOCK, 4))
    # z rounds to float32, which moves it by 1e-7
    np.testing.assert_allclose(fused_f(parameters, x), parameters.alpha[0], rtol=1e-6)


def test_log_r_is_the_density_ratio_at_the_very_samples():
    parameters = random_kef(seed=4, d=5, m=60)
    weights = Q0Weights(parameters, "ratio")
    x = weights.samples("z", 0, 1000).astype(np.float64)
    log_q0 = parameters.q0.log_density(x) - parameters.q0.log_normaliser()
    np.testing.assert_allclose(weights.log_r("z", 0, 1000), parameters.log_density(x) - log_q0, atol=3e-5)


def test_features_far_from_the_origin_lose_no_digits():
    shape = {"d": 2, "m": 30, "widths": (10,), "skips": (), "top": "linear", "taus": (1.0,)}
    near = random_kef(**shape)
    (component,) = near.components
    (layer,) = component.layers
    far_layer = type(layer)(layer.weight, layer.bias + 100.0, None, "linear")
    far = KefParameters(near.alpha, near.z, (type(component)("gaussian", 1.0, 1.0, (far_layer,)),), near.q0)
    x = rng_for("test", "far").normal(size=(BLOCK, 2))
    # 100 + h is rounded to float32 before centring, an error of 4e-6 in each feature; squares of norms 10 x 100^2
    # without centring would leave no digit at all.
    np.testing.assert_allclose(fused_f(far, x), near.f(x), atol=5e-4)


@pytest.mark.slow
@pytest.mark.parametrize("features", ["{'avx': True}", "{'neon': True}", "{}"], ids=["avx", "neon", "none"])
def test_hosts_with_other_registers_get_the_same_numbers(features, tmp_path):
    """As if the host had narrower registers: other tiles, the same samples and, but for rounding, the same f."""
    code = f"""
import llvmlite.binding as llvm
llvm.get_host_cpu_features = lambda: llvm.FeatureMap({features})
from dkef.normaliser.simd.vector import LANES
from dkef.normaliser.weights import Q0Weights
from tests.normaliser.examples import random_kef
assert LANES < 16
print(*Q0Weights(random_kef(d=5, m=31), "registers").log_r("z", 0, 100))
"""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    there = np.array([float(number) for number in done.stdout.split()])
    here = Q0Weights(random_kef(d=5, m=31), "registers").log_r("z", 0, 100)
    np.testing.assert_allclose(there, here, atol=1e-5)


SIEVED = {"paper": SHAPES["paper"], "plane": {"d": 2, "m": 200, "widths": (15, 15), "skips": (1,)}}


def sieved(shape: str) -> KefParameters:
    """Narrow and wide kernels at once under a wide q0, as training leaves them; alpha large enough to notice a loss."""
    parameters = random_kef(seed=6, **SIEVED[shape] | {"taus": (0.05, 1.0, 300.0)})
    return replace(parameters, alpha=20 * parameters.alpha, q0=replace(parameters.q0, sigma=6 * parameters.q0.sigma))


@pytest.mark.parametrize("count", [1, BLOCK, 5000 + 7], ids=["one sample", "one block", "many and a part of a block"])
@pytest.mark.parametrize("shape", SIEVED)
def test_sieves_leave_out_only_kernels_that_do_not_matter(shape, count):
    parameters = sieved(shape)
    weights = Q0Weights(parameters, "sieve")
    narrow = (weights.program.steps[:, 0] == SIEVE).sum()
    assert 0 < narrow < len(parameters.components), "some kernels have a sieve, others need every sample"
    x = weights.samples("z", 0, count).astype(np.float64)
    f = weights.log_r("z", 0, count) - parameters.q0.log_normaliser()
    # as without sieves, and what they leave out
    limit = 6e-6 * scale_of_terms(parameters, x) + len(parameters.components) * 2.0**-NEGLIGIBLE_BITS
    assert (np.abs(f - parameters.f(x)) <= limit).all()
    plain = Q0Weights(parameters, "sieve")
    plain.program = pack(parameters)
    np.testing.assert_allclose(weights.log_r("z", 0, count), plain.log_r("z", 0, count), atol=2e-7, rtol=1e-12)


@pytest.mark.parametrize(("shape", "component"), [("paper", 1), ("plane", 0)])
def test_some_samples_pass_a_sieve_and_some_do_not(shape, component):
    parameters = sieved(shape)
    x = Q0Weights(parameters, "sieve").samples("z", 0, 2000).astype(np.float64)
    narrow = parameters.components[component].kernel(x, parameters.z).max(axis=1) > 1e-6
    assert 0.01 < narrow.mean() < 0.9  # so that the test above sees both


def test_outside_all_balls_no_inducing_point_is_within_reach():
    rng = rng_for("test", "balls")
    z = np.concatenate([rng.normal(size=(100, 4)), 5 + 0.1 * rng.normal(size=(100, 4)), np.ones((50, 4))])
    centres, limits = balls(z, beyond=3.0)
    phi = 8 * rng.normal(size=(20_000, 4))
    outside = (((phi[:, None] - centres) ** 2).sum(axis=2) / 2 > limits).all(axis=1)
    nearest = (((phi[:, None] - z) ** 2).sum(axis=2) / 2).min(axis=1)
    assert (nearest[outside] >= 3.0).all()
    assert share_within(phi, centres, limits) == pytest.approx(1 - outside.mean(), abs=1e-4)
    assert outside.mean() > 0.5 * (nearest > 3.0).mean(), "balls that cover everything would be of no use"


def test_balls_around_points_that_coincide():
    centres, limits = balls(np.ones((60, 3)), beyond=2.0)
    np.testing.assert_allclose(centres, 1.0)
    np.testing.assert_allclose(limits, 2.0)
