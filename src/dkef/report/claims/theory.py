"""Statements of Appendix C, which no trained model is needed for: fits in closed form to two separated components."""

import functools

import pandas as pd

from dkef.metrics.separated import Separated, measure
from dkef.report.claims.evidence import Evidence, Known
from dkef.report.claims.verdict import Statement
from dkef.results.lookup import Results

CLOSE = 0.1  # relative error of a formula that is approximately right
IN_LIMIT = 0.1  # relative difference of the full formula from its limit, where the limit is meant to apply
EQUAL = 1e-6  # of the largest log ratio


@functools.cache
def fits() -> pd.DataFrame:
    """A few of the fits of the experiment `separated`: under a second, and the same in every experiment."""
    return measure(Separated(rows=4000, shares=[0.2, 0.4, 0.6, 0.8], lambdas=[1e-3, 1e-2, 1e-1], seeds=1, inducing=[1]))


def _table(results: Results) -> pd.DataFrame:
    found = results.tables.get("separated")
    return fits() if found is None else found


def _sure(label: str, holds: bool) -> Known:
    return Known(label, 1.0 - holds, float(holds), certain=True)


def ratio_formula(results: Results) -> Evidence:
    table = _table(results)
    rows = table[(table["inducing"] == 1) & (table["pi"] != 0.5)]
    rows = rows[(rows["printed_limit"] - rows["printed"]).abs() <= IN_LIMIT * rows["printed"].abs()]
    if rows.empty:
        return Known("fits with lambda much above D / sigma^4")
    size = float((rows["log_ratio"] ** 2).mean() ** 0.5)
    errors = {
        name: float(((rows["log_ratio"] - rows[name]) ** 2).mean() ** 0.5) / size
        for name in ("printed_limit", "corrected_limit")
    }
    label = f"relative error over {len(rows)} fits: {errors['printed_limit']:.0%} as printed, "
    return _sure(f"{label}{errors['corrected_limit']:.0%} with the factor 2 for 1/2", errors["printed_limit"] < CLOSE)


def components_apart(results: Results) -> Evidence:
    table = _table(results)
    if table.empty:
        return Known("fits to two separated components")
    gap = float((table["log_ratio"] - table["log_ratio_apart"]).abs().max())
    return _sure(f"largest difference of log ratios {gap:.1g}", gap <= EQUAL * float(table["log_ratio"].abs().max()))


STATEMENTS = (
    Statement(
        "ratio_of_separated_components", "Section 3.1, Appendix C.1",
        "Then the density ratio between components, which should be pi / (1 - pi), is approximately exp(D / (2 "
        "sigma^2 lambda_alpha) (pi - 1/2)).",
        "Over fits with one inducing point a component and lambda much above D / sigma^4 the formula has a relative "
        "error (root mean square of the log ratio) below 10 %. No chance is involved.",
        ratio_formula,
    ),
    Statement(
        "separated_components_are_fitted_apart", "Section 3.1, Proposition 4",
        "For two components that are completely separated according to k, (5) fits each as it would if given only "
        "that component, except that the effective lambda_alpha is scaled: smaller components are regularized more.",
        "The log ratio of a joint fit equals that of two fits with lambda / pi and lambda / (1 - pi) to 1e-6. No "
        "chance is involved.",
        components_apart,
    ),
)  # fmt: skip
