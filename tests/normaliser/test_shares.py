"""Weights of components against a general-purpose minimiser and against long runs of their own importance weights."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from dkef.models.kef.parameters import BaseMeasure, Component, KefParameters
from dkef.normaliser.integrand import KernelIntegrand
from dkef.normaliser.moments import Moments
from dkef.normaliser.proposals.defensive_mixture import DefensiveMixture, MixtureWeights
from dkef.normaliser.proposals.normals import CutNormals
from dkef.normaliser.proposals.shares import FIRST_SHARE, Part, least_second_moment, least_variance


def two_scales(d: int) -> tuple[KefParameters, DefensiveMixture]:
    """A narrow bump with nearly all the mass on a broad one with little, and normals for both with even weights."""
    q0 = BaseMeasure(np.zeros(d), np.full(d, 4.0), np.full(d, 2.0))
    kernels = (Component("gaussian", 1.0, 0.05, ()), Component("gaussian", 0.6, 3.0, ()))
    factors = np.stack([width * np.eye(d) for width in (0.1, 0.4, 1.0)])
    h = CutNormals(np.full(3, 1 / 3), np.zeros((3, d)), np.arange(3), factors)
    return KefParameters(np.array([14.0]), np.zeros((1, d)), kernels, q0), DefensiveMixture(q0, h, 0.1)


def test_the_weights_are_those_of_a_general_minimiser():
    rng = np.random.default_rng(0)
    terms, kept, costs = rng.gamma(0.5, size=(400, 4)), rng.uniform(0.05, 0.2, 400), rng.gamma(0.3, size=400)

    def second_moment(w: np.ndarray) -> float:
        return float((costs / (kept + terms @ w)).sum() / costs.sum())

    even = np.full(4, 0.25)
    adding_to_one = {"type": "eq", "fun": lambda w: w.sum() - 1}
    expected = minimize(second_moment, even, bounds=[(0, 1)] * 4, constraints=adding_to_one, tol=1e-12)
    found = even
    for _ in range(20):  # as rounds do, each from where the last one ended
        found = least_second_moment(found, terms, kept, costs)
    assert found.sum() == pytest.approx(1)
    assert second_moment(found) < second_moment(even) - 1e-3
    assert second_moment(found) == pytest.approx(expected.fun, rel=1e-5)


def test_weighing_finds_the_best_of_a_grid_of_weights_from_a_bad_start():
    parameters, even = two_scales(6)

    def with_weights(*weights: float) -> DefensiveMixture:
        return replace(even, normals=replace(even.normals, weights=np.array(weights)))

    def effective_share(mixture: DefensiveMixture) -> float:
        z = Moments.merge(MixtureWeights(KernelIntegrand(parameters), mixture, "grid").moments("z", 0, 50_000))
        return z.effective_sample_size / z.count

    start = with_weights(0.998, 0.001, 0.001)
    parts = list(map(Part, start.normals.weights, start.normals.components()))
    weighed = least_variance(KernelIntegrand(parameters), parameters.q0, parts, 0.1, 5000, np.random.default_rng(2))
    grid = [(i / 8, j / 8, (8 - i - j) / 8) for i in range(1, 7) for j in range(1, 8 - i)]
    best = max(effective_share(with_weights(*weights)) for weights in grid)
    found = effective_share(weighed)
    assert found > 0.93 * best  # the first weights keep a tenth, and the best of 21 noisy numbers flatters
    assert found > 2 * effective_share(start)
    assert (weighed.normals.weights >= FIRST_SHARE * start.normals.weights * (1 - 1e-9)).all()
    assert weighed.normals.weights.sum() == pytest.approx(1)


def test_a_part_of_many_components_without_mass_is_left_out_and_a_single_one_stays():
    parameters, mixture = two_scales(6)
    elsewhere = 20 + np.random.default_rng(0).normal(size=(10, 6))  # p~ has nothing there
    useless = CutNormals(np.full(10, 0.1), elsewhere, np.zeros(10, int), 0.1 * np.eye(6)[None])
    single = replace(useless, weights=np.ones(1), centres=elsewhere[:1], shape=np.zeros(1, int))
    parts = [Part(0.2, h) for h in (*mixture.normals.components(), useless, single)]
    found = least_variance(KernelIntegrand(parameters), parameters.q0, parts, 0.1, 3000, np.random.default_rng(1))
    assert len(found.normals.weights) == 4
    assert found.normals.weights.sum() == pytest.approx(1)
    assert found.normals.weights[-1] == pytest.approx(FIRST_SHARE / 4, rel=1e-3)
