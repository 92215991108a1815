"""A kernel exponential family packed for the fused loops, and those loops.

f(x) = sum_m alpha_m sum_r rho_r exp(-|phi_r(x) - phi_r(z_m)|^2 / (2 tau_r)) is a short list of steps on the rows of a
block's workspace. Packing folds every constant into the weights, in float64 and before rounding to float32:

* softplus is computed in units of log 2 as log2(1 + 2^h), so its layer's weights are divided by log 2 and the next
  layer's multiplied by it;
* features are centred on the mean of the inducing features and divided by sqrt(tau log 2), so that the kernel is
  2^(-|phi - z|^2 / 2) = 2^(phi.z - |phi|^2 / 2 - |z|^2 / 2): a product, two constants and one power of two. Centring
  keeps the three terms small, hence their difference right in float32.

Given samples like those to come, a kernel that most of them are far from gets a sieve (`cover`, `queues`).

The gradient goes back through the same steps. Products with transposed weights are layers without a bias. What softplus
has let through is found from its value s, in units of log 2, as 1 - 2^-s.
"""

import math
from typing import NamedTuple

import numpy as np

from dkef.core.arrays import Array
from dkef.core.compiled import njit
from dkef.models.kef.parameters import Component, KefParameters
from dkef.normaliser.simd import cover
from dkef.normaliser.simd.tiles import STRIP, gaussian_tile, kept_gaussian_tile, layer_tile, times_slope_tile
from dkef.normaliser.simd.vector import BLOCK, PANEL

LAYER, FEATURES, GAUSSIAN, LINEAR, KEPT_GAUSSIAN, CONSTANT, PULL, SLOPE, ADD, CLEAR, SIEVE = range(11)
_LOG2 = math.log(2)


class Program(NamedTuple):
    """steps: int64 [n, 8], one step a row (see `_Packer`); weights: float32; rows: rows of the workspace."""

    steps: Array
    weights: Array
    rows: int


class _Layer(NamedTuple):
    """A packed layer: its weights in the units that rows are in, and the row where its output begins."""

    weight: Array
    skip: Array
    out: int
    softplus: bool


class _Packer:
    """Collects steps and weights.

    Rows of the workspace are x | layers | features | their norm. There are two layers by turns. With a gradient all of
    them are kept; it follows x, and behind the norm are terms of f | their sums | two steps back by turns.
    """

    def __init__(self, parameters: KefParameters, gradient: bool, samples: Array | None) -> None:
        self.parameters, self.gradient, self.samples = parameters, gradient, samples
        self.m, self.d = parameters.z.shape
        widths = [layer.weight.shape[1] for c in parameters.components for layer in c.layers]
        widest = max([self.d, *widths])
        self.room = _whole_panels(max(widths, default=0))
        self.layer_rows = 2 * self.d if gradient else self.d
        self.turns = max(len(c.layers) for c in parameters.components) if gradient else 2
        self.phi = self.layer_rows + self.turns * self.room
        self.norm = self.phi + widest
        self.kept = self.norm + 1
        self.sums = self.kept + _whole_panels(self.m)
        self.back = self.sums + _whole_panels(widest + 1)
        self.back_room = _whole_panels(widest)
        self.rows = self.back + 2 * self.back_room if gradient else self.kept
        self.steps: list[list[int]] = []
        self.weights: list[Array] = []
        self.size = 0
        if gradient:
            self.add(CLEAR, np.empty(0), self.d, self.d)

    def add(self, kind: int, weights: Array, *numbers: int) -> None:
        """Append a step: its kind, where its weights begin, and up to six numbers of its own."""
        self.steps.append([kind, self.size, *numbers, *[0] * (6 - len(numbers))])
        self.weights.append(weights.astype(np.float32).ravel())
        self.size += weights.size

    def component(self, component: Component) -> None:
        layers = self.layers(component)
        row, unit = (layers[-1].out, _unit(layers[-1].softplus)) if layers else (0, 1.0)
        alpha = component.rho * self.parameters.alpha.astype(np.float64)
        phi_z = component.features(self.parameters.z.astype(np.float64))  # [m, w]
        width = phi_z.shape[1]
        if component.kind == "linear":
            slope = unit * (alpha @ phi_z)
            self.add(LINEAR, slope, row, width)
            if self.gradient:
                self.add(CONSTANT, slope, self.back, width)
                self.pull_back(layers)
            return
        scale = 1 / math.sqrt(component.tau * _LOG2)
        centre = phi_z.mean(axis=0)
        z = scale * (phi_z - centre)
        self.add(
            FEATURES, np.stack([np.full(width, unit * scale), -scale * centre], axis=1), row, width, self.phi, self.norm
        )
        panels = np.concatenate([_panels(-0.5 * (z**2).sum(1)[None]), _panels(alpha[None]), _panels(z.T)], axis=1)
        if not self.gradient:
            x = self.samples
            tests = None if x is None else cover.tests(z, alpha, scale * (component.features(x) - centre))
            phi, norm = (self.phi, self.norm) if tests is None else self.sieve(tests)
            self.add(GAUSSIAN, panels, phi, width, norm, len(panels))
            return
        # with terms t_m = alpha_m 2^(...): df / dphi = log 2 (sum_m t_m z_m - phi sum_m t_m)
        self.add(KEPT_GAUSSIAN, panels, self.phi, width, self.norm, len(panels), self.kept)
        self.product(np.column_stack([z, np.ones(self.m)]), self.kept, self.sums)
        self.add(PULL, np.array([_LOG2 * unit * scale]), self.sums, self.phi, width, self.back)
        self.pull_back(layers)

    def sieve(self, tests: Array) -> tuple[int, int]:
        """Add a sieve; returns the rows of features and norm of those who pass."""
        panels, width = _panels(tests), len(tests) - 2
        rows_of_tests, queue = self.rows, self.rows + tests.shape[1]
        self.rows = queue + width + 1
        self.add(SIEVE, panels, self.phi, width, self.norm, len(panels), rows_of_tests, queue)
        return queue, queue + width

    def layers(self, component: Component) -> list[_Layer]:
        """Steps of the component's network."""
        packed: list[_Layer] = []
        for number, layer in enumerate(component.layers):
            row, unit = (packed[-1].out, _unit(packed[-1].softplus)) if packed else (0, 1.0)
            softplus = layer.activation == "softplus"
            gain = 1 / _unit(softplus)
            skip = np.zeros((0, len(layer.bias))) if layer.skip is None else gain * layer.skip.astype(np.float64)
            weight = gain * unit * layer.weight.astype(np.float64)
            panels = _panels(np.concatenate([gain * layer.bias[None].astype(np.float64), weight, skip]))
            out = self.layer_rows + (number % self.turns) * self.room
            self.add(LAYER, panels, row, len(weight), len(skip), out, len(panels), int(softplus))
            packed.append(_Layer(weight, skip, out, softplus))
        return packed

    def product(self, matrix: Array, source: int, out: int) -> None:
        """rows[out : out + n] = matrix' rows[source : source + k] for a matrix [k, n]."""
        panels = _panels(np.concatenate([np.zeros((1, matrix.shape[1])), matrix]))
        self.add(LAYER, panels, source, len(matrix), 0, out, len(panels), 0)

    def pull_back(self, layers: list[_Layer]) -> None:
        """Add the gradient in x of a function whose gradient in the network's output is rows[back:]."""
        v, other = self.back, self.back + self.back_room
        for layer in reversed(layers):
            if layer.softplus:
                self.add(SLOPE, np.empty(0), v, layer.out, layer.weight.shape[1])
            if len(layer.skip):
                self.product(layer.skip.T, v, other)
                self.add(ADD, np.empty(0), other, self.d, self.d)
            self.product(layer.weight.T, v, other)
            v, other = other, v
        self.add(ADD, np.empty(0), v, self.d, self.d)


def _unit(softplus: bool) -> float:
    """What a row that holds 1 stands for."""
    return _LOG2 if softplus else 1.0


def _whole_panels(n: int) -> int:
    return -(-n // PANEL) * PANEL


def _panels(matrix: Array) -> Array:
    """[k, n] as [n / PANEL, k, PANEL], zeros beyond n: the order in which a tile reads its weights."""
    k, n = matrix.shape
    padded = np.zeros((k, _whole_panels(n)))
    padded[:, :n] = matrix
    return padded.reshape(k, -1, PANEL).transpose(1, 0, 2)


def pack(parameters: KefParameters, gradient: bool = False, samples: Array | None = None) -> Program:
    """The steps that compute f, and with `gradient` its gradient, in d rows behind those of x.

    With samples [n, d] it has sieves where most of them can pass by a kernel; `evaluate_sieved` runs it then.
    """
    packer = _Packer(parameters, gradient, samples)
    for component in parameters.components:
        packer.component(component)
    return Program(np.array(packer.steps, dtype=np.int64), np.concatenate(packer.weights), packer.rows)


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
def _kept_gaussian(rows, weights, at, phi, count, norm, tiles, kept, f):  # type: ignore[no-untyped-def]
    """The same, with its terms in rows[kept:]."""
    for tile in range(tiles):
        for strip in range(0, BLOCK, STRIP):
            kept_gaussian_tile(rows, strip, weights, at, phi, count, norm, kept + tile * PANEL, f)
        at += (2 + count) * PANEL


@njit
def _linear(rows, weights, at, source, count, f):  # type: ignore[no-untyped-def]
    """f += (sum_m alpha_m phi(z_m)) . phi(x)."""
    for j in range(count):
        for i in range(BLOCK):
            f[i] += np.float64(weights[at + j]) * rows[source + j, i]


@njit
def _pull(rows, factor, sums, phi, count, out):  # type: ignore[no-untyped-def]
    """rows[out:] = factor (rows[sums:] - rows[sums + count] rows[phi:])."""
    for j in range(count):
        for i in range(BLOCK):
            rows[out + j, i] = factor * (rows[sums + j, i] - rows[sums + count, i] * rows[phi + j, i])


@njit
def _slope(rows, v, s, count):  # type: ignore[no-untyped-def]
    """rows[v:] times the slope of softplus at the values rows[s:]."""
    for j in range(count):
        for strip in range(0, BLOCK, STRIP):
            times_slope_tile(rows, strip, v + j, s + j)


@njit
def _add(rows, source, target, count):  # type: ignore[no-untyped-def]
    """rows[target:] += rows[source:]."""
    for j in range(count):
        for i in range(BLOCK):
            rows[target + j, i] += rows[source + j, i]


@njit
def run_step(step, weights, rows, f):  # type: ignore[no-untyped-def]
    """One step on the block in the workspace; kernels add to f float64 [BLOCK]."""
    kind, at, n0, n1, n2, n3, n4, n5 = step
    if kind == LAYER:
        _layer(rows, weights, at, n0, n1, n2, n3, n4, n5 != 0)
    elif kind == FEATURES:
        _features(rows, weights, at, n0, n1, n2, n3)
    elif kind == GAUSSIAN:
        _gaussian(rows, weights, at, n0, n1, n2, n3, f)
    elif kind == LINEAR:
        _linear(rows, weights, at, n0, n1, f)
    elif kind == KEPT_GAUSSIAN:
        _kept_gaussian(rows, weights, at, n0, n1, n2, n3, n4, f)
    elif kind == PULL:
        _pull(rows, weights[at], n0, n1, n2, n3)
    elif kind == SLOPE:
        _slope(rows, n0, n1, n2)
    elif kind == ADD:
        _add(rows, n0, n1, n2)
    elif kind == CONSTANT:
        for j in range(n1):
            rows[n0 + j] = weights[at + j]
    else:
        rows[n0 : n0 + n1] = np.float32(0)


@njit
def evaluate_block(program, rows, f):  # type: ignore[no-untyped-def]
    """f float64 [BLOCK] of the samples in the first d rows of the workspace; the program has no sieve."""
    f[:] = 0.0
    for step in program.steps:
        run_step(step, program.weights, rows, f)
