"""Sufficient statistics of the closed-form fit (Proposition 3) and its solution.

    alpha = -(G + lambda_alpha I + lambda_C U + lambda_H K)^-1 b,   b = h + b_first + lambda_C b_second

All five statistics are means over rows.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
import scipy.linalg
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

from dkef.core.arrays import Array
from dkef.core.backend import Tensor, backend_of
from dkef.models.kef.base_measure import base_jet
from dkef.models.kef.kernels import Derivatives, Expansion, KernelJet, derivatives, kernel_matrix
from dkef.models.kef.parameters import Component, KefParameters
from dkef.models.kef.variables import Regularisers
from dkef.models.layers import features

BLAS = ThreadpoolController()
Function = TypeVar("Function", bound=Callable[..., object])


def on_one_thread(function: Function) -> Function:
    """The function with BLAS bound to one thread.

    At m = 300 the factor takes 0.5 ms on one thread. On more, the threads wait for each other (half a second on a busy
    machine), and then go on spinning on the cores that the next TensorFlow call needs.
    """
    bound: Function = BLAS.wrap(limits=1, user_api="blas")(function)
    return bound


class Statistics(NamedTuple):
    """Sums over rows n and coordinates d, or these divided by the number of rows.

    Other objectives have other numbers of the model in place of the derivatives in each coordinate.
    """

    G: Tensor  # [m, m]: d_d k d_d k'
    U: Tensor  # [m, m]: d_d^2 k d_d^2 k'
    h: Tensor  # [m]: d_d^2 k
    b_first: Tensor  # [m]: d_d log q0 d_d k
    b_second: Tensor  # [m]: d_d^2 log q0 d_d^2 k


def jet_statistics(parameters: KefParameters, jets: Sequence[KernelJet], x: Tensor) -> Statistics:
    """Sums over the rows of x [n, d], from its kernel jets: few rows, in one piece; `tiles` is for many."""
    return statistics_of(summed_derivatives(parameters.components, jets), base_jet(parameters.q0, x))


def summed_derivatives(components: Sequence[Component], jets: Sequence[KernelJet]) -> Derivatives:
    """Derivatives of the sum of the components' kernels."""
    first: Tensor = 0.0
    second: Tensor = 0.0
    for component, jet in zip(components, jets, strict=True):
        part = derivatives(component, jet)
        first, second = first + part.first, second + part.second
    return Derivatives(first, second)


def statistics_of(k: Derivatives, q0: Expansion | Derivatives) -> Statistics:
    """Sums of products of the derivatives of the kernel [n, a, m] and [n, s, m] and of log q0 [n, a] and [n, s]."""
    ops, m = backend_of(k.first), k.first.shape[2]
    first, second = (ops.reshape(part, (part.shape[0] * part.shape[1], m)) for part in k)
    ones = ops.like(np.ones(k.second.shape[:2]), k.second)
    first_t, second_t = ops.transpose(first), ops.transpose(second)

    def against(matrix: Tensor, column: Tensor) -> Tensor:
        return ops.matmul(matrix, ops.reshape(column, (matrix.shape[1], 1)))[:, 0]

    return Statistics(
        ops.matmul(first_t, first),
        ops.matmul(second_t, second),
        against(second_t, ones),
        against(first_t, q0.first),
        against(second_t, q0.second),
    )


def inducing_gram(parameters: KefParameters) -> Tensor:
    """K = k(z_m, z_m'), of the RKHS-norm term; [m, m]."""
    psi = [features(parameters.z, component.layers) for component in parameters.components]
    return sum(kernel_matrix(c, phi, phi) for c, phi in zip(parameters.components, psi, strict=True))


class Solution(NamedTuple):
    """alpha with the Cholesky factor that gave it, for further right-hand sides."""

    alpha: Array  # [m]
    factor: tuple[Array, bool]

    @on_one_thread
    def adjoint(self, gradient: Array) -> Array:
        """v = Q^-1 dJ/dalpha, the multiplier of the constraint Q alpha + b = 0; [m]."""
        v: Array = scipy.linalg.cho_solve(self.factor, np.asarray(gradient, dtype=np.float64), check_finite=False)
        return v


def normal_equations(statistics: Statistics, weights: Regularisers, K: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Q - lambda_alpha I [m, m] and b [m] of Q alpha + b = 0, from statistics in float64."""
    Q = statistics.G + weights.c * statistics.U
    b = statistics.h + statistics.b_first + weights.c * statistics.b_second
    return (Q if K is None else Q + weights.h * K), b


@on_one_thread
def solve(statistics: Statistics, weights: Regularisers, K: Array | None = None) -> Solution | None:
    """The minimiser alpha, in float64 by Cholesky; None where the system is not positive definite or not finite."""
    Q, b = normal_equations(statistics, weights, K)
    Q[np.diag_indices_from(Q)] += weights.alpha
    if not (np.isfinite(Q).all() and np.isfinite(b).all()):
        return None
    try:
        # Q is symmetric, and its transpose lies in memory as LAPACK wants it.
        factor = scipy.linalg.cho_factor(Q.T, lower=True, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError:
        return None
    return Solution(-scipy.linalg.cho_solve(factor, b, check_finite=False), factor)


@on_one_thread
def lambda_gradient(statistics: Statistics, alpha: Array, v: Array) -> tuple[float, float]:
    """Total derivative of J(alpha(lambda)) in lambda_alpha and lambda_C, with v = Q^-1 dJ/dalpha."""
    return -float(v @ alpha), -float(v @ (statistics.U @ alpha + statistics.b_second))
