"""Fitting all conditionals of a KCEF, one after the other."""

import time

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from dkef.core.arrays import Array
from dkef.core.errors import DkefError
from dkef.models.kcef.conditional import Hyper, Rows
from dkef.models.kcef.density import Conditional, KcefModel
from dkef.models.kcef.search import Search
from dkef.models.kcef.spec import Kcef
from dkef.models.protocol import Fit, FitContext


def fit_kcef(spec: Kcef, train: Array, valid: Array, context: FitContext) -> Fit:
    """Choose hyper-parameters and fit factor by factor; the trace has one record a search iteration."""
    # BLAS on as many threads as there are cores waits more than it works on these thin products: ten times the cost
    with threadpool_limits(context.threads, user_api="blas"):
        return _fit(spec, train, valid, context)


def _fit(spec: Kcef, train: Array, valid: Array, context: FitContext) -> Fit:
    x = np.asarray(train[: spec.rows], dtype=np.float64)
    if len(x) < 2 * spec.folds:
        raise DkefError(f"kcef: {len(x)} training rows are too few for {spec.folds} folds; lower model.folds")
    search = Search(
        start=Hyper(spec.g_init, spec.g_init, spec.lambda_init),
        folds=spec.folds,
        penalty=spec.penalty,
        scale=spec.scale,
        lower=Hyper(spec.g_lower, spec.g_lower, spec.lambda_lower),
        upper=spec.upper,
        max_iterations=spec.max_iterations,
        tolerance=spec.tolerance,
    )
    conditionals: list[Conditional] = []
    trace: list[dict[str, float]] = []
    converged = True
    began = time.perf_counter()
    for i in range(x.shape[1]):
        hyper, steps, found = search.run(Rows.of(x[:, :i], x[:, i], spec.base_std))
        conditional = Conditional.fit(x[:, :i], x[:, i], hyper, spec.base_std, spec.quadrature_tolerance)
        conditionals.append(conditional)
        trace += [{"conditional": i, "iteration": t} | step for t, step in enumerate(steps)]
        converged &= found
        left = (time.perf_counter() - began) / (i + 1) * (x.shape[1] - i - 1)
        context.log.info(
            "kcef: conditional %d of %d, held-out score %.4f, g_x %.3g, g_y %.3g, lambda %.2g, %d iterations, "
            "%d quadrature nodes, %.0f s left",
            i + 1, x.shape[1], steps[-1]["held_out_score"], *hyper, len(steps) - 1, conditional.nodes, left,
        )  # fmt: skip
    model = KcefModel(tuple(conditionals))
    error = float(model.log_z_error(x).max())
    if error > len(conditionals) * spec.quadrature_tolerance:
        context.log.warning(
            "kcef: the quadrature of log Z is off by up to %.1g nats, beyond model.quadrature_tolerance", error
        )
    notes: dict[str, float | int | str] = {
        "rows_used": len(x),
        "log_z_error": error,
        "valid_log_likelihood": float(model.log_density(valid).mean()) if len(valid) else 0.0,
    }
    stopped = "converged" if converged else "max_iterations"
    return Fit(model, stopped=stopped, trace=trace, notes=notes)
