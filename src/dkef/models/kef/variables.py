"""What training moves: one flat vector of free numbers, and the kernel exponential family that it stands for.

Positive quantities are free in the logarithm: scale = 10^t, lambda = 10^l, beta = floor + exp(v); rho = softmax(-v).
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from dkef.core.arrays import Array
from dkef.core.backend import Tensor, backend_of
from dkef.models.kef.parameters import BaseMeasure, Component, KefParameters
from dkef.models.kef.spec import KernelExponentialFamily
from dkef.models.layers import Layer

LAMBDAS = ("log10_lambda_alpha", "log10_lambda_c")
BASE = ("mu", "sigma", "log_beta")
Q0_STD = 2.0


class Regularisers(NamedTuple):
    """Weights of |alpha|^2, of the squared second derivatives, and of the squared RKHS norm."""

    alpha: Tensor
    c: Tensor
    h: float


def network_shapes(spec: KernelExponentialFamily, d: int) -> list[tuple[int, int, bool]]:
    """(fan-in, width, has a skip) of each layer of one network."""
    shapes = [(d if i == 0 else spec.width, spec.width, False) for i in range(spec.layers)]
    if spec.skip and spec.layers > 1:
        shapes[-1] = (spec.width, spec.width, True)
    return [*shapes, (spec.width, 1, False)] if spec.extra_unit else shapes


def initial_values(spec: KernelExponentialFamily, train: Array, rng: np.random.Generator) -> dict[str, Array]:
    """Start of every quantity by name: inducing points on training rows, network entries from N(0, 1/W)."""
    d, R = train.shape[1], spec.components
    values = {
        "z": train[rng.choice(len(train), size=spec.inducing_points, replace=False)],
        "log10_scale": np.log10(spec.kernel_scales[:R]),
        "log_rho": np.zeros(R),
        "log10_lambda_alpha": np.log10([spec.lambda_alpha]),
        "log10_lambda_c": np.log10([spec.lambda_c]),
        "mu": np.zeros(d),
        "sigma": np.full(d, Q0_STD),
        "log_beta": np.full(d, math.log(2.0 - spec.beta_floor)),
    }
    for r in range(R):
        for i, (fan_in, width, skip) in enumerate(network_shapes(spec, d)):
            std = 1 / math.sqrt(spec.width)
            values[f"weight_{r}_{i}"] = rng.normal(0.0, std, (fan_in, width))
            values[f"bias_{r}_{i}"] = rng.normal(0.0, std, width)
            if skip:
                values[f"skip_{r}_{i}"] = rng.normal(0.0, std, (d, width))
    return values


def frozen_names(spec: KernelExponentialFamily) -> set[str]:
    """Quantities that keep their initial value."""
    frozen = set() if spec.train_inducing else {"z"}
    if not spec.train_q0:
        frozen |= set(BASE)
    if not spec.use_lambda_c:
        frozen |= {"log10_lambda_c"}
    if spec.components == 1:
        frozen |= {"log_rho"}
    if spec.kernel == "linear":
        frozen |= {"log10_scale"}
    return frozen


def assemble(spec: KernelExponentialFamily, values: Mapping[str, Tensor], alpha: Tensor) -> KefParameters:
    """The kernel exponential family that the free numbers stand for, in their library."""
    z = values["z"]
    ops = backend_of(z)
    unnormalised = ops.exp(-values["log_rho"])
    rho = unnormalised / ops.sum(unnormalised, 0)
    power = 2.0 if spec.width_parametrisation == "squared" else 1.0
    tau = ops.exp(power * math.log(10) * values["log10_scale"])
    shapes = network_shapes(spec, z.shape[1])
    components = tuple(
        Component(
            spec.kernel,
            rho[r],
            tau[r],
            tuple(
                Layer(
                    values[f"weight_{r}_{i}"],
                    values[f"bias_{r}_{i}"],
                    values.get(f"skip_{r}_{i}"),
                    activation(spec, i),
                )
                for i in range(len(shapes))
            ),
        )
        for r in range(spec.components)
    )
    q0 = BaseMeasure(values["mu"], values["sigma"], spec.beta_floor + ops.exp(values["log_beta"]))
    return KefParameters(alpha, z, components, q0)


def activation(spec: KernelExponentialFamily, i: int) -> str:
    """Of layer i: softplus below the top, the chosen one at the top, none on the extra unit."""
    if i < spec.layers - 1:
        return "softplus"
    return spec.top_activation if i == spec.layers - 1 else "linear"


def regularisers(spec: KernelExponentialFamily, values: Mapping[str, Tensor]) -> Regularisers:
    """lambda_alpha, lambda_C and lambda_H."""
    ops = backend_of(values["z"])
    lambda_alpha, lambda_c = (ops.exp(math.log(10) * values[name])[0] + spec.lambda_floor for name in LAMBDAS)
    return Regularisers(lambda_alpha, lambda_c if spec.use_lambda_c else 0.0 * lambda_c, spec.lambda_h)
