"""What an objective takes of the kernels, of f and of log q0 at some rows; see the package for the formulas."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dkef.core.backend import Tensor, backend_of
from dkef.models.jets import flat_matmul
from dkef.models.kef.base_measure import base_jet
from dkef.models.kef.density import f_jet, kernel_jets
from dkef.models.kef.kernels import Derivatives, Expansion, KernelJet, centred, kernel_matrix, slopes
from dkef.models.kef.parameters import Component, KefParameters
from dkef.models.kef.statistics import Statistics, statistics_of, summed_derivatives
from dkef.models.layers import features, features_and_pullback


@dataclass(frozen=True)
class View(ABC):
    """Slopes and bends at the rows x [n, d], for kernels with the inducing features psi, [m, w] each."""

    parameters: KefParameters
    x: Tensor
    psi: Sequence[Tensor]

    @abstractmethod
    def kernels(self) -> Derivatives:
        """Slopes [n, a, m] and bends [n, s, m] of k(., z_m)."""

    @abstractmethod
    def sums(self, alpha: Tensor) -> Expansion | Derivatives:
        """Slopes [n or 1, a, c] and bends [n or 1, s, c] of f for the coefficients alpha [c, m]."""

    @abstractmethod
    def base(self) -> Expansion | Derivatives:
        """Slopes [n, a] and bends [n, s] of log q0."""

    @property
    def pull(self) -> Tensor | None:
        """Weights [n, a] of the slopes in the loss, beside their squares; None is 0."""
        return None

    @property
    def bend_weight(self) -> float:
        """Factor of squared bends in the term lambda_C."""
        return 1.0

    def statistics(self) -> Statistics:
        """Sums over the rows: few, in one piece."""
        k, q0 = self.kernels(), self.base()  # in this order: TensorFlow's last bits depend on it
        first = q0.first if self.pull is None else q0.first + self.pull
        sums, weight = statistics_of(k, Derivatives(first, q0.second)), self.bend_weight
        return sums if weight == 1.0 else sums._replace(U=weight * sums.U, b_second=weight * sums.b_second)


@dataclass(frozen=True)
class JetView(View):
    """Derivatives in each coordinate, or along directions [n, s, d]."""

    jets: Sequence[KernelJet]
    directions: Tensor | None = None

    @classmethod
    def of(cls, parameters: KefParameters, x: Tensor, psi: Sequence[Tensor], directions: Tensor | None) -> JetView:
        return cls(parameters, x, psi, kernel_jets(parameters, x, psi, directions), directions)

    def kernels(self) -> Derivatives:
        return summed_derivatives(self.parameters.components, self.jets)

    def sums(self, alpha: Tensor) -> Expansion:
        return f_jet(self.parameters, self.jets, alpha)

    def base(self) -> Expansion | Derivatives:
        q0 = base_jet(self.parameters.q0, self.x)
        return q0 if self.directions is None else base_along(q0, self.directions)

    @property
    def bend_weight(self) -> float:
        return 1.0 if self.directions is None else self.directions.shape[1] / self.x.shape[1]


@dataclass(frozen=True)
class DifferenceView(View):
    """Differences of f from x to x +- step v / |v| in place of derivatives along directions v / sqrt(s) [n, s, d]."""

    directions: Tensor
    step: float

    @property
    def t(self) -> float:
        """|t v| is the step, for signs v."""
        return self.step / math.sqrt(self.x.shape[1])

    def kernels(self) -> Derivatives:
        middle, plus, minus = self._values()
        return self._quotients(middle[:, None, :], plus, minus)

    def sums(self, alpha: Tensor) -> Derivatives:
        of_alpha = backend_of(alpha).transpose(alpha)
        middle, plus, minus = (flat_matmul(part, of_alpha) for part in self._values())
        return self._quotients(middle[:, None, :], plus, minus)

    def _values(self) -> tuple[Tensor, Tensor, Tensor]:
        """k at x [n, m], and at x + t v and x - t v [n, s, m]."""
        ops, (n, s, d) = backend_of(self.x), self.directions.shape
        shift = self.t * math.sqrt(s) * self.directions
        x = self.x[:, None, :]
        m = self.parameters.z.shape[0]
        sides = (
            ops.reshape(self._kernel(ops.reshape(x + side * shift, (n * s, d))), (n, s, m)) for side in (1.0, -1.0)
        )
        return self._kernel(self.x), *sides

    def _kernel(self, x: Tensor) -> Tensor:
        parts = zip(self.parameters.components, self.psi, strict=True)
        return sum(kernel_matrix(component, features(x, component.layers), psi) for component, psi in parts)

    def _quotients(self, middle: Tensor, plus: Tensor, minus: Tensor) -> Derivatives:
        s, t = self.directions.shape[1], self.t
        return Derivatives((plus - minus) / (2 * t * math.sqrt(s)), (plus + minus - 2.0 * middle) / (t * t * s))

    def base(self) -> Derivatives:
        return base_along(base_jet(self.parameters.q0, self.x), self.directions)

    @property
    def bend_weight(self) -> float:
        return float(self.directions.shape[1] / self.x.shape[1])


@dataclass(frozen=True)
class GradientView(View):
    """First derivatives in each coordinate, and bends of another kind: the second ones of `bends`, or none."""

    bends: Sequence[KernelJet] | None
    noise: Tensor | None = None  # [n, d], of denoising: added to the slopes in the loss

    def kernels(self) -> Derivatives:
        components = self.parameters.components
        jets = kernel_jets(self.parameters, self.x, self.psi)
        first = sum(slopes(component, jet) for component, jet in zip(components, jets, strict=True))
        return Derivatives(first, self._none(first) if self.bends is None else self._bends())

    def _bends(self) -> Tensor:
        return summed_derivatives(self.parameters.components, self.bends or ()).second

    def sums(self, alpha: Tensor) -> Derivatives:
        parts = zip(self.parameters.components, self.psi, strict=True)
        first = sum(gradient_of_sum(component, self.x, psi, alpha) for component, psi in parts)
        second = self._none(first) if self.bends is None else f_jet(self.parameters, self.bends, alpha).second
        return Derivatives(first, second)

    def base(self) -> Derivatives:
        _, first, second = base_jet(self.parameters.q0, self.x)
        if self.bends is None:
            return Derivatives(first, first[:, :0])
        s = self.bends[0].s.shape[1]
        ops = backend_of(second)
        trace = ops.sum(second, 1)[:, None]
        return Derivatives(first, trace * ops.like(np.full((1, s), 1 / s), trace))

    @property
    def pull(self) -> Tensor | None:
        return self.noise

    @property
    def bend_weight(self) -> float:
        return 1.0 if self.bends is None else self.bends[0].s.shape[1] / self.x.shape[1]

    def _none(self, first: Tensor) -> Tensor:
        return first[:, :0]


def base_along(q0: Expansion, directions: Tensor) -> Derivatives:
    """Derivatives of log q0 along directions [n, s, d], from those in each coordinate; [n, s] each."""
    ops = backend_of(directions)
    first = ops.sum(directions * q0.first[:, None, :], -1)
    return Derivatives(first, ops.sum(directions * directions * q0.second[:, None, :], -1))


def gradient_of_sum(component: Component, x: Tensor, psi: Tensor, alpha: Tensor) -> Tensor:
    """Gradient of sum_m alpha_cm k(x, z_m) at the rows of x, by one backward pass for each c; [n, d, c]."""
    ops = backend_of(x)
    phi, pullback = features_and_pullback(x, component.layers)
    if component.kind == "linear":
        by_feature = component.rho * ops.matmul(alpha, psi)[None]
    else:
        phi, psi = centred(phi, psi)
        a = component.kernel_of_features(phi, psi)[:, None] * alpha  # [n, c, m]
        by_feature = (flat_matmul(a, psi) - ops.sum(a, -1)[..., None] * phi[:, None]) / component.tau
    # Adding 0 x gives rows to the gradient of a function that is affine, which is the same everywhere.
    return ops.concatenate([(pullback(by_feature[:, c]) + 0.0 * x)[..., None] for c in range(alpha.shape[0])])
