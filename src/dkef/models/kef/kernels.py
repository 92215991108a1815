"""Kernels on features, and their derivatives in the first argument, written as matrix products.

With delta = phi(x) - phi(z), P_d = d_d phi(x), S_d = d_d^2 phi(x), the Gaussian kernel k = rho exp(-|delta|^2/(2 tau))
has

    d_d k   = -(k / tau) delta.P_d
    d_d^2 k = k [ (delta.P_d)^2 / tau^2 - (|P_d|^2 + delta.S_d) / tau ]

One more column makes both brackets products with the inducing features: with b_m = (-phi(z_m), 1) / tau,
p_d = (P_d, phi(x).P_d) and s_d = (S_d, phi(x).S_d + |P_d|^2),

    d_d k = -k p_d.b_m,   d_d^2 k = k [ (p_d.b_m)^2 - s_d.b_m ],

and nothing of size n x d x m x w exists. An estimate of a trace (`objectives.propagation`) has q_d.b_m in place of one
of the factors p_d.b_m. Coordinates may be any other directions.

The linear kernel rho phi(x).phi(z) has d_d k = -P_d.b_m and d_d^2 k = -S_d.b_m with b_m = -rho phi(z_m).
"""

from typing import NamedTuple

import numpy as np

from dkef.core.backend import Tensor, backend_of
from dkef.models.jets import Jet, flat_matmul
from dkef.models.kef.parameters import Component


class KernelJet(NamedTuple):
    """The factors that derivatives of k(x_n, z_m) in x_n are made of."""

    k: Tensor  # [n, m]
    p: Tensor  # [n, d, w + 1], or [n or 1, d, w] of a linear kernel
    s: Tensor  # the same
    b: Tensor  # [m, w + 1], or [m, w] of a linear kernel
    q: Tensor = None  # as p, where the square of p.b is a product with q.b


class Derivatives(NamedTuple):
    """Derivatives of k(x_n, z_m) in x_n."""

    first: Tensor  # [n, d, m]
    second: Tensor  # [n, d, m]


class Expansion(NamedTuple):
    """f(x) = sum_m alpha_m k(x, z_m) with its derivatives; a leading axis of 1 broadcasts."""

    value: Tensor  # [n], or [n, c] for c functions at once
    first: Tensor  # [n or 1, d], or [n or 1, d, c]
    second: Tensor  # [n or 1, d], or [n or 1, d, c]


def dot(a: Tensor, b: Tensor) -> Tensor:
    """Sum over the last axis of the product of a and b, which broadcast."""
    return backend_of(a).sum(a * b, -1)


def products(p: Tensor, e: Tensor) -> Tensor:
    """p_d.e_c for p [n, d, w] and e [n, c, w], of which either may have one row for all; returns [n, d, c]."""
    return backend_of(p).matmul_transposed(p, e)


def centred(phi: Tensor, psi: Tensor) -> tuple[Tensor, Tensor]:
    """phi and psi, shifted alike: differences stay, and the expanded squares below lose fewer digits in float32."""
    ops = backend_of(psi)
    centre = ops.constant(ops.mean(psi, 0))
    return phi - centre, psi - centre


def kernel_matrix(component: Component, phi: Tensor, psi: Tensor) -> Tensor:
    """k between points with features phi [n, w] and psi [m, w]; returns [n, m]."""
    return component.kernel_of_features(*((phi, psi) if component.kind == "linear" else centred(phi, psi)))


def with_column(a: Tensor, column: Tensor) -> Tensor:
    """a [..., w] with one more column [...]; returns [..., w + 1]."""
    return backend_of(a).concatenate([a, column[..., None]])


def kernel_jet(component: Component, jet: Jet, psi: Tensor, other: Tensor | None = None) -> KernelJet:
    """The factors for the jet of x and psi = phi(z) [m, w]; with `other` [n, d, w] in place of one of two factors P."""
    if component.kind == "linear":
        return KernelJet(kernel_matrix(component, jet.value, psi), jet.first, jet.second, -component.rho * psi)
    ops = backend_of(psi)
    phi, psi = centred(jet.value, psi)
    P, S = (rows_of(part, phi.shape[0]) for part in (jet.first, jet.second))
    p = with_column(P, products(P, phi[:, None])[..., 0])
    s = with_column(S, products(S, phi[:, None])[..., 0] + dot(P, P if other is None else other))
    b = with_column(-psi, ops.like(np.ones(psi.shape[0]), psi)) / component.tau
    q = None if other is None else with_column(other, products(other, phi[:, None])[..., 0])
    return KernelJet(component.kernel_of_features(phi, psi), p, s, b, q)


def rows_of(part: Tensor, n: int) -> Tensor:
    """A derivative [n or 1, d, w] with all its n rows, which are alike for an affine map."""
    return part if part.shape[0] == n else part * backend_of(part).like(np.ones((n, 1, 1)), part)


def slopes(component: Component, jet: KernelJet) -> Tensor:
    """First derivatives of k(x_n, z_m) for all n rows, alone; [n, d, m]."""
    along = flat_matmul(jet.p, backend_of(jet.b).transpose(jet.b))
    return rows_of(-along, jet.k.shape[0]) if component.kind == "linear" else -jet.k[:, None, :] * along


def derivatives(component: Component, jet: KernelJet) -> Derivatives:
    """Derivatives of k(x_n, z_m) for all n rows."""
    basis = backend_of(jet.b).transpose(jet.b)
    along, bend = flat_matmul(jet.p, basis), flat_matmul(jet.s, basis)
    if component.kind == "linear":
        n = jet.k.shape[0]
        return Derivatives(rows_of(-along, n), rows_of(-bend, n))
    k = jet.k[:, None, :]
    other = along if jet.q is None else flat_matmul(jet.q, basis)
    return Derivatives(-k * along, k * (along * other - bend))


def expansion(component: Component, jet: KernelJet, alpha: Tensor) -> Expansion:
    """sum_m alpha_cm k(x, z_m) and its derivatives, contracted before anything of size n x d x m is formed.

    alpha: [c, m], for c sums at once. The one term that is quadratic in delta, sum_m a_ncm (p_d.b_m)^2 with
    a_ncm = alpha_cm k(x_n, z_m), comes from sum_m a_ncm b_m b_m' [n, c, w, w]; where that is the larger tensor (few
    coordinates, wide features) its terms are formed one by one.
    """
    ops = backend_of(alpha)
    a = jet.k[:, None] * alpha  # [n, c, m]
    value = ops.sum(a, -1)
    if component.kind == "linear":
        e = ops.matmul(alpha, jet.b)[None]
        return Expansion(value, -products(jet.p, e), -products(jet.s, e))
    e = flat_matmul(a, jet.b)  # [n, c, w]: sum_m a_ncm b_m
    (n, d, w), (c, m) = jet.p.shape, alpha.shape
    if n * d * m < (n + m) * w * w:
        along = flat_matmul(jet.p, ops.transpose(jet.b))
        other = along if jet.q is None else flat_matmul(jet.q, ops.transpose(jet.b))
        quadratic = products(along * other, a)
    else:
        b = ops.reshape(jet.b, (m, w, 1))
        outer = ops.reshape(products(b, b), (m, w * w))
        moment = ops.reshape(flat_matmul(a, outer), (n, c * w, w))  # symmetric in its w x w
        other = jet.p if jet.q is None else jet.q
        quadratic = dot(ops.reshape(products(jet.p, moment), (n, d, c, w)), ops.reshape(other, (n, d, 1, w)))
    return Expansion(value, -products(jet.p, e), quadratic - products(jet.s, e))
