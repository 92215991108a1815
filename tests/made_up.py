"""Made-up results with the shape and the size of real ones, for tests of figures, claims and tables."""

from typing import get_args

import numpy as np
import pandas as pd

from dkef.core.streams import rng_for
from dkef.data.splits import Splits
from dkef.data.synthetic.source import KNOWN
from dkef.data.whitening import Whitening
from dkef.metrics.grid import KERNEL_POSITIONS, on_grid, points_of
from dkef.metrics.separated import Separated, measure, verdict
from dkef.metrics.summary import summary_rows
from dkef.models.gaussian.density import GaussianModel
from dkef.models.kef.spec import Objective
from dkef.results.experiment import DatasetEntry, ExperimentInfo
from dkef.results.lookup import Results
from dkef.results.read import Grid
from dkef.results.tables import SUMMARY

OWN_REFERENCES = {("fssd_p_value", "dkef"), ("fssd_p_value_fixed_q0", "dkef_fixed_q0")}
BASELINES = ("made", "made_mog", "maf", "maf_mog", "real_nvp")
BENCHMARK_MODELS = ("gaussian", *BASELINES, "kef_g", "dkef_fixed_q0", "dkef")
SYNTHETIC_MODELS = ("gaussian", *BASELINES, "kcef", "kef_g", "dkef_l50_1", "dkef_l50", "dkef_g50", "dkef_g15")
# median log-likelihood and score loss, near the notebooks' and the fact sheet's
BENCHMARK = {
    "redwine": (11, {"dkef": -12.5, "kef_g": -14.1, "gaussian": -15.4, "made": -13.9, "made_mog": -12.8,
                     "maf": -12.4, "maf_mog": -12.2, "real_nvp": -12.8, "dkef_fixed_q0": -12.6}),
    "whitewine": (11, {"dkef": -13.4, "kef_g": -14.3, "gaussian": -15.5, "made": -14.2, "made_mog": -13.1,
                       "maf": -13.1, "maf_mog": -12.8, "real_nvp": -13.5, "dkef_fixed_q0": -13.4}),
    "parkinsons": (15, {"dkef": -14.4, "kef_g": -15.7, "gaussian": -21.2, "made": -13.0, "made_mog": -12.1,
                        "maf": -12.0, "maf_mog": -11.5, "real_nvp": -13.2, "dkef_fixed_q0": -14.6}),
    "hepmass_part": (22, {"dkef": -27.3, "kef_g": -29.0, "gaussian": -31.2, "made": -23.9, "made_mog": -20.6,
                          "maf": -19.4, "maf_mog": -17.9, "real_nvp": -21.5, "dkef_fixed_q0": -27.5}),
    "miniboone_part": (43, {"dkef": -42.0, "kef_g": -50.0, "gaussian": -61.0, "made": -40.3, "made_mog": -37.9,
                            "maf": -35.4, "maf_mog": -35.6, "real_nvp": -38.4, "dkef_fixed_q0": -42.2}),
}  # fmt: skip
TITLES = {
    "redwine": "RedWine", "whitewine": "WhiteWine", "parkinsons": "Parkinsons", "hepmass_part": "HepMass",
    "miniboone_part": "MiniBoone", "funnel": "Funnel", "banana": "Banana", "ring": "Ring", "square": "Square",
    "cosine": "Cosine", "mog": "MoG", "mor": "MoR",
}  # fmt: skip
SUBSETS = {"hepmass_part": "HepMass", "miniboone_part": "MiniBoone"}


def entry(name: str, models: tuple[str, ...], seeds: int, synthetic: bool) -> DatasetEntry:
    reference = "dkef" if "dkef" in models else None
    title = TITLES.get(name, name)
    return DatasetEntry(name, title, models, tuple(range(seeds)), synthetic, SUBSETS.get(name), reference)


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
                    "fssd_p_value": (p_value := float(rng.beta(0.6, 2))),
                    "fssd_p_value_fixed_q0": 1 - p_value,
                }
                if "kef" in model:
                    values["log_likelihood_bias_bound"] = 0.01 * np.exp(rng.normal()) * (40 if seed == 1 else 1)
                for metric, value in values.items():
                    undefined = (metric, model) in OWN_REFERENCES
                    rows.append({
                        "dataset": dataset, "model": model, "seed": seed, "metric": metric,
                        "value": np.nan if broken or undefined else value, "stderr": 0.1,
                        "status": "undefined: the model is its own reference" if undefined else status,
                        "config_digest": "0" * 16, "code_version": "test",
                    })  # fmt: skip
    return pd.DataFrame(rows)


def summary_of(metrics: pd.DataFrame) -> pd.DataFrame:
    """summary.csv as the summarise stage writes it; a number that is not there is NaN, as in a file."""
    rows = pd.DataFrame(list(summary_rows(metrics.assign(number=metrics["value"]))), columns=list(SUMMARY.columns))
    return rows.assign(**{name: rows[name].astype(float) for name in SUMMARY.numbers})


def benchmark_inputs(datasets: tuple[str, ...] = tuple(BENCHMARK), seeds: int = 15) -> Results:
    metrics = benchmark_metrics(datasets, seeds)
    entries = tuple(entry(name, BENCHMARK_MODELS, seeds, False) for name in datasets)
    info = ExperimentInfo("made_up", "Made up", entries, reduced="made-up numbers, no run at all")
    return Results(info, {"metrics": metrics, "summary": summary_of(metrics)})


def synthetic_inputs(datasets: tuple[str, ...], models: tuple[str, ...], seeds: int = 1) -> Results:
    """Grids with a blurred truth as every model's density, worse for some; and metrics that fit them."""
    rng = rng_for("made-up synthetic")
    grids: dict[tuple[str, str, int], Grid] = {}
    rows = []
    for dataset in datasets:
        truth = KNOWN[dataset]
        fitted = on_grid(GaussianModel.fit(truth.sample(2000, rng)), truth, None)
        for i, model in enumerate(models):
            for seed in range(seeds):
                arrays, facts = dict(fitted[0]), dict(fitted[1])
                sharp = np.maximum(arrays["true_log_density"], -40.0) / (1 + 0.2 * (len(models) - i))
                if model != "gaussian":
                    arrays["log_density"] = sharp
                if model in ("kef_g", "dkef_g15", "mixture_dkef_g15"):
                    arrays |= made_up_kernel(arrays["axis"])
                status = "diverged" if (dataset, model) == ("square", "made_mog") else "ok"
                facts |= {"dataset": dataset, "model": model, "seed": seed, "status": status}
                facts["true_log_likelihood"] = -3.4
                grids[dataset, model, seed] = Grid(arrays, facts)
                for metric, value in (
                    (
                        "log_likelihood",
                        -3.4 - 0.1 * (len(models) - i) * rng.uniform(0.5, 2) - 60 * (model == "dkef_l50_1"),
                    ),
                    ("fisher_divergence", 0.05 * (len(models) - i) * rng.uniform(0.5, 2)),
                    ("score_loss", -3 + 0.05 * (len(models) - i)),
                ):
                    rows.append({
                        "dataset": dataset, "model": model, "seed": seed, "metric": metric,
                        "value": value if status == "ok" else np.nan, "stderr": 0.03,
                        "status": status, "config_digest": "0" * 16, "code_version": "test",
                    })  # fmt: skip
    metrics = pd.DataFrame(rows)
    entries = tuple(entry(name, models, seeds, True) for name in datasets)
    info = ExperimentInfo("made_up", "Made up", entries, reduced="made-up numbers, no run at all")
    return Results(info, {"metrics": metrics, "summary": summary_of(metrics), "grids": grids})


def made_up_kernel(axis: np.ndarray) -> dict[str, np.ndarray]:
    """Gaussian kernels that widen to the right, at the paper's positions in the plane."""
    coarse = axis[::2]
    positions = KERNEL_POSITIONS[2]
    points = points_of([coarse, coarse])
    squared = ((points[None] - positions[:, None]) ** 2).sum(-1)
    kernel = np.exp(-squared / (2 * (2 + 0.2 * positions[:, :1]) ** 2))
    return {"kernel": kernel.reshape(len(positions), len(coarse), len(coarse)), "kernel_axis": coarse,
            "kernel_positions": positions}  # fmt: skip


def scales_inputs() -> Results:
    """Figure 1 with two made-up fits of three draws, of which seed 2 has the median mass on the sharp component."""
    truth = KNOWN["gaussian_scales"]
    grids = {}
    for model, width in (("kef_g", lambda p: 0.6), ("dkef", lambda p: 0.3 + 0.3 * (p + 1))):
        arrays, facts = on_grid(GaussianModel.fit(truth.sample(2000, rng_for("scales"))), truth, None)
        positions = KERNEL_POSITIONS[1][:, 0]
        arrays["kernel"] = np.stack([np.exp(-((arrays["axis"] - p) ** 2) / (2 * width(p) ** 2)) for p in positions])
        arrays |= {"kernel_axis": arrays["axis"], "kernel_positions": KERNEL_POSITIONS[1]}
        for seed in range(3):
            grids["gaussian_scales", model, seed] = Grid(arrays, facts | {"true_sharp_mass": 0.3525})
    rows = [
        {"dataset": "gaussian_scales", "model": model, "seed": seed, "metric": metric, "value": value, "stderr": 0.05,
         "status": "ok"}
        for model, metric, values in (
            ("kef_g", "log_likelihood", (-1.52, -1.51, -1.53)), ("dkef", "log_likelihood", (-1.44, -1.43, -1.45)),
            ("kef_g", "kl_quadrature", (0.09, 0.08, 0.07)), ("dkef", "kl_quadrature", (0.01, 0.02, 0.03)),
            ("kef_g", "sharp_mass", (0.452, 0.377, 0.41)), ("dkef", "sharp_mass", (0.36, 0.35, 0.351)),
        )
        for seed, value in enumerate(values)
    ]  # fmt: skip
    one = DatasetEntry("gaussian_scales", "Gaussian scales", ("kef_g", "dkef"), (0, 1, 2), True)
    return Results(ExperimentInfo("made_up", "", (one,)), {"metrics": pd.DataFrame(rows), "grids": grids})


def trace(best: float, n: int, rng: np.random.Generator) -> pd.DataFrame:
    """A validation loss that falls, with noise and a few spikes."""
    steps = np.arange(n)
    loss = best * (1 - np.exp(-steps / (n / 8))) + 0.02 * abs(best) * rng.standard_t(2, n)
    return pd.DataFrame({"iteration": steps, "validation_loss": loss})


def trace_inputs(figure: str) -> Results:
    synthetic = figure == "toy_traces"
    names = ("funnel", "banana", "ring", "square", "cosine", "mog") if synthetic else tuple(BENCHMARK)
    model = "dkef_g15" if synthetic else "dkef"
    rng = rng_for("made-up traces")
    traces = {
        (name, model, seed): trace(-12.0, int(rng.integers(300, 900)), rng) for name in names for seed in range(5)
    }
    entries = tuple(entry(name, (model,), 5, synthetic) for name in names)
    return Results(ExperimentInfo("made_up", "", entries, "5 runs of made-up numbers"), {"traces": traces})


def splits_of(x: np.ndarray) -> Splits:
    """Four fifths of some rows to train on, and a tenth each to validate and test."""
    cut, n, d = (8 * len(x) // 10, 9 * len(x) // 10), np.arange(len(x)), x.shape[1]
    rows = [n[: cut[0]], n[cut[0] : cut[1]], n[cut[1] :]]
    whitening = Whitening(np.zeros(d), np.eye(d))
    names = tuple(f"x{i}" for i in range(d))
    return Splits("Made up", *(x[part] for part in rows), *rows, whitening, False, names, (), "digest")


def separated_inputs() -> Results:
    """A few small fits of Appendix C."""
    settings = Separated(rows=2000, shares=[0.3, 0.5, 0.8], lambdas=[1e-4, 1e-3, 1e-2], seeds=1, inducing=[1, 4])
    table = measure(settings)
    return Results(ExperimentInfo("made_up", "", ()), {"separated": table, "separated_verdict": verdict(table)})


def objective_inputs() -> Results:
    """Seven objectives on two sets under two budgets, with runs that are not trusted, and one that has no value."""
    rng, kinds = rng_for("made-up objectives"), get_args(Objective)
    rows, costs, entries = [], [], []
    for dataset, exact in (("ring", "dkef_g15"), ("redwine", "dkef")):
        names = {exact if kind == "exact" else f"{exact}_{kind}": kind for kind in kinds}
        names |= {f"{model}_cpu": kind for model, kind in names.items() if kind != "exact"}
        entries.append(entry(dataset, tuple(names), 3, dataset == "ring"))
        for i, (model, kind) in enumerate(names.items()):
            for seed in range(3):
                status = "untrusted: made up" if kind == "denoising" else "ok"
                iterations = 300 + 40 * (i + 1) * model.endswith("_cpu")
                measured = {"cpu_seconds_per_step": 0.02 / (1 + i % 7), "cpu_seconds_per_validation": 0.1}
                cell = {"dataset": dataset, "model": model, "seed": seed}
                costs.append(cell | {"objective": kind, "iterations": iterations} | measured)
                for metric, level in (("score_loss", -40.0 + i), ("log_likelihood", -12.0 - 0.2 * i)):
                    lost = model.endswith("sliced_cpu") and seed == 0
                    value = np.nan if lost else level + rng.normal()
                    rows.append(cell | {"metric": metric, "value": value, "stderr": 0.1, "status": status})
    info = ExperimentInfo("made_up", "Objectives of score matching", tuple(entries))
    return Results(info, {"metrics": pd.DataFrame(rows), "objective_costs": pd.DataFrame(costs)})


def scaling_inputs() -> Results:
    """Times and memory as the benchmark names them."""
    share = {"exact": 1.0, "sliced_1": 0.02, "sliced_10": 0.1}
    figures = {
        f"objectives_{what}_{kind}_d{d}_w{w}": base + factor * d * w / 30 * part
        for what, base, factor in (("step_ms", 10.0, 2.0), ("products_ms", 3.0, 1.0), ("peak_mb", 500.0, 3.0))
        for kind, part in share.items()
        for d in (10, 22, 43, 100, 200, 400)
        for w in (30, 100, 300)
    }
    return Results(ExperimentInfo("made_up", "", ()), {"objective_scaling": figures})


def split_inputs() -> Results:
    """Splits of three benchmark sets and a planar one, skewed and correlated."""
    rng = rng_for("made-up splits")
    splits, entries = {}, []
    for name, d in (("redwine", 11), ("whitewine", 11), ("miniboone_part", 43), ("ring", 2)):
        x = KNOWN["ring"].sample(3000, rng) if d == 2 else rng.gamma(2, size=(3000, d)) - 2
        splits[name, 0] = splits_of(x)
        entries.append(entry(name, ("gaussian",), 1, d == 2))
    return Results(ExperimentInfo("made_up", "", tuple(entries)), {"splits": splits})


def ablation_inputs() -> Results:
    """Three variants of dkef on two sets."""
    variants = ("dkef", "dkef_noise_0", "dkef_noise_twice")
    source = benchmark_metrics(("redwine", "parkinsons"), 5)
    source = source[source["model"].isin(["dkef", "kef_g", "maf"])]
    metrics = source.assign(model=source["model"].map(dict(zip(("dkef", "kef_g", "maf"), variants, strict=True))))
    entries = tuple(entry(name, variants, 5, False) for name in ("redwine", "parkinsons"))
    info = ExperimentInfo("made_up", "Noise in training", entries)
    return Results(info, {"metrics": metrics, "summary": summary_of(metrics)})


def sensitivity_inputs() -> Results:
    """Two sets, five models, five bandwidths, two numbers of locations."""
    rng = rng_for("made-up sensitivity")
    models = ("gaussian", "made", "maf", "kef_g", "dkef")
    rows, orders = [], []
    for dataset in ("redwine", "parkinsons"):
        for factor in (0.25, 0.5, 1.0, 2.0, 4.0):
            for locations in (20, 100):
                for seed in range(3):
                    orders.append({"dataset": dataset, "seed": seed, "bandwidth_factor": factor, "locations": locations,
                                   "tau_fssd_ksd": rng.uniform(0.4, 1.0)})  # fmt: skip
            for i, model in enumerate(models):
                for statistic, locations in (("fssd2", 20), ("fssd2", 100), ("ksd2", np.nan)):
                    rows.append({
                        "dataset": dataset, "model": model, "seed": 0, "statistic": statistic, "status": "ok",
                        "bandwidth_factor": factor, "locations": locations, "stderr": 0.001,
                        "value": 0.01 * factor * (len(models) - 1.2 - i) * rng.uniform(0.8, 1.2),
                    })  # fmt: skip
    entries = tuple(entry(name, models, 3, False) for name in ("redwine", "parkinsons"))
    info = ExperimentInfo("made_up", "", entries)
    return Results(info, {"sensitivity": pd.DataFrame(rows), "agreement": pd.DataFrame(orders)})


def proposal_inputs() -> Results:
    """Two sets: q0 that is nats too good and knows it at times, a mixture that is right, annealed chains with few."""
    rng = rng_for("made-up proposals")
    rows = []
    for dataset, truth in (("redwine", -13.0), ("parkinsons", -15.3)):
        for kind, cost, exponents in (("q0", 1, range(4, 9)), ("mixture", 4, range(3, 7)), ("annealed", 9000, (2, 3))):
            for exponent in exponents:
                effective = 10 ** (exponent - 6.5) if kind == "q0" else 0.1 * 10**exponent
                error = 1 / np.sqrt(max(effective, 1.0))
                rows.append({
                    "dataset": dataset, "model": "dkef", "seed": 0, "proposal": kind, "samples": 10**exponent,
                    "evaluations": cost * 10**exponent, "log_z": 30.0, "stderr": error,
                    "bias_bound": np.nan if effective < 100 else 5 / effective,
                    "effective_sample_size": max(effective, 1),
                    "pareto_k_hat": 0.5, "halves_apart": error, "status": "ok" if effective > 100 else "untrusted: few",
                    "log_likelihood": truth + error * rng.normal() + (4 - exponent / 4 if kind == "q0" else 0),
                })  # fmt: skip
    entries = tuple(entry(name, ("dkef",), 1, False) for name in ("redwine", "parkinsons"))
    return Results(ExperimentInfo("made_up", "", entries), {"proposals": pd.DataFrame(rows)})
