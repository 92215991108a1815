"""Do FSSD and KSD order the models alike, and does the order survive other settings?

The paper omits KSD because it agrees with FSSD "even across a wide range of kernel bandwidths"; this is the table to
judge that by. Orders are compared by Kendall's tau-b over the models that have a value under every setting compared.
"""

import math
from collections.abc import Iterator
from typing import Any

import pandas as pd
from scipy.stats import kendalltau

from dkef.config.schema.metrics import Comparison
from dkef.core.errors import DkefError, one_line

AGAIN = "run sensitivity again"


def agreement_rows(table: pd.DataFrame, settings: Comparison) -> Iterator[dict[str, Any]]:
    """One row for each dataset, seed, bandwidth factor and number of locations of a sensitivity table.

    The table holds texts, as `gather_sensitivity` leaves them, and `number` beside `value`; KSD has no locations.
    """
    for (dataset, seed), cell in table.groupby(["dataset", "seed"], sort=False):
        fssd2, ksd2 = (_by_setting(cell[cell["statistic"] == statistic]) for statistic in ("fssd2", "ksd2"))
        where = f"{one_line(dataset)}, seed {seed}"
        default_fssd2 = fssd2.get((settings.fssd_bandwidth_factor, settings.fssd_locations))
        default_ksd2 = ksd2.get((settings.ksd_bandwidth_factor, 0))
        if default_fssd2 is None or default_ksd2 is None:
            raise DkefError(f"{where}: no row has the settings of the comparison; {AGAIN}")
        for factor, count in sorted(fssd2):
            if (factor, 0) not in ksd2:
                raise DkefError(f"{where}: ksd2 has no row with the factor {factor}; {AGAIN}")
            names = {"dataset": dataset, "seed": seed, "bandwidth_factor": factor, "locations": count}
            yield names | compare_orders(
                {
                    "tau_fssd_ksd": (fssd2[factor, count], ksd2[factor, 0]),
                    "tau_fssd_default": (fssd2[factor, count], default_fssd2),
                    "tau_ksd_default": (ksd2[factor, 0], default_ksd2),
                }
            )


def _by_setting(rows: pd.DataFrame) -> dict[tuple[float, int], pd.Series]:
    """Values by model, for each bandwidth factor and number of locations."""
    groups = rows.groupby(["bandwidth_factor", "locations"])
    return {(float(factor), int(count or 0)): group.set_index("model")["number"] for (factor, count), group in groups}


def compare_orders(compared: dict[str, tuple[pd.Series, pd.Series]]) -> dict[str, Any]:
    """Rank correlations of pairs of series by model, and the models that come first."""
    series = pd.concat([part for pair in compared.values() for part in pair], axis=1)
    shared = series.dropna().index
    cells: dict[str, Any] = {"models": len(shared), "status": "ok"}
    near, everywhere = (part[shared] for part in compared["tau_fssd_ksd"])
    cells["best_by_fssd"] = near.idxmin() if len(shared) else None
    cells["best_by_ksd"] = everywhere.idxmin() if len(shared) else None
    for name, (left, right) in compared.items():
        tau = float(kendalltau(left[shared], right[shared]).statistic) if len(shared) > 1 else math.nan
        cells[name] = None if math.isnan(tau) else tau
        if math.isnan(tau):
            cells["status"] = f"undefined: {len(shared)} of {len(series)} models can be put in order"
    return cells
