"""Kernels on features, and their derivatives in the first argument, written as matrix products.

With delta = phi(x) - phi(z), P_d = d_d phi(x), S_d = d_d^2 phi(x), the Gaussian kernel k = rho exp(-|delta|^2/(2 tau))
has

    d_d k   = -(k / tau) delta.P_d
    d_d^2 k = k [ (delta.P_d)^2 / tau^2 - (|P_d|^2 + delta.S_d) / tau ]

and delta.P_d = phi(x).P_d - phi(z).P_d is a product with the inducing features: nothing of size n x d x m x w exists.
The linear kernel rho phi(x).phi(z) has d_d k = rho phi(z).P_d and d_d^2 k = rho phi(z).S_d.
"""

from typing import NamedTuple

from dkef.models.backend import Tensor, backend_of
from dkef.models.jets import Jet, rowwise_matmul
from dkef.models.kef_parameters import Component


class Derivatives(NamedTuple):
    """Derivatives of k(x_n, z_m) in x_n."""

    first: Tensor  # [n, d, m]
    second: Tensor  # [n, d, m]


class Expansion(NamedTuple):
    """f(x) = sum_m alpha_m k(x, z_m) with its derivatives; a leading axis of 1 broadcasts."""

    value: Tensor  # [n]
    first: Tensor  # [n or 1, d]
    second: Tensor  # [n or 1, d]


def dot(a: Tensor, b: Tensor) -> Tensor:
    """Sum over the last axis of the product of a and b, which broadcast."""
    return backend_of(a).sum(a * b, -1)


def centred(phi: Tensor, psi: Tensor) -> tuple[Tensor, Tensor]:
    """phi and psi, shifted alike: differences stay, and the expanded squares below lose fewer digits in float32."""
    ops = backend_of(psi)
    centre = ops.constant(ops.mean(psi, 0))
    return phi - centre, psi - centre


def gaussian_kernel(component: Component, phi: Tensor, psi: Tensor) -> Tensor:
    """rho exp(-|phi_n - psi_m|^2 / (2 tau)) for phi [n, w], psi [m, w]; returns [n, m]."""
    ops = backend_of(phi)
    squared = dot(phi, phi)[:, None] - 2.0 * ops.matmul(phi, ops.transpose(psi)) + dot(psi, psi)
    return component.rho * ops.exp(ops.maximum(squared, 0.0) / (-2.0 * component.tau))


def kernel_matrix(component: Component, phi: Tensor, psi: Tensor) -> Tensor:
    """k between points with features phi [n, w] and psi [m, w]; returns [n, m]."""
    if component.kind == "linear":
        ops = backend_of(phi)
        return component.rho * ops.matmul(phi, ops.transpose(psi))
    return gaussian_kernel(component, *centred(phi, psi))


def derivatives(component: Component, jet: Jet, psi: Tensor, scale: Tensor) -> Derivatives:
    """Derivatives of k(x_n, z_m), row n times scale_n, for the jet of x and psi = phi(z) [m, w]; scale: [n]."""
    ops = backend_of(psi)
    if component.kind == "linear":
        basis = ops.transpose(component.rho * psi)
        per_row = scale[:, None, None]
        return Derivatives(per_row * rowwise_matmul(jet.first, basis), per_row * rowwise_matmul(jet.second, basis))
    phi, psi = centred(jet.value, psi)
    k = (scale[:, None] * gaussian_kernel(component, phi, psi))[:, None, :]
    basis = ops.transpose(psi / component.tau)
    own = phi[:, None] / component.tau
    norm = dot(jet.first, jet.first) / component.tau
    along = dot(own, jet.first)[:, :, None] - rowwise_matmul(jet.first, basis)
    bend = (dot(own, jet.second) + norm)[:, :, None] - rowwise_matmul(jet.second, basis)
    return Derivatives(-k * along, k * (along**2 - bend))


def expansion(component: Component, jet: Jet, psi: Tensor, alpha: Tensor) -> Expansion:
    """sum_m alpha_m k(x, z_m) and its derivatives, contracted before anything of size n x d x m is formed.

    alpha: [m], or [c, 1, m] for c sums at once, which then lead the shapes of the result. The one term that is
    quadratic in delta, sum_m a_nm (delta.P_d)^2 with a_nm = alpha_m k(x_n, z_m), comes from sum_m a_nm psi_m psi_m'
    [n, w, w]; where that is the larger tensor (few coordinates, wide features) its terms are formed one by one.
    """
    ops = backend_of(psi)
    if component.kind == "linear":
        c = component.rho * dot(ops.transpose(psi), alpha)[..., None, :]  # sum_m alpha_m psi_m
        return Expansion(dot(jet.value, c), dot(jet.first, c[..., None, :]), dot(jet.second, c[..., None, :]))
    tau = component.tau
    phi, psi = centred(jet.value, psi)
    a = gaussian_kernel(component, phi, psi) * alpha
    total = ops.sum(a, -1)[..., None]
    mean = ops.matmul(a, psi)  # [n, w]: sum_m a_nm psi_m
    own = dot(phi[:, None], jet.first)  # [n, d]: phi.P_d
    across = dot(mean[..., None, :], jet.first)  # [n, d]: sum_m a_nm psi_m.P_d
    (n, m), (d, w) = a.shape[-2:], jet.first.shape[1:]
    if n * d * m < (n + m) * w * w:
        along = own[:, :, None] - rowwise_matmul(jet.first, ops.transpose(psi))
        quadratic = dot(along**2, a[..., None, :])
    else:
        outer = ops.reshape(psi[:, :, None] * psi[:, None, :], (m, w * w))
        moment = ops.reshape(ops.matmul(a, outer), (*a.shape[:-1], w, w))
        quadratic = dot(ops.matmul(jet.first, moment), jet.first) - 2.0 * own * across + total * own**2
    norm = dot(jet.first, jet.first)
    bend = total * (norm + dot(phi[:, None], jet.second)) - dot(mean[..., None, :], jet.second)
    return Expansion(total[..., 0], (across - total * own) / tau, quadratic / tau**2 - bend / tau)
