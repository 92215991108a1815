"""Rows and settings with which a kernel exponential family trains in a second, for the tests."""

from dkef.core.arrays import Array
from dkef.core.streams import rng_for
from dkef.models.kef.spec import KernelExponentialFamily

TINY = KernelExponentialFamily(
    components=1, layers=1, width=4, inducing_points=8, batch_rows=10, max_iterations=6, phase2_iterations=3,
    phase2_batch_rows=10, checkpoint_interval=2, validation_fit_rows=30,
)  # fmt: skip
VARIANTS = {
    "deep mixture": {"components": 2, "layers": 3},
    "gaussian on the data": {"layers": 0},
    "linear": {"kernel": "linear"},
    "extra unit": {"kernel": "linear", "components": 1, "extra_unit": True, "inducing_points": 1},
    "rkhs norm, squared widths, linear top": {
        "lambda_h": 0.1, "width_parametrisation": "squared", "top_activation": "linear", "layers": 2,
    },
    "fixed q0 and points, no lambda_C": {"train_q0": False, "train_inducing": False, "use_lambda_c": False},
}  # fmt: skip


def rows(purpose: str, n: int, d: int = 2) -> Array:
    """Draws from a bent two-dimensional distribution."""
    x = rng_for("test rows", purpose).normal(size=(n, d))
    x[:, 1] += 0.5 * x[:, 0] ** 2
    return x
