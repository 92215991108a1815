"""How often does the stated 95 % interval for log Z hold the truth?

    python -m tests.normaliser.coverage --models 200

Small models whose log Z is known: random kernel exponential families in one and two dimensions by quadrature, one
Gaussian bump in three to eight dimensions by its series.
"""

import argparse
import logging
import math
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import gammaln, logsumexp

from dkef.config.schema.normaliser import Annealing, DefensiveMixtureSettings, Normaliser
from dkef.models.kef.parameters import BaseMeasure, Component, KefParameters
from dkef.normaliser.integrand import KernelIntegrand
from dkef.normaliser.target import TargetRun
from tests.normaliser.examples import log_moment, random_kef

LOG = logging.getLogger("coverage")
SETTINGS = Normaliser(
    proposal="cheapest", samples=2_000_000, bound_samples=2_000_000, pilot_samples=20_000, chunk_samples=4000,
    tolerance=0.01, half_width=0.04, percentile=20,
    defensive_mixture=DefensiveMixtureSettings(
        centres=150, clusters=3, modes=5, mode_starts=40, adapt_draws=500, adapt_rounds=2, renewals=1
    ),
    annealing=Annealing(temperatures=12, leapfrog=3, pilot_chains=64),
)  # fmt: skip


def bump(z: np.ndarray, sigma: float, tau: float, height: float) -> KefParameters:
    """One Gaussian kernel around z on a normal q0."""
    q0 = BaseMeasure(np.zeros(len(z)), np.full(len(z), sigma), np.full(len(z), 2.0))
    return KefParameters(np.array([height]), z[None], (Component("gaussian", 1.0, tau, ()),), q0)


def log_z_of_bump(parameters: KefParameters) -> float:
    """E exp(alpha k) = sum_j alpha^j / j! E k^j, each E k^j a Gaussian integral; as for q0 in test_estimate."""
    (alpha,), (z,), (component,) = parameters.alpha, parameters.z, parameters.components
    variance, j = parameters.q0.sigma[0] ** 2, np.arange(200)
    spread = component.tau + j * variance
    log_moments = 0.5 * len(z) * np.log(component.tau / spread) - j * (z**2).sum() / (2 * spread)
    series = logsumexp(j * math.log(alpha) - gammaln(j + 1) + log_moments)
    return float(series + len(z) * 0.5 * math.log(2 * math.pi * variance))


def example(number: int) -> tuple[KefParameters, float]:
    """A model and its log Z."""
    if number % 4 == 3:
        rng = np.random.default_rng(number)
        d = 3 + number // 4 % 6
        model = bump(0.5 * rng.normal(size=d), 1.0, 0.3 + rng.random(), rng.uniform(2, 12))
        return model, log_z_of_bump(model)
    model = random_kef(number, d=1 if number % 4 == 2 else 2, alpha_scale=(1.0, 2.5, 4.0)[number % 3])
    return model, log_moment(model)


def intervals(numbers: range) -> Iterator[tuple[dict[str, Any], float]]:
    """The record of log_z.json and the truth, model by model."""
    for number in numbers:
        model, truth = example(number)
        rows = model.q0.mu + 0.8 * np.random.default_rng(number).normal(size=(150, model.z.shape[1]))
        with tempfile.TemporaryDirectory() as folder:
            yield (
                TargetRun(KernelIntegrand(model), rows, SETTINGS, ("coverage", number), 1, LOG).in_folder(Path(folder)),
                truth,
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.normaliser.coverage", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--models", type=int, default=200)
    covered, below, widths, doubtful, proposals = 0, 0, [], 0, {}
    args = parser.parse_args()
    for number, (record, truth) in enumerate(intervals(range(args.models)), 1):
        held = record["log_z_low"] <= truth <= record["log_z_high"]
        covered += held
        below += record["log_z_high"] < truth
        doubtful += record["status"] != "ok"
        widths.append((record["log_z_high"] - record["log_z_low"]) / 2)
        proposals[record["proposal"]] = proposals.get(record["proposal"], 0) + 1
        if not held or record["status"] != "ok":
            print(
                number - 1,
                f"{truth:.5f} in {record['log_z_low']:.5f} to {record['log_z_high']:.5f}",
                record["status"],
                flush=True,
            )
    print(
        f"{covered} of {args.models} intervals hold the truth;"
        f" {below} lie below it, {args.models - covered - below} above"
    )
    print(f"median half width {np.median(widths):.3g}; {doubtful} not ok; by {proposals}")


if __name__ == "__main__":
    main()
