"""A kernel exponential family packed for the fused loops, and those loops.

f(x) = sum_m alpha_m sum_r rho_r exp(-|phi_r(x) - phi_r(z_m)|^2 / (2 tau_r)) is a short list of steps on the rows of a
block's workspace. Packing folds every constant into the weights, in float64 and before rounding to float32:

* softplus is computed in units of log 2 as log2(1 + 2^h), so its layer's weights are divided by log 2 and the next
  layer's multiplied by it;
* features are centred on the mean of the inducing features and divided by sqrt(tau log 2), so that the kernel is
  2^(-|phi - z|^2 / 2) = 2^(phi.z - |phi|^2 / 2 - |z|^2 / 2): a product, two constants and one power of two. Centring
  keeps the three terms small, hence their difference right in float32.
"""

import math
from typing import NamedTuple

import numpy as np

from dkef.core.arrays import Array
from dkef.core.compiled import njit
from dkef.models.kef.parameters import Component, KefParameters
from dkef.normaliser.simd.tiles import STRIP, gaussian_tile, layer_tile
from dkef.normaliser.simd.vector import BLOCK, PANEL

LAYER, FEATURES, GAUSSIAN, LINEAR = range(4)
_LOG2 = math.log(2)


class Program(NamedTuple):
    """steps: int64 [n, 8], one step a row (see `_Packer`); weights: float32; rows: rows of the workspace."""

    steps: Array
    weights: Array
    rows: int


class _Packer:
    """Collects steps and weights; rows of the workspace are x | two layers by turns | features | their norm."""

    def __init__(self, parameters: KefParameters) -> None:
        self.parameters = parameters
        self.d = parameters.z.shape[1]
        widths = [layer.weight.shape[1] for c in parameters.components for layer in c.layers]
        self.room = _whole_panels(max(widths, default=0))
        self.phi = self.d + 2 * self.room
        self.norm = self.phi + max([self.d, *widths])
        self.steps: list[list[int]] = []
        self.weights: list[Array] = []
        self.size = 0

    def add(self, kind: int, weights: Array, *numbers: int) -> None:
        """Append a step: its kind, where its weights begin, and up to six numbers of its own."""
        self.steps.append([kind, self.size, *numbers, *[0] * (6 - len(numbers))])
        self.weights.append(weights.astype(np.float32).ravel())
        self.size += weights.size

    def component(self, component: Component) -> None:
        row, unit = self.layers(component)
        alpha = component.rho * self.parameters.alpha.astype(np.float64)
        phi_z = component.features(self.parameters.z.astype(np.float64))  # [m, w]
        width = phi_z.shape[1]
        if component.kind == "linear":
            self.add(LINEAR, unit * (alpha @ phi_z), row, width)
            return
        scale = 1 / math.sqrt(component.tau * _LOG2)
        centre = phi_z.mean(axis=0)
        z = scale * (phi_z - centre)
        self.add(
            FEATURES, np.stack([np.full(width, unit * scale), -scale * centre], axis=1), row, width, self.phi, self.norm
        )
        panels = np.concatenate([_panels(-0.5 * (z**2).sum(1)[None]), _panels(alpha[None]), _panels(z.T)], axis=1)
        self.add(GAUSSIAN, panels, self.phi, width, self.norm, len(panels))

    def layers(self, component: Component) -> tuple[int, float]:
        """Steps of the component's network; returns the first row of its output and the unit that is in."""
        row, unit = 0, 1.0
        for number, layer in enumerate(component.layers):
            softplus = layer.activation == "softplus"
            gain = 1 / _LOG2 if softplus else 1.0
            skip = np.zeros((0, len(layer.bias))) if layer.skip is None else layer.skip
            stacked = [gain * layer.bias[None], gain * unit * layer.weight, gain * skip]
            panels = _panels(np.concatenate([part.astype(np.float64) for part in stacked]))
            out = self.d + (number % 2) * self.room
            self.add(LAYER, panels, row, len(layer.weight), len(skip), out, len(panels), int(softplus))
            row, unit = out, _LOG2 if softplus else 1.0
        return row, unit


def _whole_panels(n: int) -> int:
    return -(-n // PANEL) * PANEL


def _panels(matrix: Array) -> Array:
    """[k, n] as [n / PANEL, k, PANEL], zeros beyond n: the order in which a tile reads its weights."""
    k, n = matrix.shape
    padded = np.zeros((k, _whole_panels(n)))
    padded[:, :n] = matrix
    return padded.reshape(k, -1, PANEL).transpose(1, 0, 2)


def pack(parameters: KefParameters) -> Program:
    """The steps that compute f."""
    packer = _Packer(parameters)
    for component in parameters.components:
        packer.component(component)
    return Program(np.array(packer.steps, dtype=np.int64), np.concatenate(packer.weights), packer.norm + 1)


def workspace(program: Program) -> Array:
    """Zeros float32 [rows, BLOCK] that begin on a cache line, so that no vector straddles two."""
    size = program.rows * BLOCK * 4
    memory = np.zeros(size + 64, dtype=np.uint8)
    start = -memory.ctypes.data % 64
    rows: Array = memory[start : start + size].view(np.float32).reshape(program.rows, BLOCK)
    return rows


# The steps. Each is given where its weights begin and the numbers it was packed with.


@njit
def _layer(rows, weights, at, h, h_count, x_count, out, tiles, softplus):  # type: ignore[no-untyped-def]
    """rows[out:] = activation(h weight + x skip + bias)."""
    for tile in range(tiles):
        for strip in range(0, BLOCK, STRIP):
            layer_tile(rows, strip, weights, at, h, h_count, 0, x_count, out + tile * PANEL, softplus)
        at += (1 + h_count + x_count) * PANEL


@njit
def _features(rows, weights, at, source, count, phi, norm):  # type: ignore[no-untyped-def]
    """Centre and scale the features; rows[norm] = -|phi|^2 / 2."""
    rows[norm] = np.float32(0)
    for j in range(count):
        scale = weights[at + 2 * j]
        shift = weights[at + 2 * j + 1]
        for i in range(BLOCK):
            value = scale * rows[source + j, i] + shift
            rows[phi + j, i] = value
            rows[norm, i] -= np.float32(0.5) * value * value


@njit
def _gaussian(rows, weights, at, phi, count, norm, tiles, f):  # type: ignore[no-untyped-def]
    """f += sum_m alpha_m k(x, z_m)."""
    for _ in range(tiles):
        for strip in range(0, BLOCK, STRIP):
            gaussian_tile(rows, strip, weights, at, phi, count, norm, f)
        at += (2 + count) * PANEL


@njit
def _linear(rows, weights, at, source, count, f):  # type: ignore[no-untyped-def]
    """f += (sum_m alpha_m phi(z_m)) . phi(x)."""
    for j in range(count):
        for i in range(BLOCK):
            f[i] += np.float64(weights[at + j]) * rows[source + j, i]


@njit
def evaluate_block(program, rows, f):  # type: ignore[no-untyped-def]
    """f float64 [BLOCK] of the samples in the first d rows of the workspace."""
    f[:] = 0.0
    weights = program.weights
    for kind, at, n0, n1, n2, n3, n4, n5 in program.steps:
        if kind == LAYER:
            _layer(rows, weights, at, n0, n1, n2, n3, n4, n5 != 0)
        elif kind == FEATURES:
            _features(rows, weights, at, n0, n1, n2, n3)
        elif kind == GAUSSIAN:
            _gaussian(rows, weights, at, n0, n1, n2, n3, f)
        else:
            _linear(rows, weights, at, n0, n1, f)
