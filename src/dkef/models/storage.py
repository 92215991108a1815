"""Model files: HDF5 with arrays and JSON settings; loading one never runs anything it contains."""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dkef.config.typed import of_record
from dkef.core.arrays import Array
from dkef.core.errors import DkefError, one_line
from dkef.core.files import read_json
from dkef.core.hdf5 import Contents, read_hdf5, write_hdf5
from dkef.core.provenance import code_version, library_versions
from dkef.core.trust import OWN_PACKAGE, belongs_to_user
from dkef.models.protocol import DensityModel, Fit

TRUSTED_PACKAGES = (OWN_PACKAGE,)
REMEDY = "delete it and train again"
LARGEST_LOG_Z = 1e100
LIBRARY = "library"  # what dkef.fit keeps beside a model: how to get from the units of its rows to the model's
# What a class may stumble over when settings and arrays are not its own.
MISFIT = (KeyError, IndexError, TypeError, ValueError, AttributeError, ArithmeticError)


@dataclass(frozen=True)
class TrainedCell:
    """What the train stage was given."""

    dataset: str
    model: str
    of: str  # itself, or the model whose variant it is
    seed: int
    spec: dict[str, Any]
    threads: int


@dataclass(frozen=True)
class Provenance:
    """What produced a model."""

    config: TrainedCell
    config_digest: str
    data_digest: str
    code_version: str
    libraries: dict[str, str]


@dataclass(frozen=True)
class Training:
    """How a model file of the workflow came about."""

    status: str
    stopped: str
    provenance: Provenance


def write_model(path: Path, fit: Fit, provenance: dict[str, Any], beside: Mapping[str, Array] | None = None) -> None:
    """Write a fitted model with its status and what produced it; `beside` are arrays of the library (`LIBRARY`)."""
    model = fit.model
    record = {
        "class": f"{type(model).__module__}.{type(model).__qualname__}",
        "settings": model.settings(),
        "normalised": model.normalised,
        "status": fit.status,
        "stopped": fit.stopped,
        "notes": fit.notes,
        "provenance": provenance | {"code_version": code_version(), "libraries": library_versions()},
    }
    arrays = {f"arrays/{name}": np.asarray(array) for name, array in sorted(model.arrays().items())}
    arrays |= {f"{LIBRARY}/{name}": array for name, array in (beside or {}).items()}
    write_hdf5(path, arrays, record)


def read_record(path: Path) -> dict[str, Any]:
    """Class, settings, status and provenance of a model file, without its arrays."""
    return _read(path, arrays=False).record


def read_training(path: Path) -> Training:
    """How the model in a file was trained; a sentence for one that the workflow has not made."""
    return of_record(Training, read_record(path), path, REMEDY)


def load_model(path: str | Path, trusted: tuple[str, ...] = ()) -> DensityModel:
    """Read any trained model.

    Only classes of this package are restored; name further packages in `trusted` for models of your own. Where a
    log_z.json lies beside the file, the model knows its normaliser.
    """
    path = Path(path)
    model, contents = restore_with_contents(path, trusted)
    if contents.below(LIBRARY):
        raise DkefError(f"{path} was saved by dkef.fit, with the units of its rows; read it with dkef.load")
    log_z = path.with_name("log_z.json")
    if not model.normalised and log_z.exists():
        model.log_z = read_log_z(log_z)
    return model


def restore_with_contents(path: Path, trusted: tuple[str, ...]) -> tuple[DensityModel, Contents]:
    """The model in a file, and everything else that the file holds."""
    contents = _read(path)
    kind = _class_of(path, one_line(contents.record["class"]), TRUSTED_PACKAGES + trusted)
    try:
        model = kind.restore(contents.record["settings"], contents.below("arrays"))
    except MISFIT as error:
        reason = f"{type(error).__name__}: {one_line(error)}"
        raise DkefError(f"{path} does not hold what a {kind.__name__} consists of ({reason}); {REMEDY}") from None
    model.normalised = (
        contents.record.get("normalised", kind.normalised) is not False
    )  # older files leave it to a class
    return model, contents


def load_own_model(path: Path) -> DensityModel:
    """Read a model in a workflow's job, and no file beside it, of which the workflow would not know.

    Classes in modules of the user's own are restored too, see dkef.core.trust.
    """
    package = str(read_record(path)["class"]).partition(".")[0]
    return restore_with_contents(path, trusted=(package,) if belongs_to_user(package) else ())[0]


def read_log_z(path: Path) -> float:
    """log Z from the record of the normalise stage."""
    found = read_json(path).get("log_z")
    if isinstance(found, bool) or not isinstance(found, int | float) or not abs(found) < LARGEST_LOG_Z:
        raise DkefError(
            f"{path} has the log_z {one_line(repr(found))}, which is none; delete it and run normalise again"
        )
    return float(found)


def _read(path: Path, arrays: bool = True) -> Contents:
    contents = read_hdf5(path, "a model file", REMEDY, arrays)
    keys = ("class", "settings", "status", "stopped", "provenance")
    if missing := [key for key in keys if key not in contents.record]:
        raise DkefError(f"{path} is not a model file (its record has no {missing[0]}); {REMEDY}")
    return contents


def _class_of(path: Path, name: str, trusted: tuple[str, ...]) -> type[DensityModel]:
    package = name.partition(".")[0]
    if package not in trusted:
        raise DkefError(
            f"{path} names the class {name}, which is outside the trusted packages; if you know the "
            f"file, load it with load_model(path, trusted=({package!r},))"
        )
    return density_class(name, path)


# Where the classes of files written before each family had a folder are now.
MOVED = {
    "dkef.models.gaussian.GaussianModel": "dkef.models.gaussian.density.GaussianModel",
    "dkef.models.flows.FlowModel": "dkef.models.flows.density.FlowModel",
    "dkef.models.flows.model.FlowModel": "dkef.models.flows.density.FlowModel",
    "dkef.models.kef.KefModel": "dkef.models.kef.density.KefModel",
    "dkef.models.kcef.KcefModel": "dkef.models.kcef.density.KcefModel",
    "dkef.models.mixture.MixtureModel": "dkef.models.mixture.density.MixtureModel",
}


def density_class(name: str, who: object) -> type[DensityModel]:
    """The class of a name in a file, once its package is known to be trusted."""
    module, _, attribute = MOVED.get(name, name).rpartition(".")
    try:
        kind = getattr(importlib.import_module(module), attribute, None)
    except (ImportError, ValueError, TypeError) as error:
        raise DkefError(f"{who} names the class {name}, which cannot be imported ({one_line(error)})") from None
    if not (isinstance(kind, type) and issubclass(kind, DensityModel)):
        raise DkefError(f"{who} names {name}, which is not a density model of this version of dkef")
    return kind
