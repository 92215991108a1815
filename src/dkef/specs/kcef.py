"""KCEF: a kernel conditional exponential family along a full graph."""

from dataclasses import dataclass

from dkef.models.protocol import Array, Fit, Workbench
from dkef.typed import one_of, require


@dataclass(frozen=True)
class Kcef:
    """Hyper-parameters of the search over (g_x, g_y, lambda) of each conditional; the fit itself is closed form."""

    rows: int = 1000  # the first so many training rows; time grows with their cube, memory with their square
    base_std: float = 2.0  # q0 = N(0, base_std^2) for each coordinate
    g_init: float = 1.0  # kernels are exp(-g |.|^2)
    lambda_init: float = 1e-4
    folds: int = 10  # contiguous and of equal size
    penalty: float = 0.1  # times g_x^2 + g_y^2 + lambda^2, added to the held-out score
    scale: str = "plain"  # plain | log: what L-BFGS-B moves, see dkef.models.kcef_fit.Search
    lower: float = 1e-10  # box of g_x, g_y and lambda
    upper: float = 10.0
    max_iterations: int = 50  # of L-BFGS-B, a conditional
    tolerance: float = 1e-4
    quadrature_tolerance: float = 1e-8  # nats in the log Z of each conditional, at the training rows

    def __post_init__(self) -> None:
        require(self.folds >= 2, "model.folds", self.folds, ">= 2")
        require(self.rows >= 2 * self.folds, "model.rows", self.rows, ">= 2 model.folds")
        require(self.penalty >= 0, "model.penalty", self.penalty, ">= 0")
        one_of("model.scale", self.scale, "plain", "log")
        require(0 < self.lower < self.upper, "model.lower", self.lower, "> 0 and < model.upper")
        for key in ("g_init", "lambda_init"):
            value = getattr(self, key)
            require(self.lower <= value <= self.upper, f"model.{key}", value, "between model.lower and model.upper")
        for key in ("base_std", "tolerance", "quadrature_tolerance"):
            require(getattr(self, key) > 0, f"model.{key}", getattr(self, key), "> 0")
        require(self.max_iterations >= 1, "model.max_iterations", self.max_iterations, ">= 1")

    def fit(self, train: Array, valid: Array, bench: Workbench) -> Fit:
        from dkef.models.kcef_training import fit_kcef

        return fit_kcef(self, train, valid, bench)
