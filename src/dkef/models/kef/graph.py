"""The differentiable heart of Algorithm 1: J on Dv of the alpha that was fitted to Dt, and its gradient.

The gradient goes through the solve by implicit differentiation. With Q alpha + b = 0 on Dt and v = Q^-1 dJ/dalpha,

    dJ/dtheta = d/dtheta [ J(alpha; theta, Dv) - v'(Q(theta) alpha + b(theta)) ]   with alpha and v held constant,

and v'(Q alpha + b) needs no matrix Q: it is a sum over rows of products of derivatives of f_alpha and f_v. So only
the forward pass forms tensors of size n x d x m, and nothing of that size is differentiated. The step is one graph:
the jets of Dt serve the statistics and the constraint, and one backward pass through the networks serves both terms.
All of this holds for every objective of `objectives`, which are quadratic in alpha as well.
"""

import functools
from typing import NamedTuple

import numpy as np

from dkef.core.arrays import Array
from dkef.core.backend import Tensor
from dkef.core.tensorflow import tf
from dkef.models.kef.density import density_jet, inducing_features
from dkef.models.kef.kernels import Derivatives, Expansion
from dkef.models.kef.objectives.choice import statistics_of_rows, view
from dkef.models.kef.objectives.views import View
from dkef.models.kef.parameters import KefParameters
from dkef.models.kef.spec import KernelExponentialFamily
from dkef.models.kef.statistics import Statistics, inducing_gram, normal_equations
from dkef.models.kef.tiles import TiledKernel
from dkef.models.kef.variables import Regularisers, assemble, regularisers
from dkef.training.layout import Layout


class StepGradient(NamedTuple):
    """J on Dv and its total derivative in the flat vector."""

    loss: float
    gradient: Array


def loss_rows(log_p: Expansion | Derivatives, pull: Tensor | None = None) -> Tensor:
    """sum_d [ d_d^2 log p~ + (d_d log p~)^2 / 2 ] at each row, or what another objective has in its place; [n]."""
    squares = 0.5 * log_p.first * log_p.first
    return added(log_p.second, squares if pull is None else squares + pull * log_p.first, axis=1)


def added(a: Tensor, b: Tensor, axis: int | None = None) -> Tensor:
    """The sum over `axis`, or over everything, of both; one sum where they are of one shape."""
    if a.shape == b.shape:
        return tf.reduce_sum(a + b, axis=axis)
    return tf.reduce_sum(a, axis=axis) + tf.reduce_sum(b, axis=axis)


def factorised(weights: Regularisers, seen: View) -> tuple[Tensor, Tensor]:
    """L [m, m] with L L' = Q, and b [m], of the rows seen, in float64; L is NaN where Q is not positive definite."""
    means = Statistics(*(tf.cast(part, tf.float64) / seen.x.shape[0] for part in seen.statistics()))
    wide = Regularisers(tf.cast(weights.alpha, tf.float64), tf.cast(weights.c, tf.float64), weights.h)
    K = tf.cast(inducing_gram(seen.parameters), tf.float64) if weights.h > 0 else None
    Q, b = normal_equations(means, wide, K)
    return tf.linalg.cholesky(Q + wide.alpha * tf.eye(Q.shape[0], dtype=tf.float64)), b


def solved(L: Tensor, b: Tensor, dtype: tf.DType) -> Tensor:
    """(L L')^-1 b [m], computed in float64."""
    return tf.cast(tf.linalg.cholesky_solve(L, tf.cast(b, tf.float64)[:, None])[:, 0], dtype)


def constraint(weights: Regularisers, seen: View, alpha: Tensor, v: Tensor) -> Tensor:
    """v'(Q alpha + b) with the statistics of the rows seen, without forming Q."""
    f = seen.sums(tf.stack([alpha, v]))  # [n, d, 2] of f_alpha and f_v
    q0 = seen.base()
    log_p_first, log_p_second = q0.first + f.first[..., 0], q0.second + f.second[..., 0]
    if seen.pull is not None:
        log_p_first += seen.pull
    lambda_c = weights.c if seen.bend_weight == 1.0 else weights.c * seen.bend_weight
    rows = added(log_p_first * f.first[..., 1], (1.0 + lambda_c * log_p_second) * f.second[..., 1]) / seen.x.shape[0]
    ridge = weights.alpha * tf.reduce_sum(alpha * v)
    if weights.h > 0:
        ridge += weights.h * tf.tensordot(v, tf.linalg.matvec(inducing_gram(seen.parameters), alpha), 1)
    return rows + ridge


def log_density_terms(seen: View, alpha: Tensor) -> Derivatives:
    """What the objective takes of log p~ for the coefficients alpha [m]."""
    f = seen.sums(alpha[None])
    q0 = seen.base()
    return Derivatives(q0.first + f.first[..., 0], q0.second + f.second[..., 0])


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

    def statistics(self, theta: Array, x: Array, noise: Array | None = None, dtype: str | None = None) -> Statistics:
        """Means over the rows of x that the objective fits alpha by; noise from `objectives.choice.draw_noise`."""
        if self.spec.objective == "exact":
            return self.tiled(theta, dtype).statistics(x)
        parameters = self.model(np.asarray(theta, np.float64))[0]
        return statistics_of_rows(self.spec, parameters, x, noise, dtype or self.dtype)

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

    def step_gradient(
        self, theta: Array, fit_rows: Array, loss_rows: Array, *noise: Array | None
    ) -> StepGradient | None:
        """J on loss_rows (Dv) for alpha fitted to fit_rows (Dt), with its gradient; None where there is no solution.

        An objective that draws noise is given that of fit_rows and that of loss_rows.
        """
        drawn = [part for part in noise if part is not None]
        loss, gradient = self._step_gradient(*map(self._cast, (theta, fit_rows, loss_rows, *drawn)))
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
            loss = tf.reduce_mean(loss_rows(density_jet(self.model(theta)[0], x, alpha)))
        return loss, *tape.gradient(loss, [alpha, theta])

    def _trace_step_gradient(
        self, theta: Tensor, x_t: Tensor, x_v: Tensor, noise_t: Tensor | None = None, noise_v: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        with tf.GradientTape() as tape:
            tape.watch(theta)
            parameters, weights = self.model(theta)
            psi = inducing_features(parameters)
            seen_t = view(self.spec, parameters, x_t, psi, noise_t)
            seen_v = view(self.spec, parameters, x_v, psi, noise_v)
            with tape.stop_recording():
                L, b = factorised(weights, seen_t)
                alpha = -solved(L, b, theta.dtype)
            with tf.GradientTape() as by_alpha:
                by_alpha.watch(alpha)
                loss = tf.reduce_mean(loss_rows(log_density_terms(seen_v, alpha), seen_v.pull))
            with tape.stop_recording():
                v = solved(L, by_alpha.gradient(loss, alpha), theta.dtype)
            lagrangian = loss - constraint(weights, seen_t, alpha, v)
        return loss, tape.gradient(lagrangian, theta)
