"""dkef.compare: the metrics of several fitted densities on the same test rows."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from dkef.config.schema.metrics import Comparison
from dkef.core.arrays import Array
from dkef.core.errors import DkefError
from dkef.data.whitening import Whitening
from dkef.library.density import FittedDensity
from dkef.library.quiet import computing
from dkef.library.rows import RowsError, as_rows, require_dimension
from dkef.metrics.case import Case, Normaliser
from dkef.metrics.registry import outcomes
from dkef.metrics.setup import ComparisonSetup
from dkef.models.evaluation import EvaluatedModel

WHO = "dkef.compare"
COLUMNS = ("log_likelihood", "score_loss", "fssd2", "fssd_p_value", "ksd2")
STEP = 1e-4  # of central differences, in whitened units: the error is about its square


def compare(fits: Mapping[str, Any], test: Any, *, seed: int = 0, threads: int = 1) -> pd.DataFrame:
    """A table with a row for each fit: metrics on test rows that no fit has seen, with standard errors.

    log_likelihood   mean log density in the units of x; more is better
    score_loss       score-matching loss J; less is better, only differences between models mean something
    fssd2, ksd2      squared Stein discrepancies; 0 for the true density
    fssd_p_value     of "fits no worse than the first of `fits`": near 0 where the first fits better
    remarks          why a number is missing or in doubt

    All but the first are in the whitened units of the first fit, so that no column outweighs another. fits holds what
    dkef.fit gave, or fitted estimators of dkef.sklearn; seed draws the locations of FSSD.
    """
    if not isinstance(fits, Mapping):
        raise DkefError(f"{WHO}: the fits are a {type(fits).__name__}; pass a mapping such as {{'maf': fit}}")
    densities = {str(name): _density(name, fit) for name, fit in fits.items()}
    if not densities:
        raise DkefError(f"{WHO}: there is no fit to compare; pass a mapping such as {{'maf': fit}}")
    rows = as_rows(test, WHO)
    if len(rows) < 2:
        raise RowsError(f"{WHO}: 2 test rows are the least that have a standard error; found {len(rows)}")
    first = next(iter(densities))
    units = densities[first].whitening
    for density in densities.values():
        require_dimension(rows, density.dimension, WHO)
    settings = Comparison(reference_model=first)
    with computing(threads, needs_tensorflow=False):
        setup = ComparisonSetup.draw(units.apply(rows), "test", seed, settings)
        evaluated = {name: _evaluated(density, rows, units) for name, density in densities.items()}
        cases = [
            Case(name, model, evaluated[first], setup, settings, 0.0, _normaliser(densities[name]), threads)
            for name, model in evaluated.items()
        ]
        return pd.DataFrame([_line(case) for case in cases], index=pd.Index(list(densities), name="model"))


def _density(name: object, fit: Any) -> FittedDensity:
    density = getattr(fit, "density_", fit)
    if not isinstance(density, FittedDensity):
        raise DkefError(f"{WHO}: {name!r} is a {type(fit).__name__}; expected is what dkef.fit or dkef.load gives")
    return density


def _evaluated(density: FittedDensity, rows: Array, units: Whitening) -> EvaluatedModel:
    """Log density in the units of x; score and curvature in common units y, x = mean + y inv(V)."""
    record = {"status": density.status, "normalised": False, "log_z_status": density.log_z.status}
    if np.array_equal(density.whitening.W, units.W):
        own = density.model.evaluate(density.whitening.apply(rows))
        return EvaluatedModel(record, own.log_density + density.whitening.log_det, own.score, own.curvature)
    return EvaluatedModel(
        record, density.log_density(rows), _score_in(density, rows, units), _curvature_in(density, rows, units)
    )


def _score_in(density: FittedDensity, rows: Array, units: Whitening) -> Array:
    """d log p / dy = inv(V) d log p / dx; [n, d]."""
    score: Array = np.linalg.solve(units.W, density.score(rows).T).T
    return score


def _curvature_in(density: FittedDensity, rows: Array, units: Whitening) -> Array:
    """d^2 log p / dy_j^2 by central differences of the score; [n, d].

    A model knows its second derivatives along its own axes only, and those of another whitening are not them.
    """
    y = units.apply(rows)
    columns = []
    for j in range(y.shape[1]):
        step = STEP * np.eye(y.shape[1])[j]
        above, below = (_score_in(density, units.invert(y + sign * step), units)[:, j] for sign in (1, -1))
        columns.append((above - below) / (2 * STEP))
    return np.column_stack(columns)


def _normaliser(density: FittedDensity) -> Normaliser:
    log_z = density.log_z
    return Normaliser(log_z.value, log_z.status.removeprefix("undefined: "), log_z.stderr)


def _line(case: Case) -> dict[str, float | str]:
    found = {outcome.metric: outcome for outcome in outcomes(case) if outcome.metric in COLUMNS}
    line: dict[str, float | str] = {}
    for name in COLUMNS:
        value, stderr = found[name].value, found[name].stderr
        line[name] = np.nan if value is None else value
        if name != "fssd_p_value":
            line[f"{name}_stderr"] = np.nan if stderr is None else stderr
    own = "undefined: the model is its own reference"
    doubts = [f"{name} {o.status}" for name, o in found.items() if o.status not in ("ok", own)]
    return line | {"remarks": "; ".join(doubts)}
