"""KCEF: a kernel conditional exponential family along a full graph."""

from dataclasses import dataclass
from typing import Literal

from dkef.config.typed import AtLeastTwo, Count, NotNegative, Positive, require, section
from dkef.core.arrays import Array
from dkef.models.protocol import Fit, FitContext


@section
@dataclass(frozen=True)
class Kcef:
    """Hyper-parameters of the search over (g_x, g_y, lambda) of each conditional; the fit itself is closed form."""

    # the first so many training rows, the paper's down-sampling; time grows with their cube, memory with their square
    rows: Count = 1000
    base_std: Positive = 2.0  # q0 = N(0, base_std^2) for each coordinate
    g_init: Positive = 1.0  # kernels are exp(-g |.|^2)
    lambda_init: Positive = 1e-4
    folds: AtLeastTwo = 10  # contiguous and of equal size
    penalty: NotNegative = 0.1  # times g_x^2 + g_y^2 + lambda^2, added to the held-out score as in its authors' code
    # what L-BFGS-B moves, see dkef.models.kcef.search.Search; log found lower scores but worse likelihoods on few draws
    scale: Literal["plain", "log"] = "plain"
    g_lower: Positive = 1e-10
    # 1e-10 in its authors' code; there f is free to run away where there are no rows, and no held-out score can see it
    lambda_lower: Positive = 1e-6
    upper: Positive = 10.0  # of g_x, g_y and lambda
    max_iterations: Count = 50  # of L-BFGS-B, a conditional
    tolerance: Positive = 1e-4
    quadrature_tolerance: Positive = 1e-8  # nats in the log Z of each conditional, at the training rows

    def __post_init__(self) -> None:
        require(self.rows >= 2 * self.folds, "rows", self.rows, ">= 2 folds")
        for key in ("g", "lambda"):
            lower, start = getattr(self, f"{key}_lower"), getattr(self, f"{key}_init")
            require(lower < self.upper, f"{key}_lower", lower, "> 0 and < upper")
            require(lower <= start <= self.upper, f"{key}_init", start, f"from {key}_lower to upper")

    def fit(self, train: Array, valid: Array, context: FitContext) -> Fit:
        from dkef.models.kcef.fit import fit_kcef

        return fit_kcef(self, train, valid, context)
