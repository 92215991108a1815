"""dkef.fit: one array in, a density in its units out."""

import logging
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dkef.config.compose import compose_cell
from dkef.config.files import check_choice
from dkef.config.specification import no_log_z
from dkef.config.typed import instantiate
from dkef.core.arrays import Array
from dkef.core.errors import DkefError, one_line
from dkef.core.streams import rng_for
from dkef.data.whitening import Whitening
from dkef.library.density import FittedDensity
from dkef.library.normalise import PartLogZ, log_z_of, require_samples
from dkef.library.parts import separate_parts
from dkef.library.progress import display
from dkef.library.quiet import computing
from dkef.library.rows import RowsError, as_rows, column_names, require_fittable, require_whole
from dkef.models.gaussian.density import GaussianModel
from dkef.models.protocol import FitContext, Trainable, fit_model

log = logging.getLogger("dkef.fit")

WHO = "dkef.fit"
TRAINED = (
    "dkef.models.kef.",
    "dkef.models.flows.",
    "dkef.models.mixture.",
    "dkef.models.energy_net.",
)  # with TensorFlow
CHOICES = ("protocol=benchmark", "fidelity=recommended")
VALID_SHARE, MOST_VALID = 10, 1000  # one row in ten stops training early, at most so many
# A fit in a notebook should end within a minute on 2,000 rows of two columns. The paper's runs have the values of
# config/model instead, which may be passed: validation_interval=1, max_iterations=10_000.
QUICK: dict[str, dict[str, Any]] = {
    "dkef.models.kef.spec.KernelExponentialFamily": {"validation_interval": 10, "max_iterations": 1000},
}
ROWS_PER_INDUCING_POINT = 3  # at the least, so that small arrays have fewer inducing points than config/model
OF_PARTS = "mixture_dkef_g15"  # for rows in separate parts
LEAST_BEHIND = 3.0  # standard errors by which a fit has to be worse than a normal to be called so
LOG_Z_SAMPLES = 4_000_000  # evaluations of the density behind log Z beyond two columns, at most


def fit(
    x: Any, model: str | Trainable | None = None, *, seed: int = 0, log_z_samples: int = LOG_Z_SAMPLES,
    threads: int = 1, checkpoint: str | Path | None = None, progress: bool | None = None, **settings: Any,
) -> FittedDensity:  # fmt: skip
    """Fit a density to the rows of x [n, d]: an array, a list of rows or a data frame.

    model: a name of config/model ("dkef", "maf", "made", "real_nvp", "gaussian", "kcef", "energy_net", ...) or a
    specification of one's own. settings: keys of its specification, such as max_iterations=500 or width=50. None is
    "dkef", unless the rows fall into separate parts, which score matching cannot weigh: then it is a mixture with one
    "dkef_g15" a part, to which the settings go.

    One row in ten is held out for early stopping. Rows are whitened for the model; what the density says is in the
    units of x. Kernel families and energy networks are not normalised: their log Z is found by quadrature for one and
    two columns, by sampling with at most log_z_samples evaluations for more (0 for none, if score and sample are
    enough; a mixture needs those of its components all the same). `fit(...).log_z` has its interval and says whether
    to trust it.

    Equal rows, settings, seed and threads give equal fits. threads binds TensorFlow only where it is not in use yet.
    With a checkpoint file, a killed fit continues where it was; the file goes when the fit is done. progress=None shows
    a bar on a terminal and in a notebook that has ipywidgets; log lines go to the logger "dkef.fit".
    """
    rows = as_rows(x, WHO)
    names = column_names(x, rows.shape[1])
    require_fittable(rows, names, WHO)
    require_samples(log_z_samples, WHO)
    require_whole(WHO, "seed", seed, 0)
    require_whole(WHO, "threads", threads, 1)
    whitening = _whitening(rows)
    valid, train = _split(whitening.apply(rows), seed)
    n = len(train)
    if model is None:
        model, settings, n = _chosen(train, settings)
    spec, name = _specification(model, settings, n, log_z_samples or LOG_Z_SAMPLES)
    place = Path(checkpoint) if checkpoint is not None else None
    with computing(threads, _needs_tensorflow(spec)), display(progress) as shown:
        context = FitContext("x", name, seed, place, threads, log, shown.watch)
        fitted = fit_model(spec, train, valid, context)
        shown.say("log Z")
        log_z = log_z_of(fitted.model, train, context, log_z_samples, no_log_z(spec))
    if place is not None:
        place.unlink(missing_ok=True)
    _warn(name, fitted.status, "ok" if log_z_samples == 0 else log_z.status)
    if log_z.value is not None:
        warn_if_worse_than_normal(name, fitted.model.log_density(valid) - log_z.value, train, valid)
    return FittedDensity(
        fitted.model, whitening, log_z, name, names, seed, fitted.status, fitted.stopped, fitted.notes, fitted.trace
    )


def _warn(name: str, status: str, log_z_status: str) -> None:
    if status != "ok":
        log.warning("the fit of %s has %s; the density is the last good one", name, status)
    if log_z_status != "ok":
        log.warning("log Z of %s is %s", name, log_z_status)


def warn_if_worse_than_normal(name: str, log_p: Array, train: Array, valid: Array) -> None:
    """Say so where held-out rows [n, d] are less likely, log_p being [n], than under a normal fitted to the others.

    Score matching compares log densities where there are rows, never across the gaps between them: how mass is shared
    among separated parts, and what lies in between, it does not see. Likelihood does, and this is the cheapest rival.
    """
    try:
        log_normal = GaussianModel.fit(train).log_density(valid)
    except DkefError:  # too few rows for a covariance
        return
    behind = log_normal - log_p
    if behind.mean() > LEAST_BEHIND * max(behind.std() / math.sqrt(len(valid)), np.finfo(float).eps):
        log.warning(
            "%s is worse on held-out rows than a normal distribution (mean log density %.3g against %.3g): are there "
            'separated parts, which score matching cannot weigh? Try model="mixture_dkef_g15" or "maf"',
            name, log_p.mean(), log_normal.mean(),
        )  # fmt: skip


def _whitening(rows: Array) -> Whitening:
    """By all rows, those for early stopping too, so that fits to the same x under several seeds can be compared."""
    try:
        return Whitening.of_any_scale(rows)
    except DkefError:
        raise RowsError(f"{WHO}: the {rows.shape[1]} columns are linearly dependent; drop a column") from None


def _split(rows: Array, seed: int) -> tuple[Array, Array]:
    """Rows for early stopping, and all others. No test rows: those are the caller's."""
    order = rng_for("split", WHO, seed).permutation(len(rows))
    held = min(max(len(rows) // VALID_SHARE, 1), MOST_VALID)
    return rows[order[:held]], rows[order[held:]]


def _chosen(train: Array, settings: dict[str, Any]) -> tuple[str, dict[str, Any], int]:
    """The model for somebody who names none, its settings, and to how many rows it is fitted, or a component of it."""
    parts = separate_parts(train)
    if len(parts) == 1:
        return "dkef", settings, len(train)
    log.info("the rows fall into %d separate parts: %s, one component each", len(parts), OF_PARTS)
    return OF_PARTS, {"clusters": len(parts), "component": settings}, min(parts)


def _specification(model: str | Trainable, settings: Mapping[str, Any], n: int, samples: int) -> tuple[Trainable, str]:
    """What is fitted to n rows, or each component of it, and its name; samples: for log Z of such a component."""
    if not isinstance(model, str):
        if isinstance(model, type):
            raise DkefError(f"{WHO}: model is the class {model.__name__}; pass an instance, {model.__name__}()")
        if not hasattr(model, "fit"):
            raise DkefError(f"{WHO}: model is {one_line(repr(model))}; allowed is a name or a specification with `fit`")
        if settings:
            raise DkefError(f"{WHO}: {', '.join(settings)}: set them in the specification that is passed as model")
        return model, type(model).__name__
    check_choice("model", model, WHO)
    values = dict(compose_cell((f"model={model}", *CHOICES)).model)
    values = _quick(values, n, samples)
    given = {key: _plain(value) for key, value in settings.items()}
    spec: Trainable = instantiate(_merged(values, given), f"{WHO}(model={model!r})", "")
    return spec, model


def _quick(values: Mapping[str, Any], n: int, samples: int) -> dict[str, Any]:
    """A section, and that of components within it, with the limits of the library for n rows."""
    quick = {**values, **QUICK.get(values["_target_"], {})}
    if "inducing_points" in quick:
        quick["inducing_points"] = min(quick["inducing_points"], max(n // ROWS_PER_INDUCING_POINT, 1))
    if "component" in quick:
        quick["component"] = _quick(quick["component"], n, samples)
        quick["log_z"] = {"_target_": f"{PartLogZ.__module__}.{PartLogZ.__name__}", "samples": samples}
    return quick


def _merged(values: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Given keys before others; of a section within, such as the component of a mixture, only those that it names."""
    sections = [key for key in given if all(isinstance(part.get(key), Mapping) for part in (values, given))]
    return {**values, **given, **{key: _merged(values[key], given[key]) for key in sections}}


def _plain(value: Any) -> Any:
    """Numbers and arrays of NumPy as those of Python."""
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else value


def _needs_tensorflow(spec: Trainable) -> bool:
    """Whether TensorFlow should be started before the fit; models of others start it themselves if they need it."""
    return type(spec).__module__.startswith(TRAINED)
