"""Target `hdf5`: models, splits, evaluations, grids, proposals and checkpoints, with damaged bytes or forged parts."""

import functools
import json
import logging
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from hypothesis import strategies as st

from dkef.config.schema.metrics import Comparison
from dkef.core.arrays import Array
from dkef.core.hdf5 import USER_BLOCK, read_hdf5, reseal, write_hdf5
from dkef.core.streams import rng_for
from dkef.data.splits import read_provenance, read_splits, write_splits
from dkef.metrics.case import Case
from dkef.metrics.grid import write_grid
from dkef.metrics.registry import outcomes
from dkef.metrics.setup import ComparisonSetup
from dkef.models.evaluation import EvaluatedModel, read_evaluation, write_evaluation
from dkef.models.gaussian.density import GaussianModel
from dkef.models.kef.density import KefModel
from dkef.models.protocol import Fit
from dkef.models.storage import load_model, load_own_model, write_model
from dkef.normaliser.integrand import Integrand, KernelIntegrand, integrand_of
from dkef.normaliser.proposals.store import Proposal, read_proposal, weights_of, write_proposal
from dkef.results.read import read_grid, read_split
from dkef.training.checkpoint import read_progress, write_progress
from dkef.training.progress import Progress
from tests.data.test_splits import made_up
from tests.fuzz.mutations import BINARY, FRACTION, changed_tree, edited
from tests.models.flow_examples import example as flow_example
from tests.models.test_kcef import HYPER, STD, Conditional, KcefModel, curve
from tests.models.test_mixture import two_gaussians
from tests.normaliser.examples import random_kef
from tests.normaliser.test_integrand import RoundModel

POINTS = 8
MODEL = random_kef(m=5, widths=(3, 3))
MIXTURE: dict[str, Array] = {
    "weights": np.array([0.2, 0.3, 0.5]), "centres": np.arange(6.0).reshape(3, 2), "shape": np.array([0, 1, 1]),
    "factors": np.array([[[1.0, 0.0], [0.5, 2.0]], [[0.5, 0.0], [0.0, 0.5]]]), "q0_share": np.asarray(0.1),
}  # fmt: skip
SCHEDULE: dict[str, Array] = {
    "b": np.array([0.0, 0.3, 1.0]), "step": np.full(3, 0.2), "metric": np.array([[1.0, 0.0], [0.5, 1.0]]),
    "steps": np.asarray(1), "leapfrog": np.asarray(2),
}  # fmt: skip
WIDE: dict[str, Array] = {  # in place of the q0 that a model does not have
    "wide_centre": np.array([0.5, -1.0]), "wide_factor": np.array([[2.0, 0.0], [0.5, 3.0]]),
}  # fmt: skip
LOG = logging.getLogger("dkef.fuzz")


def _write_seeds(folder: Path) -> None:
    x = rng_for("fuzz", "hdf5").normal(size=(POINTS, 2))
    rows = curve(20)
    models = {
        "gaussian": GaussianModel.fit(x),
        "kef": KefModel(MODEL),
        "maf": flow_example("maf", 2),
        "nvp": flow_example("real_nvp", 3),
        "mixture": two_gaussians(),
        "kcef": KcefModel(tuple(Conditional.fit(rows[:, :i], rows[:, i], HYPER, STD, 1e-6) for i in range(2))),
    }
    for name, model in models.items():
        write_model(folder / f"model-{name}.h5", Fit(model), {"config_digest": "abc", "config": {"seed": 0}})
    write_splits(folder / "splits.h5", made_up(), {"config": {"seed": 0}})
    evaluated = {"log_density": x[:, 0], "score": x, "curvature": x, "true_score": x}
    write_evaluation(
        folder / "evaluation.h5",
        evaluated,
        {"status": "ok", "normalised": True, "log_z_status": "ok", "config_digest": "abc"},
    )
    facts = {"dataset": "ring", "model": "gaussian", "seed": 0, "log_z": 0.1, "masses": {"a": 0.5}}
    write_grid(folder / "grid.h5", {"axis": np.arange(5.0), "log_density": np.ones((5, 5))}, facts)
    for kind, arrays in (("q0", {}), ("mixture", MIXTURE), ("annealed", MIXTURE | SCHEDULE)):
        write_proposal(folder / f"proposal-{kind}.h5", Proposal(kind, dict(arrays)))
        if arrays:
            write_proposal(folder / f"wide-{kind}.h5", Proposal(kind, arrays | WIDE))
    start = Progress.start(x[:, 0], 200)
    write_progress(folder / "checkpoint.h5", replace(start, trace=[{"loss": 1.0}] * 3), "fuzz")
    write_progress(folder / "validated.h5", start.validated(-1.0).recorded({"iteration": 1, "loss": 0.5}), "fuzz")


@functools.cache
def _bank() -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as name:
        _write_seeds(Path(name))
        return {path.stem: path.read_bytes() for path in sorted(Path(name).iterdir())}


def _changed_array(array: Array, at: float, action: int) -> Array | None:
    """Another shape, type or value; None for no array at all."""
    if not array.size or array.dtype.kind not in "biuf":
        return array
    array = np.atleast_1d(array)
    flat = array.reshape(-1)
    with np.errstate(all="ignore"):
        return _variants(array, flat, at)[action]


def _variants(array: Array, flat: Array, at: float) -> list[Array | None]:
    return [
        array.T, flat, array[None], flat[:1].reshape(()), array[:0], array.astype(np.float16), array.astype("S4"),
        np.repeat(array[None], 3, axis=0), np.where(np.arange(flat.size) == int(at * flat.size), np.nan, flat),
        np.where(np.arange(flat.size) == int(at * flat.size), -flat, flat).reshape(array.shape),
        np.zeros(array.shape), array * 1e300, array.astype(np.int64), None,
    ]  # fmt: skip


@st.composite
def forged(draw: Any, whole: bytes) -> bytes:
    """A well-formed file with a right digest whose arrays and record are not what a stage would write."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "file.h5"
        path.write_bytes(whole)
        contents = read_hdf5(path, "a seed", "")
        arrays: dict[str, Array | None] = dict(contents.arrays)
        for _ in range(draw(st.integers(0, 2))):
            if not arrays:
                break
            victim = draw(st.sampled_from(sorted(arrays)))
            if (array := arrays[victim]) is not None:
                arrays[victim] = _changed_array(array, draw(FRACTION), draw(st.integers(0, 13)))
        record = draw(changed_tree(contents.record)) if draw(st.booleans()) else contents.record
        kept: Mapping[str, Array] = {key: array for key, array in arrays.items() if array is not None}
        write_hdf5(path, kept, record)
        if draw(st.integers(0, 9)) == 0:
            _add_something_strange(path, draw(st.integers(0, 6)))
        return path.read_bytes()


def _add_something_strange(path: Path, what: int) -> None:
    with h5py.File(path, "r+") as file:
        place = file.get("arrays", file)
        if what == 0:
            place["linked"] = h5py.ExternalLink("/etc/hostname", "/")
        elif what == 1:
            place["linked"] = h5py.SoftLink("/nowhere")
        elif what == 2:
            place["round"] = place
        elif what == 3:
            place.create_dataset("huge", shape=(1 << 34,), dtype="f8", chunks=(1 << 10,))
        elif what == 4:
            place.create_dataset("text", data=["a", "b"])
        elif what == 5:
            place.create_dataset("outside", shape=(4,), dtype="u1", external=[("/etc/hostname", 0, 4)])
        else:
            del file["record"]
            file["record"] = np.arange(3)
    reseal(path)


def _resealed(data: bytes, whole: bytes) -> bytes:
    """The same bytes under a digest that fits them; `whole` where they are too few for one."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "file.h5"
        path.write_bytes(data)
        try:
            reseal(path)
        except OSError:
            return whole
        return path.read_bytes()


def whole_files() -> list[tuple[str, bytes]]:
    return list(_bank().items())


@st.composite
def cases(draw: Any) -> tuple[str, bytes]:
    bank = _bank()
    kind = draw(st.sampled_from(sorted(bank)))
    whole = bank[kind]
    way = draw(st.integers(0, 9))
    if way < 6:
        return kind, draw(forged(whole))
    if way < 9:  # damage that the digest does not show: HDF5 itself must stand it
        body = draw(edited(whole[USER_BLOCK:], BINARY))
        return kind, _resealed(whole[:USER_BLOCK] + body, whole)
    return kind, draw(edited(whole, BINARY))


@functools.cache
def _setup() -> ComparisonSetup:
    return ComparisonSetup.draw(rng_for("fuzz", "points").normal(size=(POINTS, 2)), "fuzz", 0, Comparison())


def _measure(model: EvaluatedModel) -> None:
    with np.errstate(all="ignore"):
        outcomes(Case("fuzzed", model, model, _setup(), Comparison()))


def _weigh(path: Path, integrand: Integrand) -> None:
    with np.errstate(all="ignore"):
        weights_of(read_proposal(path, integrand), integrand, ("fuzz",)).log_r("z", 0, 4)


def read(kind: str, data: bytes, folder: Path) -> None:
    path = folder / "set" / "model" / "seed0" / "seed0.h5"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    if kind.startswith("model"):
        load_own_model(path)
        load_model(path, trusted=("os",))
    elif kind == "splits":
        read_splits(path)
        read_split(path)
        json.dumps(read_provenance(path))
    elif kind == "evaluation":
        _measure(read_evaluation(path, (POINTS, 2)))
    elif kind.startswith("proposal"):
        _weigh(path, KernelIntegrand(MODEL))
    elif kind.startswith("wide"):
        _weigh(path, integrand_of(RoundModel(), ""))
    elif kind == "grid":
        read_grid(path)
    else:
        read_progress(path, "fuzz", LOG)
