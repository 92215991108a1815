"""Fitting a mixture on clusters: cluster the rows, whiten and fit each cluster alone, weight by counts."""

import math
import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from dkef.config.typed import instantiate
from dkef.core.arrays import Array
from dkef.core.errors import DkefError
from dkef.core.streams import rng_for
from dkef.data.whitening import Whitening
from dkef.models.mixture.density import LogZ, MixtureModel, Part
from dkef.models.mixture.spec import Mixture
from dkef.models.protocol import DensityModel, Fit, Trainable, Workbench

OUTCOMES = ("closed form", "converged", "max_iterations", "time_budget", "diverged")  # the last of several is reported

Estimate = Callable[[DensityModel, int, Workbench], LogZ]


def spectral_clusters(x: Array, clusters: int, neighbours: int, rng: np.random.Generator) -> Array:
    """Label of each row [n], the largest cluster first, by spectral clustering on nearest neighbours."""
    from sklearn.cluster import SpectralClustering

    if clusters == 1:
        return np.zeros(len(x), dtype=int)
    method = SpectralClustering(
        clusters, affinity="nearest_neighbors", n_neighbors=min(neighbours, len(x)), eigen_solver="arpack",
        random_state=int(rng.integers(2**31)),
    )  # fmt: skip
    with warnings.catch_warnings():
        # a graph in several pieces is what clearly separated components look like, not a fault
        warnings.filterwarnings("ignore", "Graph is not fully connected")
        labels = method.fit_predict(x)
    counts = np.bincount(labels, minlength=clusters)
    rank = np.argsort(np.argsort(-counts, kind="stable"), kind="stable")
    ordered: Array = rank[labels]
    return ordered


def fit_mixture(spec: Mixture, train: Array, valid: Array, bench: Workbench, estimate: Estimate | None = None) -> Fit:
    """Fit one component a cluster; `estimate` gives log Z where a component does not know it (q0 samples if None)."""
    # not named by the model: all mixtures of one cell share their clusters, as in the paper's figure
    rng = rng_for("clusters", bench.dataset, bench.seed)
    labels = spectral_clusters(train, spec.clusters, spec.neighbours, rng)
    component: Trainable = instantiate(spec.component, "model.component", "model.component")
    parts, fits = [], []
    for i in range(spec.clusters):
        rows = train[labels == i]
        bench.log.info("mixture: component %d of %d, %d rows", i + 1, spec.clusters, len(rows))
        whitening, fit = _fit_component(component, rows, spec.valid_fraction, _own_bench(bench, i))
        log_z = LogZ() if fit.model.normalised else (estimate or log_z_from_q0)(
            fit.model, spec.log_z_samples, _own_bench(bench, i)
        )  # fmt: skip
        parts.append(Part(len(rows) / len(train), whitening, fit.model, log_z))
        fits.append(fit)
    for i in range(spec.clusters):
        checkpoint = _own_bench(bench, i).checkpoint
        if checkpoint is not None:
            checkpoint.unlink(missing_ok=True)
    return _gather(MixtureModel(tuple(parts), labels), fits, valid)


def _own_bench(bench: Workbench, i: int) -> Workbench:
    """Streams and checkpoint of one component.

    A component's checkpoint stays until the whole mixture is done, so that a resumed run passes quickly over the
    components that were finished.
    """
    checkpoint = bench.checkpoint
    if checkpoint is not None:
        checkpoint = checkpoint.with_name(f"{checkpoint.stem}-component{i}{checkpoint.suffix}")
    return replace(bench, model=f"{bench.model}/component{i}", checkpoint=checkpoint)


def _fit_component(component: Trainable, rows: Array, valid_fraction: float, bench: Workbench) -> tuple[Whitening, Fit]:
    n, d = rows.shape
    held = int(valid_fraction * n)
    if held < 1 or n - held <= d:
        raise DkefError(
            f"{bench.model}: a cluster of {n} rows is too small to fit and validate a model; lower model.clusters"
        )
    whitening = Whitening.fit(rows, rows.mean(axis=0))
    y = whitening.apply(bench.rng("component split").permutation(rows))
    return whitening, component.fit(y[:-held], y[-held:], bench)


def _gather(model: MixtureModel, fits: list[Fit], valid: Array) -> Fit:
    """One outcome of several: the worst status and stop, all traces with the component's number, notes by component."""
    notes: dict[str, float | int | str] = {}
    for i, (part, fit) in enumerate(zip(model.parts, fits, strict=True)):
        own = fit.notes | {"weight": part.weight, "stopped": fit.stopped}
        if not part.model.normalised:
            own |= {"log_z": part.log_z.value, "log_z_stderr": part.log_z.stderr}
            own |= {"log_z_status": part.log_z.status}
            if not math.isnan(part.log_z.bias_bound):
                own |= {"log_z_bias_bound": part.log_z.bias_bound}
        notes |= {f"component{i}.{key}": value for key, value in own.items()}
    if len(valid):
        notes["valid_log_likelihood"] = float(model.log_density(valid).mean())
    return Fit(
        model,
        status="diverged" if any(fit.status == "diverged" for fit in fits) else "ok",
        stopped=max((fit.stopped for fit in fits), key=OUTCOMES.index),
        trace=[{"component": i} | record for i, fit in enumerate(fits) for record in fit.trace],
        notes=notes,
    )


def log_z_from_q0(model: DensityModel, samples: int, bench: Workbench) -> LogZ:
    """log Z of a kernel exponential family from samples of its q0, with its bias bounded (Proposition 1).

    The pilot takes a tenth of the samples, each of the two runs behind the bound a fifth.
    """
    from dkef.config.normaliser import Normaliser
    from dkef.models.kef.density import KefModel
    from dkef.normaliser.estimate import estimate
    from dkef.normaliser.weights import Q0Weights

    if not isinstance(model, KefModel):
        raise DkefError(f"{bench.model}: nothing here knows how to normalise a {type(model).__name__}")
    fifth, tenth = max(samples // 5, 2), max(samples // 10, 1)
    settings = Normaliser(samples=samples, bound_samples=fifth, pilot_samples=tenth, chunk_samples=fifth)
    weights = Q0Weights(model.parameters, bench.dataset, bench.model, bench.seed)
    found = estimate("q0", weights, settings, bench.threads)
    bias = found["log_z_bias_bound"]
    log_z = LogZ(found["log_z"], found["log_z_stderr"], math.nan if bias is None else bias, found["status"])
    bench.log.info("%s: log Z %.5f +- %.1g, bias at most %.1g, %s", bench.model, *log_z)
    return log_z
