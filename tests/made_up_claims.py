"""For each claim, made-up results on which it holds, on which it fails, and on which it cannot be decided."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from dkef.metrics.separated import Separated, measure
from dkef.metrics.summary import summary_rows
from dkef.results.experiment import DatasetEntry, ExperimentInfo
from dkef.results.lookup import Results
from dkef.results.names import BENCHMARK, SYNTHETIC
from dkef.results.read import Grid
from dkef.results.tables import SUMMARY

LIKELIHOOD = ("made", "made_mog", "maf", "maf_mog", "real_nvp")
WINES, LARGER, LARGEST = BENCHMARK[:2], BENCHMARK[2:], BENCHMARK[3:]
TRIED = BENCHMARK[:3]
ALL = dict.fromkeys(LIKELIHOOD, 0.5)
RIVALS = ALL | {"kef_g": 0.6}
FOUND = ["dataset", "model", "seed", "metric", "value", "stderr", "status"]


@dataclass
class Made:
    """Results in the making: numbers by (dataset, model, metric), shares of mass, traces, kernels."""

    runs: int
    values: dict[tuple[str, str, str], list[float]] = field(default_factory=dict)
    masses: dict[tuple[str, str, str], list[float]] = field(default_factory=dict)
    traces: dict[tuple[str, str, int], np.ndarray] = field(default_factory=dict)
    elongations: dict[tuple[str, str, int], float | None] = field(default_factory=dict)
    tables: dict[str, pd.DataFrame] = field(default_factory=dict)
    true_masses: dict[str, float] = field(default_factory=lambda: {"first_mode": 0.5, "outside_truth": 0.001})
    true_sharp_mass: float | None = 0.35
    subsets: tuple[str, ...] = ()
    by_q0: tuple[str, ...] = ()
    untrusted: tuple[str, ...] = ()  # models whose values are doubtful
    stderr: float = 0.01
    reduced: str | None = None
    paper_budgets: bool = False

    def levels(self, metric: str, by_model: dict[str, float], sets: Sequence[str]) -> "Made":
        """All runs of a model near a level, the same on every set; the noise of a seed is that of all models."""
        noise = [0.001 * (seed % 3 - 1) for seed in range(self.runs)]
        for d in sets:
            self.values |= {(d, m, metric): [level + e for e in noise] for m, level in by_model.items()}
        return self

    def likely(self, by_model: dict[str, float], sets: Sequence[str]) -> "Made":
        return self.levels("log_likelihood", by_model, sets)

    def fisher(self, by_model: dict[str, float], sets: Sequence[str] = SYNTHETIC) -> "Made":
        return self.levels("fisher_divergence", by_model, sets)

    def loss(self, by_model: dict[str, float], sets: Sequence[str]) -> "Made":
        return self.levels("score_loss", by_model, sets)

    def truth(self, level: float, models: Sequence[str], sets: Sequence[str]) -> "Made":
        return self.levels("true_log_likelihood", dict.fromkeys(models, level), sets)

    def mass(self, region: str, by_model: dict[str, float], sets: Sequence[str]) -> "Made":
        self.masses |= {(d, m, region): [share] * self.runs for d in sets for m, share in by_model.items()}
        return self

    def trace(self, model: str, sets: Sequence[str], loss: Callable[[int], np.ndarray]) -> "Made":
        self.traces |= {(d, model, seed): loss(seed) for d in sets for seed in range(self.runs)}
        return self

    def kernels(self, elongation: float) -> "Made":
        self.elongations |= {(d, "dkef_g15", seed): elongation for d in SYNTHETIC for seed in range(self.runs)}
        return self

    def results(self) -> Results:
        """Tables with one row for each value; NaN is an invalid run."""
        cells = {**dict.fromkeys((d, m) for d, m, _ in (*self.values, *self.masses, *self.traces, *self.elongations))}
        entries = tuple(
            self._entry(d, [m for name, m in cells if name == d]) for d in dict.fromkeys(d for d, _ in cells)
        )
        metrics = pd.DataFrame(self._rows(), columns=FOUND)
        summary = pd.DataFrame(
            list(summary_rows(metrics.assign(number=metrics["value"]))), columns=list(SUMMARY.columns)
        )
        tables = {"metrics": metrics, "summary": summary, "grids": self._grids(), **self.tables}
        tables["traces"] = {
            key: pd.DataFrame({"iteration": np.arange(1, len(loss) + 1), "validation_loss": loss})
            for key, loss in self.traces.items()
        }
        return Results(ExperimentInfo("made_up", "", entries, self.reduced, self.paper_budgets), tables)

    def _entry(self, dataset: str, models: Sequence[str]) -> DatasetEntry:
        part = "the whole" if dataset in self.subsets else None
        by_q0 = tuple(m for m in models if m in self.by_q0)
        seeds = tuple(range(self.runs))
        return DatasetEntry(dataset, dataset, tuple(models), seeds, dataset in SYNTHETIC, part, None, by_q0)

    def _of_kernel(self, key: tuple[str, str, int]) -> dict[str, float | None]:
        return {"kernel_elongation": self.elongations[key]} if key in self.elongations else {}

    def _rows(self) -> list[dict]:
        return [
            {
                "dataset": d, "model": m, "seed": seed, "metric": metric, "value": value, "stderr": self.stderr,
                "status": "invalid: made up" if math.isnan(value) else self._trust(m),
            }
            for (d, m, metric), numbers in self.values.items()
            for seed, value in enumerate(numbers)
        ]  # fmt: skip

    def _trust(self, model: str) -> str:
        return "untrusted: made up" if model in self.untrusted else "ok"

    def _grids(self) -> dict[tuple[str, str, int], Grid]:
        facts: dict[tuple[str, str, int], dict] = {}
        for (d, m, region), shares in self.masses.items():
            for seed, share in enumerate(shares):
                facts.setdefault((d, m, seed), {})[region] = share
        for d, m, metric in self.values:
            if metric == "sharp_mass":
                facts |= {(d, m, seed): {} for seed in range(self.runs)}
        about = {"true_masses": self.true_masses, "true_sharp_mass": self.true_sharp_mass}
        return {
            key: Grid({}, about | {"masses": facts.get(key, {})} | self._of_kernel(key))
            for key in dict.fromkeys((*facts, *self.elongations))
        }


def scales(made: Made, deep: float, plain: float, plain_mass: float) -> Made:
    """Figure 1: divergences of both models, and the mass that KEF-G gives to the sharp component."""
    both = {"dkef_scales": deep, "kef_g_scales": plain}
    for metric in ("kl_quadrature", "fisher_quadrature"):
        made.levels(metric, both, ("gaussian_scales",))
    return made.levels("sharp_mass", {"dkef_scales": 0.36, "kef_g_scales": plain_mass}, ("gaussian_scales",))


def linear(made: Made, ours: float, simple: float) -> Made:
    models = {"dkef_l50": 0.2, "dkef_l50_1": 0.3}
    made.fisher(models | {"dkef_g15": ours}).likely(dict.fromkeys(models, simple), ("funnel", "banana"))
    return made.truth(-3.4, tuple(models), ("funnel", "banana"))


def mixtures(made: Made, ours: float, likelihood: float) -> Made:
    """Mixtures on MoR: Fisher divergence and likelihood of DKEF-G-15's; the truth's likelihood is -3.8."""
    others = {"mixture_maf": 0.5, "mixture_made": 0.6, "mixture_kef_g": 0.7}
    made.fisher(others | {"mixture_dkef_g15": ours}, ("mor",)).likely({"mixture_dkef_g15": likelihood}, ("mor",))
    return made.truth(-3.8, ("mixture_dkef_g15",), ("mor",))


def stein(made: Made, ksd: Sequence[float]) -> Made:
    for i, model in enumerate(LIKELIHOOD):
        made.levels("fssd2", {model: i + 1.0}, BENCHMARK).levels("ksd2", {model: ksd[i]}, BENCHMARK)
    return made


def p_values(made: Made, level: float, sets: Sequence[str]) -> Made:
    return made.levels("fssd_p_value", dict.fromkeys(RIVALS, level), sets)


def bounds(made: Made, trained: float, fixed: float, sets: Sequence[str] = BENCHMARK) -> Made:
    made.by_q0 = ("dkef", "dkef_fixed_q0")
    return made.levels("log_likelihood_bias_bound", {"dkef": trained, "dkef_fixed_q0": fixed}, sets)


def log_z(made: Made, from_q0: float) -> Made:
    made.by_q0 = ("dkef_by_q0",)
    return made.levels("log_z", {"dkef": 10.0, "dkef_by_q0": from_q0}, TRIED)


def similar(made: Made, model: str, sets: Sequence[str], likelihood: float, fssd: float) -> Made:
    """A variant of DKEF whose likelihood and FSSD^2 differ by so much; the likelihood models' FSSD^2 by 0.4."""
    made.likely({"dkef": -12.0, model: -12.0 + likelihood}, sets)
    for metric in ("fssd2", "score_loss"):
        made.levels(metric, ALL | {"dkef": 0.1, model: 0.1 + fssd}, sets)
    return made


def variant(made: Made, ending: str, gain: float) -> Made:
    """Score losses of DKEF and a variant, which is worse by `gain`."""
    made.loss({"dkef": -40.0, f"dkef_{ending}": -40.0 + gain}, ("redwine",))
    return made.loss({"dkef_g15": -4.0, f"dkef_g15_{ending}": -4.0 + gain}, ("ring",))


def made_mog(made: Made, invalid: int) -> Made:
    numbers = [math.nan] * invalid + [-13.0] * (made.runs - invalid)
    made.values |= {(d, "made_mog", "log_likelihood"): numbers for d in ("whitewine", "parkinsons", "miniboone")}
    return made


def wide(made: Made, gain: float) -> Made:
    made.likely(ALL, ("redwine",))
    return made.likely({f"{m}_200": level + gain for m, level in ALL.items()}, ("redwine",))


def course(end: float, n: int = 200, noise: Callable[[np.ndarray], np.ndarray] = np.zeros_like) -> np.ndarray:
    """A loss that falls from 0 to -10 and ends at `end`, with noise of alternating sign."""
    t = np.linspace(0, 1, n)
    falling = -10 * (1 - np.exp(-12 * t))
    late = (end + 10) * np.clip((t - 0.5) / 0.5, 0, 1)
    return falling + late + noise(t) * (-1.0) ** np.arange(n)


def separated(made: Made, factor: float, gap: float = 0.0, share: float = 0.2) -> Made:
    """Fits to two components whose log ratio is `factor` times that of the corrected formula."""
    settings = Separated(rows=200, shares=[share, 0.5], lambdas=[0.01, 0.1], seeds=1, inducing=[1])
    table = measure(settings)
    ratio = factor * table["corrected_limit"]
    made.tables["separated"] = table.assign(log_ratio=ratio, log_ratio_apart=ratio + gap)
    return made


def empty_separated(made: Made) -> Made:
    made.tables["separated"] = separated(Made(1), 1.0).tables["separated"].iloc[:0]
    return made


def objective_seconds(made: Made, of_sliced: float) -> Made:
    """Processor time of a step along one direction, over that of an exact one."""
    sets = (("redwine", "dkef"), ("ring", "dkef_g15"))
    made.tables["objective_costs"] = pd.DataFrame(
        {"dataset": d, "model": model, "seed": seed, "cpu_seconds_per_step": seconds}
        for d, exact in sets
        for seed in range(made.runs)
        for model, seconds in ((exact, 0.02), (f"{exact}_sliced", 0.02 * of_sliced + 1e-4 * seed))
    )
    for d, exact in sets:
        made.trace(exact, (d,), lambda seed: course(-10))
    return made
