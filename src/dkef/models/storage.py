"""Model files: HDF5 with arrays and JSON settings; loading one never runs anything it contains."""

import importlib
import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from dkef.errors import DkefError
from dkef.files import whole_file
from dkef.models.protocol import DensityModel, Fit
from dkef.provenance import code_version, library_versions

TRUSTED_PACKAGES = ("dkef",)


def write_model(path: Path, fit: Fit, provenance: dict[str, Any]) -> None:
    """Write a fitted model with its status and what produced it."""
    model = fit.model
    record = {
        "class": f"{type(model).__module__}.{type(model).__qualname__}",
        "settings": model.settings(),
        "status": fit.status,
        "stopped": fit.stopped,
        "notes": fit.notes,
        "provenance": provenance | {"code_version": code_version(), "libraries": library_versions()},
    }
    with whole_file(path) as scratch, h5py.File(scratch, "w") as file:
        for name, array in sorted(model.arrays().items()):
            file.create_dataset(f"arrays/{name}", data=np.asarray(array), track_times=False)
        file.attrs["record"] = json.dumps(record, sort_keys=True)


def read_record(path: Path) -> dict[str, Any]:
    """Class, settings, status and provenance of a model file, without its arrays."""
    try:
        with h5py.File(path, "r") as file:
            record: dict[str, Any] = json.loads(file.attrs["record"])
    except FileNotFoundError:
        raise DkefError(f"{path} does not exist; `snakemake {path}` makes it") from None
    except (OSError, KeyError, ValueError) as error:
        raise DkefError(f"{path} is not a model file ({error}); delete it and train again") from None
    return record


def load_model(path: str | Path, trusted: tuple[str, ...] = ()) -> DensityModel:
    """Read any trained model.

    Only classes of this package are restored; name further packages in `trusted` for models of your own. Where a
    log_z.json lies beside the file, the model knows its normaliser.
    """
    path = Path(path)
    record = read_record(path)
    module, _, name = str(record["class"]).rpartition(".")
    if module.partition(".")[0] not in TRUSTED_PACKAGES + trusted:
        raise DkefError(
            f"{path} names the class {record['class']}, which is outside the trusted packages; if you know the "
            f"file, load it with load_model(path, trusted=({module.partition('.')[0]!r},))"
        )
    kind = getattr(importlib.import_module(module), name, None)
    if not (isinstance(kind, type) and issubclass(kind, DensityModel)):
        raise DkefError(f"{path} names {record['class']}, which is not a density model of this version of dkef")
    with h5py.File(path, "r") as file:
        arrays = {key: item[()] for key, item in file.get("arrays", {}).items()}
    model = kind.restore(record["settings"], arrays)
    log_z = path.with_name("log_z.json")
    if not model.normalised and log_z.exists():
        model.log_z = float(json.loads(log_z.read_text())["log_z"])
    return model
