"""KCEF: a kernel conditional exponential family along a full graph."""

from dataclasses import dataclass

from dkef.config.typed import one_of, require
from dkef.core.arrays import Array
from dkef.models.protocol import Fit, FitContext


@dataclass(frozen=True)
class Kcef:
    """Hyper-parameters of the search over (g_x, g_y, lambda) of each conditional; the fit itself is closed form."""

    rows: int = 1000  # the first so many training rows; time grows with their cube, memory with their square
    base_std: float = 2.0  # q0 = N(0, base_std^2) for each coordinate
    g_init: float = 1.0  # kernels are exp(-g |.|^2)
    lambda_init: float = 1e-4
    folds: int = 10  # contiguous and of equal size
    penalty: float = 0.1  # times g_x^2 + g_y^2 + lambda^2, added to the held-out score
    scale: str = "plain"  # plain | log: what L-BFGS-B moves, see dkef.models.kcef.search.Search
    g_lower: float = 1e-10
    lambda_lower: float = (
        1e-6  # below, f is free to run away where there are no rows, and the held-out score cannot see it
    )
    upper: float = 10.0  # of g_x, g_y and lambda
    max_iterations: int = 50  # of L-BFGS-B, a conditional
    tolerance: float = 1e-4
    quadrature_tolerance: float = 1e-8  # nats in the log Z of each conditional, at the training rows

    def __post_init__(self) -> None:
        require(self.folds >= 2, "model.folds", self.folds, ">= 2")
        require(self.rows >= 2 * self.folds, "model.rows", self.rows, ">= 2 model.folds")
        require(self.penalty >= 0, "model.penalty", self.penalty, ">= 0")
        one_of("model.scale", self.scale, "plain", "log")
        for key in ("g", "lambda"):
            lower, start = getattr(self, f"{key}_lower"), getattr(self, f"{key}_init")
            require(0 < lower < self.upper, f"model.{key}_lower", lower, "> 0 and < model.upper")
            require(lower <= start <= self.upper, f"model.{key}_init", start, f"from model.{key}_lower to model.upper")
        for key in ("base_std", "tolerance", "quadrature_tolerance"):
            require(getattr(self, key) > 0, f"model.{key}", getattr(self, key), "> 0")
        require(self.max_iterations >= 1, "model.max_iterations", self.max_iterations, ">= 1")

    def fit(self, train: Array, valid: Array, context: FitContext) -> Fit:
        from dkef.models.kcef.fit import fit_kcef

        return fit_kcef(self, train, valid, context)
