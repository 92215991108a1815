"""Matrix products of a training step of the kernel exponential family, counted from the algebra and in the graph."""

import math
from typing import Any

from dkef.models.kef.graph import KefGraph
from dkef.models.kef.spec import KernelExponentialFamily

PRODUCTS = ("MatMul", "BatchMatMulV2")


def step_flop(spec: KernelExponentialFamily, d: int, n: int) -> dict[str, float]:
    """FLOP of each kind of product in a step with |Dt| = |Dv| = n, for Gaussian kernels on networks with a skip.

    A product whose factors are both trained comes three times: forward, and once backward for each factor. What is
    the same for Dt and Dv, or for alpha and theta, comes once.
    """
    R, L, w, m = spec.components, spec.layers, spec.width, spec.inducing_points
    v = w + 1  # the features with the column that makes the brackets of kernels.py products
    one_by_one = n * d * m < (n + m) * v * v  # as kernels.expansion chooses
    of_component = {
        # Value, first and second derivative through the upper layers; the first layer and the skip start from data.
        "networks of Dt and Dv": 2 * (3 * (L - 1) * (n + 2 * n * d) * w * w + 2 * 2 * n * d * w) + 3 * d * d * w,
        "networks of z": 3 * (2 * m * d * w + (L - 1) * m * w * w),
        "kernel values": 2 * 3 * n * m * w,
        "columns of p and s": 2 * 3 * 2 * n * d * w,
        "derivatives behind G and U": 2 * n * d * m * v,
        "linear terms of f": sum(3 * (n * c * m * v + 2 * n * d * c * v) for c in (1, 2)),  # f_alpha; f_alpha and f_v
        "quadratic terms of f": (
            sum(3 * n * d * m * (v + c) for c in (1, 2)) - n * d * m * v  # p_d.b_m of Dt is known from G
            if one_by_one
            else sum(3 * (n * c * m + n * d * c) * v * v for c in (1, 2)) + (1 + 2 * 2) * m * v * v
        ),
    }
    of_all = {"G and U": 2 * n * d * m * m, "h and b": 3 * n * d * m}
    return {name: 2.0 * R * count for name, count in of_component.items()} | {
        name: 2.0 * count for name, count in of_all.items()
    }


def graph_flop(graph: KefGraph, d: int, n: int, *noise: tuple[int, ...]) -> float:
    """FLOP of the different products that the outputs of TensorFlow's graph of a step depend on; `noise`: shapes."""
    import tensorflow as tf

    rows = tf.TensorSpec((n, d), graph.dtype)
    theta = tf.TensorSpec((sum(graph.layout.sizes),), graph.dtype)
    drawn = [tf.TensorSpec(shape, graph.dtype) for shape in noise]
    traced = graph._step_gradient.get_concrete_function(theta, rows, rows, *drawn)
    needed = ancestors([output.op for output in traced.outputs])
    numbers: dict[str, int] = {}  # equal for operations that compute the same, which TensorFlow merges
    kinds: dict[Any, int] = {}
    total = 0.0
    for operation in traced.graph.get_operations():
        if operation.name not in needed:
            continue
        kind = (*what_it_does(operation), *((numbers[i.op.name], i.value_index) for i in operation.inputs))
        if operation.type in PRODUCTS and kind not in kinds:
            total += product_flop(operation)
        numbers[operation.name] = kinds.setdefault(kind, len(kinds))
    return total


def ancestors(operations: list[Any]) -> set[str]:
    """Names of the operations and of all that they depend on."""
    found: set[str] = set()
    waiting = list(operations)
    while waiting:
        operation = waiting.pop()
        if operation.name not in found:
            found.add(operation.name)
            waiting += [tensor.op for tensor in operation.inputs]
    return found


def what_it_does(operation: Any) -> tuple[Any, ...]:
    """Type and attributes; an input of the graph is told from another by its name."""
    attributes = sorted(operation.node_def.attr.items())
    name = operation.name if operation.type == "Placeholder" else ""
    return operation.type, name, tuple((key, value.SerializeToString(deterministic=True)) for key, value in attributes)


def product_flop(operation: Any) -> float:
    """Of a b, by the shapes of a and of the result."""
    transposed = operation.get_attr("transpose_a" if operation.type == "MatMul" else "adj_x")
    inner = operation.inputs[0].shape[-2 if transposed else -1]
    return 2.0 * inner * math.prod(operation.outputs[0].shape)
