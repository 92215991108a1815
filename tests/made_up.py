"""Made-up results with the shape and the size of real ones, for tests of figures, claims and tables."""

import numpy as np
import pandas as pd

from dkef.figures.inputs import DatasetEntry, Grid, Inputs, Request
from dkef.streams import rng_for

BASELINES = ("made", "made_mog", "maf", "maf_mog", "nvp")
BENCHMARK_MODELS = ("gaussian", *BASELINES, "kef_g", "dkef_fixed_q0", "dkef")
SYNTHETIC_MODELS = ("gaussian", *BASELINES, "kcef", "kef_g", "dkef_l50_1", "dkef_l50", "dkef_g50", "dkef_g15")
# median log-likelihood and score loss, near the notebooks' and the fact sheet's
BENCHMARK = {
    "redwine": (11, {"dkef": -12.5, "kef_g": -14.1, "gaussian": -15.4, "made": -13.9, "made_mog": -12.8,
                     "maf": -12.4, "maf_mog": -12.2, "nvp": -12.8, "dkef_fixed_q0": -12.6}),
    "whitewine": (11, {"dkef": -13.4, "kef_g": -14.3, "gaussian": -15.5, "made": -14.2, "made_mog": -13.1,
                       "maf": -13.1, "maf_mog": -12.8, "nvp": -13.5, "dkef_fixed_q0": -13.4}),
    "parkinsons": (15, {"dkef": -14.4, "kef_g": -15.7, "gaussian": -21.2, "made": -13.0, "made_mog": -12.1,
                        "maf": -12.0, "maf_mog": -11.5, "nvp": -13.2, "dkef_fixed_q0": -14.6}),
    "hepmass_part": (22, {"dkef": -27.3, "kef_g": -29.0, "gaussian": -31.2, "made": -23.9, "made_mog": -20.6,
                          "maf": -19.4, "maf_mog": -17.9, "nvp": -21.5, "dkef_fixed_q0": -27.5}),
    "miniboone_part": (43, {"dkef": -42.0, "kef_g": -50.0, "gaussian": -61.0, "made": -40.3, "made_mog": -37.9,
                            "maf": -35.4, "maf_mog": -35.6, "nvp": -38.4, "dkef_fixed_q0": -42.2}),
}  # fmt: skip
TITLES = {
    "redwine": "RedWine", "whitewine": "WhiteWine", "parkinsons": "Parkinsons", "hepmass_part": "HepMass",
    "miniboone_part": "MiniBoone", "funnel": "Funnel", "banana": "Banana", "ring": "Ring", "square": "Square",
    "cosine": "Cosine", "mog": "MoG", "mor": "MoR",
}  # fmt: skip
SUBSETS = {"hepmass_part": "HepMass", "miniboone_part": "MiniBoone"}


def entry(name: str, models: tuple[str, ...], seeds: int, synthetic: bool) -> DatasetEntry:
    return DatasetEntry(name, TITLES.get(name, name), models, tuple(range(seeds)), synthetic, SUBSETS.get(name))


def benchmark_metrics(datasets: tuple[str, ...] = tuple(BENCHMARK), seeds: int = 15) -> pd.DataFrame:
    """metrics.csv of a benchmark experiment, with some diverged runs and one run far off."""
    rng = rng_for("made-up benchmark")
    rows = []
    for dataset in datasets:
        d, medians = BENCHMARK[dataset]
        for model, level in medians.items():
            for seed in range(seeds):
                broken = model == "made_mog" and dataset in ("whitewine", "parkinsons") and seed % 3 == 0
                status = "diverged" if broken else "ok"
                loss = -d * (4.0 if "dkef" in model else 2.5 if model != "gaussian" else 0.5)
                values = {
                    "log_likelihood": level + 0.25 * rng.normal() - 30 * (model == "made" and seed == 3),
                    "score_loss": loss + 0.1 * d * rng.standard_t(3),
                    "fssd2": 0.004 * (0.2 if "dkef" in model else 1.0) * (1 + rng.exponential()) - 0.002,
                    "ksd2": 0.004 * (0.2 if "dkef" in model else 1.0) * (1 + rng.exponential()) - 0.002,
                    "fssd_p_value": float(rng.beta(0.6, 2)),
                }
                if "kef" in model:
                    values["log_likelihood_bias_bound"] = 0.01 * np.exp(rng.normal()) * (40 if seed == 1 else 1)
                for metric, value in values.items():
                    undefined = metric == "fssd_p_value" and model == "dkef"
                    rows.append({
                        "dataset": dataset, "model": model, "seed": seed, "metric": metric,
                        "value": np.nan if broken or undefined else value, "stderr": 0.1,
                        "status": "undefined" if undefined else status,
                        "config_digest": "0" * 16, "code_version": "test",
                    })  # fmt: skip
    return pd.DataFrame(rows)


def summary_of(metrics: pd.DataFrame) -> pd.DataFrame:
    """summary.csv as the summarise stage would write it; the tests' own plain version."""
    rows = []
    for (dataset, model, metric), group in metrics.groupby(["dataset", "model", "metric"], sort=False):
        good = group.loc[group["status"] == "ok", "value"]
        rows.append({
            "dataset": dataset, "model": model, "metric": metric, "median": good.median(),
            "low": good.quantile(0.25), "high": good.quantile(0.75), "runs": len(good),
            "invalid": int((~group["status"].isin(["ok", "undefined"])).sum()),
        })  # fmt: skip
    return pd.DataFrame(rows)


def benchmark_inputs(datasets: tuple[str, ...] = tuple(BENCHMARK), seeds: int = 15) -> Inputs:
    metrics = benchmark_metrics(datasets, seeds)
    entries = tuple(entry(name, BENCHMARK_MODELS, seeds, False) for name in datasets)
    request = Request("real_data", "made_up", "Made up", entries, reduced="made-up numbers, no run at all")
    return Inputs(request, metrics, summary_of(metrics))


__all__ = ["BASELINES", "BENCHMARK_MODELS", "SYNTHETIC_MODELS", "Grid", "benchmark_inputs", "entry", "summary_of"]
