"""The differentiable heart of Algorithm 1: J on Dv of the alpha that was fitted to Dt, and its gradient.

The gradient goes through the solve by implicit differentiation. With Q alpha + b = 0 on Dt and v = Q^-1 dJ/dalpha,

    dJ/dtheta = d/dtheta [ J(alpha; theta, Dv) - v'(Q(theta) alpha + b(theta)) ]   with alpha and v held constant,

and v'(Q alpha + b) needs no matrix Q: it is a sum over rows of products of derivatives of f_alpha and f_v. So only
the forward pass forms tensors of size n x d x m, and nothing of that size is differentiated. The step is one graph:
the jets of Dt serve the statistics and the constraint, and one backward pass through the networks serves both terms.
"""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dkef.core.arrays import Array
from dkef.core.backend import Tensor
from dkef.core.tensorflow import tf
from dkef.models.kef.base_measure import base_jet
from dkef.models.kef.density import density_jet, f_jet, inducing_features, kernel_jets, log_density_jet
from dkef.models.kef.kernels import Expansion, KernelJet
from dkef.models.kef.parameters import KefParameters
from dkef.models.kef.spec import KernelExponentialFamily
from dkef.models.kef.statistics import (
    Statistics,
    inducing_gram,
    jet_statistics,
    normal_equations,
)
from dkef.models.kef.tiles import TiledKernel
from dkef.models.kef.variables import Regularisers, assemble, regularisers
from dkef.training.layout import Layout


class StepGradient(NamedTuple):
    """J on Dv and its total derivative in the flat vector."""

    loss: float
    gradient: Array


def score_loss_rows(log_p: Expansion) -> Tensor:
    """sum_d [ d_d^2 log p~ + (d_d log p~)^2 / 2 ] at each row; [n]."""
    return tf.reduce_sum(log_p.second + 0.5 * log_p.first * log_p.first, axis=1)


def factorised(
    parameters: KefParameters, weights: Regularisers, jets: Sequence[KernelJet], x: Tensor
) -> tuple[Tensor, Tensor]:
    """L [m, m] with L L' = Q, and b [m], of the rows of x in float64; L is NaN where Q is not positive definite."""
    sums = jet_statistics(parameters, jets, x)
    means = Statistics(*(tf.cast(part, tf.float64) / x.shape[0] for part in sums))
    wide = Regularisers(tf.cast(weights.alpha, tf.float64), tf.cast(weights.c, tf.float64), weights.h)
    K = tf.cast(inducing_gram(parameters), tf.float64) if weights.h > 0 else None
    Q, b = normal_equations(means, wide, K)
    return tf.linalg.cholesky(Q + wide.alpha * tf.eye(Q.shape[0], dtype=tf.float64)), b


def solved(L: Tensor, b: Tensor, dtype: tf.DType) -> Tensor:
    """(L L')^-1 b [m], computed in float64."""
    return tf.cast(tf.linalg.cholesky_solve(L, tf.cast(b, tf.float64)[:, None])[:, 0], dtype)


def constraint(
    parameters: KefParameters, weights: Regularisers, jets: Sequence[KernelJet], x: Tensor, alpha: Tensor, v: Tensor
) -> Tensor:
    """v'(Q alpha + b) with the statistics of the rows of x, without forming Q."""
    _, first, second = f_jet(parameters, jets, tf.stack([alpha, v]))  # [n, d, 2], of f_alpha and f_v
    q0 = base_jet(parameters.q0, x)
    log_p_first, log_p_second = q0.first + first[..., 0], q0.second + second[..., 0]
    rows = tf.reduce_sum(log_p_first * first[..., 1] + (1.0 + weights.c * log_p_second) * second[..., 1]) / x.shape[0]
    ridge = weights.alpha * tf.reduce_sum(alpha * v)
    if weights.h > 0:
        ridge += weights.h * tf.tensordot(v, tf.linalg.matvec(inducing_gram(parameters), alpha), 1)
    return rows + ridge


class KefGraph:
    """Compiled functions of the flat vector theta for one specification; arrays in, NumPy arrays out."""

    def __init__(self, spec: KernelExponentialFamily, layout: Layout) -> None:
        self.spec = spec
        self.layout = layout
        self.dtype = spec.dtype
        compiled = functools.partial(tf.function, jit_compile=spec.jit, autograph=False)
        self._loss_gradients = compiled(self._trace_loss_gradients)
        self._step_gradient = compiled(self._trace_step_gradient)

    def tiled(self, theta: Array, dtype: str | None = None) -> TiledKernel:
        """The kernel and q0 of theta for sums over many rows, in the given precision or that of the specification."""
        return TiledKernel(self.model(np.asarray(theta, np.float64))[0], dtype or self.dtype)

    def gram(self, theta: Array) -> Array | None:
        """k(z, z) where the RKHS-norm term needs it."""
        if self.spec.lambda_h == 0:
            return None
        K: Array = inducing_gram(self.model(np.asarray(theta, np.float64))[0])
        return K

    def loss_gradients(self, theta: Array, alpha: Array, x: Array) -> tuple[float, Array, Array]:
        """Mean loss over the rows of x, and its partial derivatives in alpha and in theta."""
        loss, by_alpha, by_theta = self._loss_gradients(*map(self._cast, (theta, alpha, x)))
        return float(loss), by_alpha.numpy(), by_theta.numpy()

    def step_gradient(self, theta: Array, fit_rows: Array, loss_rows: Array) -> StepGradient | None:
        """J on loss_rows (Dv) for alpha fitted to fit_rows (Dt), with its gradient; None where there is no solution."""
        loss, gradient = self._step_gradient(*map(self._cast, (theta, fit_rows, loss_rows)))
        return StepGradient(float(loss), gradient.numpy().astype(np.float64)) if np.isfinite(loss) else None

    def _cast(self, array: Array) -> Tensor:
        return tf.constant(np.asarray(array, dtype=self.dtype))

    def model(self, theta: Tensor) -> tuple[KefParameters, Regularisers]:
        """What theta stands for, without alpha."""
        values = self.layout.unpack(theta)
        return assemble(self.spec, values, alpha=None), regularisers(self.spec, values)

    def _trace_loss_gradients(self, theta: Tensor, alpha: Tensor, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        with tf.GradientTape() as tape:
            tape.watch([alpha, theta])
            loss = tf.reduce_mean(score_loss_rows(density_jet(self.model(theta)[0], x, alpha)))
        return loss, *tape.gradient(loss, [alpha, theta])

    def _trace_step_gradient(self, theta: Tensor, x_t: Tensor, x_v: Tensor) -> tuple[Tensor, Tensor]:
        with tf.GradientTape() as tape:
            tape.watch(theta)
            parameters, weights = self.model(theta)
            psi = inducing_features(parameters)
            jets_t, jets_v = kernel_jets(parameters, x_t, psi), kernel_jets(parameters, x_v, psi)
            with tape.stop_recording():
                L, b = factorised(parameters, weights, jets_t, x_t)
                alpha = -solved(L, b, theta.dtype)
            with tf.GradientTape() as by_alpha:
                by_alpha.watch(alpha)
                loss = tf.reduce_mean(score_loss_rows(log_density_jet(parameters, jets_v, x_v, alpha)))
            with tape.stop_recording():
                v = solved(L, by_alpha.gradient(loss, alpha), theta.dtype)
            lagrangian = loss - constraint(parameters, weights, jets_t, x_t, alpha, v)
        return loss, tape.gradient(lagrangian, theta)
