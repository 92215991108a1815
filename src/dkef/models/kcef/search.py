"""L-BFGS-B for the hyper-parameters of one conditional, on the penalised cross-validated score."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from dkef.core.arrays import Array
from dkef.models.kcef.conditional import Hyper, Rows
from dkef.models.kcef.cross_validation import cross_validated_score, workspace


@dataclass(frozen=True)
class Search:
    """L-BFGS-B for hyper-parameters on the penalised held-out score.

    scale "plain" moves g_x, g_y and lambda themselves, as the method's authors do: the slope in lambda is a thousand
    times the others, so with a loose tolerance the search settles lambda and hardly moves g_x and g_y. "log" moves
    their logarithms and gets to the minimum.
    """

    start: Hyper
    folds: int
    penalty: float  # times g_x^2 + g_y^2 + lambda^2 is added to the held-out score
    scale: str  # plain | log
    lower: Hyper
    upper: float
    max_iterations: int
    tolerance: float

    def run(self, rows: Rows) -> tuple[Hyper, list[dict[str, float]], bool]:
        """Best hyper-parameters, one record an iteration, and whether the search converged.

        Rows beyond the largest multiple of `folds` take no part in the search, so that all folds have one size.
        """
        rows = rows.first(len(rows.q1) // self.folds * self.folds)
        # without conditioning variables k_x is 1 and g_x is no parameter
        free = np.array([bool(rows.squared.any()), True, True])
        work = workspace(rows)
        known: dict[bytes, tuple[float, Array]] = {}  # the search asks for its start a second time
        trace: list[dict[str, float]] = []

        def theta(t: Array) -> Array:
            values = np.zeros(3)
            values[free] = np.exp(t) if self.scale == "log" else t
            return values

        def objective(t: Array) -> tuple[float, Array]:
            at, key = theta(t), t.tobytes()
            if key not in known:
                known[key] = cross_validated_score(rows, Hyper(*at), self.folds, work)
            score, slope = known[key]
            slope = slope + 2 * self.penalty * at
            slope = (slope * at if self.scale == "log" else slope)[free]
            return (score + self.penalty * float(at @ at)) / unit, slope / unit

        def record(t: Array) -> None:
            g_x, g_y, lam = map(float, theta(t))
            trace.append({"held_out_score": known[t.tobytes()][0], "g_x": g_x, "g_y": g_y, "lambda": lam})

        start, box = np.array(self.start)[free], np.array([self.lower, (self.upper,) * 3])[:, free]
        if self.scale == "log":
            start, box = np.log(start), np.log(box)
        unit = 1.0
        _, slope = objective(start)
        record(start)
        if self.scale == "log":
            # L-BFGS-B begins with a step as long as the slope: at most one e-fold, or it may leap to where f is 0
            unit = max(1.0, float(np.abs(slope).max()))
        found = minimize(
            objective, start, jac=True, method="L-BFGS-B", callback=record, bounds=list(zip(*box, strict=True)),
            options={"maxiter": self.max_iterations, "ftol": self.tolerance, "gtol": self.tolerance},
        )  # fmt: skip
        return Hyper(*map(float, theta(found.x))), trace, bool(found.success)
