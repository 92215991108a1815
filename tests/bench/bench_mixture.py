"""The mixture proposal's density on one core, beside a plain loop over blocks of points and beside the product alone.

The plain loop was the whole program until it was replaced: distances in float32, which a compiler vectorises, and one
exponential at a time where a point is near a component. The product is what a library would compute first: n points by
all centres, in float64.
"""

import math
import time

import numpy as np
from limits import Limit, best_time
from threadpoolctl import threadpool_limits

from dkef.core.compiled import njit
from dkef.normaliser.proposals.normals import CutNormals

COMPONENTS, POINTS, ROUNDS = 4800, 1 << 12, 4
DIMENSIONS = (11, 22, 43)
BLOCK = 64
AGREED = "agreed beside the plain loop; a loaded machine disturbs both alike"
LIMITS = (
    *(Limit(f"mixture_density_over_plain_loop_d{d}", AGREED, least=3.0) for d in DIMENSIONS),
    *(Limit(f"mixture_gradient_over_plain_loop_d{d}", AGREED, least=1.0) for d in DIMENSIONS),
    *(Limit(f"mixture_density_off_by_d{d}", "distances in the plain loop are float32", most=3e-5) for d in DIMENSIONS),
)


@njit
def near(squared, u, v, squared_radius):
    """squared = |u_n - v|^2 of all points of a block; whether any of them lies within the radius."""
    squared[:] = np.float32(0)
    for i in range(len(u)):
        here = v[i]
        for n in range(BLOCK):
            apart = u[i, n] - here
            squared[n] += apart * apart
    inside = 0
    for n in range(BLOCK):
        inside += squared[n] <= squared_radius
    return inside > 0


@njit
def plain_loop(total, gradient, points, v, weights, squared_radius):
    """total_n += sum_k w_k exp(-|u_n - v_k|^2 / 2) over the v_k within the radius; its gradient unless that is empty.

    points: float64 [d, n], whitened, as v: float32 [k, d]; n is a multiple of BLOCK.
    """
    d, n = points.shape
    u, squared = np.empty((d, BLOCK), np.float32), np.empty(BLOCK, np.float32)
    for start in range(0, n, BLOCK):
        u[:] = points[:, start : start + BLOCK]
        for k in range(len(v)):
            if not near(squared, u, v[k], squared_radius):
                continue
            for m in range(BLOCK):
                if squared[m] <= squared_radius:
                    term = weights[k] * math.exp(-0.5 * squared[m])
                    total[start + m] += term
                    if len(gradient):
                        for i in range(d):
                            gradient[i, start + m] += term * (v[k, i] - u[i, m])


def density_figures(d: int) -> dict[str, float]:
    rng = np.random.default_rng(d)
    rows = rng.normal(size=(COMPONENTS, d))
    weights, width = np.full(COMPONENTS, 1 / COMPONENTS), 0.5
    h = CutNormals(weights, rows, np.zeros(COMPONENTS, int), width * np.eye(d)[None])
    x = h.sample(POINTS, rng)
    u, v = np.ascontiguousarray(x.T / width), (rows / width).astype(np.float32)
    total = np.zeros(POINTS)

    def plain(gradient: np.ndarray) -> None:
        total[:] = 0.0
        plain_loop(total, gradient, u, v, weights, h.squared_radius)

    calls = {
        "density": lambda: h.log_density(x),
        "plain density": lambda: plain(np.empty((0, 0))),
        "gradient": lambda: h.log_density_and_gradient(x),
        "plain gradient": lambda: plain(np.zeros((d, POINTS))),
        "product": lambda: x @ rows.T,
    }
    seconds = dict.fromkeys(calls, math.inf)
    with threadpool_limits(1):
        for _ in range(1 + ROUNDS):  # in turn; the first round compiles
            for name, call in calls.items():
                seconds[name] = min(seconds[name], best_time(call, 1, clock=time.process_time))
    plain(np.empty((0, 0)))
    off = np.abs(np.log(total) + h.log_peaks[0] - h.log_density(x))
    return {
        f"mixture_density_thousand_samples_per_second_d{d}": POINTS / seconds["density"] / 1e3,
        f"mixture_density_over_product_d{d}": seconds["density"] / seconds["product"],
        f"mixture_density_over_plain_loop_d{d}": seconds["plain density"] / seconds["density"],
        f"mixture_gradient_over_plain_loop_d{d}": seconds["plain gradient"] / seconds["gradient"],
        f"mixture_density_off_by_d{d}": float(off.max()),
    }


def measure() -> dict[str, float]:
    figures: dict[str, float] = {}
    for d in DIMENSIONS:
        figures |= density_figures(d)
    return figures
