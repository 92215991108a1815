"""Fitting a mixture on clusters: cluster the rows, whiten and fit each cluster alone, weight by counts."""

import math
import warnings
from dataclasses import replace

import numpy as np

from dkef.config.typed import instantiate
from dkef.core.arrays import Array
from dkef.core.errors import DkefError
from dkef.core.streams import rng_for
from dkef.data.whitening import Whitening
from dkef.models.mixture.density import ComponentNormaliser, LogZ, MixtureModel, Part
from dkef.models.mixture.spec import Mixture
from dkef.models.protocol import DensityModel, Fit, FitContext, Trainable, fit_model

OUTCOMES = ("closed form", "converged", "max_iterations", "time_budget", "diverged")  # the last of several is reported


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


def fit_mixture(spec: Mixture, train: Array, valid: Array, context: FitContext) -> Fit:
    """Fit one component a cluster, and find log Z where a component does not know it."""
    # not named by the model: all mixtures of one cell share their clusters, as in the paper's figure
    rng = rng_for("clusters", context.dataset, context.seed)
    labels = spectral_clusters(train, spec.clusters, spec.neighbours, rng)
    component: Trainable = instantiate(spec.component, "model.component", "model.component")
    parts, fits = [], []
    for i in range(spec.clusters):
        rows, own = train[labels == i], _own_context(context, i)
        context.log.info("mixture: component %d of %d, %d rows", i + 1, spec.clusters, len(rows))
        held = _held_out(rows, spec.valid_fraction, own)
        whitening = Whitening.fit(rows, rows.mean(axis=0))
        y = whitening.apply(own.rng("component split").permutation(rows))
        fit = fit_model(component, y[:-held], y[-held:], own)
        log_z = LogZ() if fit.model.normalised else _log_z(spec, fit.model, y[:-held], own)
        parts.append(Part(len(rows) / len(train), whitening, fit.model, log_z))
        fits.append(fit)
    for i in range(spec.clusters):
        checkpoint = _own_context(context, i).checkpoint
        if checkpoint is not None:
            checkpoint.unlink(missing_ok=True)
    return _gather(MixtureModel(tuple(parts), labels), fits, valid)


def _log_z(spec: Mixture, model: DensityModel, train: Array, context: FitContext) -> LogZ:
    """log Z of an unnormalised component, by the class that the specification names."""
    assert spec.log_z is not None, "the specification refuses it"
    normaliser: ComponentNormaliser = instantiate(spec.log_z, "model.log_z", "model.log_z")
    log_z = normaliser.log_z(model, train, context)
    context.log.info("%s: log Z %.5f +- %.1g, bias at most %.1g, %s", context.model, *log_z)
    return log_z


def _own_context(context: FitContext, i: int) -> FitContext:
    """Streams and checkpoint of one component.

    A component's checkpoint stays until the whole mixture is done, so that a resumed run passes quickly over the
    components that were finished.
    """
    checkpoint = context.checkpoint
    if checkpoint is not None:
        checkpoint = checkpoint.with_name(f"{checkpoint.stem}-component{i}{checkpoint.suffix}")
    return replace(context, model=f"{context.model}/component{i}", checkpoint=checkpoint)


def _held_out(rows: Array, valid_fraction: float, context: FitContext) -> int:
    """How many rows of a cluster validate its component."""
    n, d = rows.shape
    held = int(valid_fraction * n)
    if held < 1 or n - held <= d:
        raise DkefError(
            f"{context.model}: a cluster of {n} rows is too small to fit and validate a model; lower model.clusters"
        )
    return held


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
