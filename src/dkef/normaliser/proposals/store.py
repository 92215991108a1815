"""The proposals by name: fitted once for a model, kept in a file, turned into weights by any job.

q0         nothing to fit: Appendix D of the paper
mixture    g = eps q0 + (1 - eps) h, with h around the training rows (`defensive_mixture`, `normals`)
annealed   chains from that g to p~ (`annealing`)
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from dkef.config.code import sources_digest
from dkef.config.schema.normaliser import Normaliser
from dkef.config.typed import plain
from dkef.core.arrays import Array
from dkef.core.errors import DkefError, one_line
from dkef.core.hdf5 import Contents, read_hdf5, write_hdf5
from dkef.core.provenance import array_digest, config_digest
from dkef.normaliser.integrand import Integrand
from dkef.normaliser.proposals.annealing import AnnealedWeights, Schedule, tune
from dkef.normaliser.proposals.checks import fault_of
from dkef.normaliser.proposals.defensive_mixture import DefensiveMixture, MixtureWeights
from dkef.normaliser.proposals.fit import fit_defensive_mixture
from dkef.normaliser.proposals.normals import CutNormals
from dkef.normaliser.proposals.student import StudentT
from dkef.normaliser.weights import Weights

WHAT, REMEDY = "a proposal of the normalise stage", "delete it and run the pilot again"
Name = tuple[str | int, ...]
BEHIND_PARTS = "dkef.normaliser.chunks"  # an edit of the code behind it, and every finished part is to be made again


@dataclass(frozen=True)
class Proposal:
    """A fitted proposal as plain arrays."""

    kind: str
    arrays: dict[str, Array]

    @property
    def digest(self) -> str:
        """Equal for equal proposals; chunks of different ones are never merged."""
        names = sorted(self.arrays)
        return config_digest(" ".join([self.kind, *names, array_digest(*(self.arrays[name] for name in names))]))


Q0 = Proposal("q0", {})


def fit_proposal(
    kind: str, integrand: Integrand, rows: Array | None, settings: Normaliser, name: Name,
    report: Callable[[str], None] = lambda line: None, mixture: Proposal | None = None,
) -> Proposal:  # fmt: skip
    """The proposal of a kind for a model and the rows it was trained on.

    `mixture` is the one for these same settings, where it is known already: annealing starts from it.
    """
    if kind == "q0":
        return Q0
    if kind == "annealed" and mixture is not None:
        return _annealed(mixture, integrand, settings, name, report)
    if rows is None:
        raise DkefError(f"the proposal {kind} is built around the training rows; name their file with --data")
    if rows.shape[1] != integrand.dimension:
        raise DkefError(f"the training rows have {rows.shape[1]} columns, the model {integrand.dimension}")
    fitted = fit_defensive_mixture(integrand, rows, settings.defensive_mixture, name, report)
    h = fitted.normals
    arrays = {
        "weights": h.weights, "centres": h.centres, "shape": h.shape, "factors": h.factors,
        "q0_share": np.asarray(fitted.q0_share),
    }  # fmt: skip
    if isinstance(fitted.q0, StudentT):  # chunks are drawn without the rows
        arrays |= {"wide_centre": fitted.q0.centre, "wide_factor": fitted.q0.factor}
    proposal = Proposal("mixture", arrays)
    return proposal if kind == "mixture" else _annealed(proposal, integrand, settings, name, report)


def _annealed(
    mixture: Proposal, integrand: Integrand, settings: Normaliser, name: Name, report: Callable[[str], None]
) -> Proposal:
    schedule = tune(integrand, _mixture(mixture.arrays, integrand), settings.annealing, name, report)
    return Proposal("annealed", mixture.arrays | {key: np.asarray(value) for key, value in vars(schedule).items()})


def mixture_of(proposal: Proposal, integrand: Integrand) -> DefensiveMixture:
    """g of a fitted proposal, which is not q0."""
    return _mixture(proposal.arrays, integrand)


def _mixture(arrays: Mapping[str, Array], integrand: Integrand) -> DefensiveMixture:
    h = CutNormals(arrays["weights"], arrays["centres"], arrays["shape"], arrays["factors"])
    q0 = integrand.q0 if integrand.q0 is not None else StudentT(arrays["wide_centre"], arrays["wide_factor"])
    return DefensiveMixture(q0, h, float(arrays["q0_share"]))


def kept_proposal(
    file: Path, kind: str, integrand: Integrand, rows: Array | None, settings: Normaliser, name: Name,
    report: Callable[[str], None] = lambda line: None, mixture: Proposal | None = None,
) -> Proposal:  # fmt: skip
    """The proposal in a file if it is the one asked for; else it is fitted and written there."""
    reads: dict[str, list[Any]] = {
        "mixture": [settings.defensive_mixture],
        "annealed": [settings.defensive_mixture, settings.annealing],
    }
    wanted = {
        "kind": kind, "name": list(name), "parameters": integrand.digest,
        "settings": [plain(section) for section in reads.get(kind, [])], "code": sources_digest(BEHIND_PARTS),
    } | ({} if rows is None else {"rows": array_digest(rows)})  # fmt: skip
    if file.exists() and wanted.items() <= _contents(file).record.items():
        return read_proposal(file, integrand)
    proposal = fit_proposal(kind, integrand, rows, settings, name, report, mixture)
    write_proposal(file, proposal, wanted)
    return proposal


def weights_of(proposal: Proposal, integrand: Integrand, name: Name) -> Weights:
    """The weights of a model under a fitted proposal."""
    if proposal.kind == "q0":
        return integrand.q0_weights(*name)
    a = proposal.arrays
    mixture = _mixture(a, integrand)
    if proposal.kind == "mixture":
        return MixtureWeights(integrand, mixture, *name)
    schedule = Schedule(a["b"], a["step"], a["metric"], int(a["steps"]), int(a["leapfrog"]))
    return AnnealedWeights(integrand, mixture, schedule, *name)


def write_proposal(path: Path, proposal: Proposal, record: Mapping[str, Any] = MappingProxyType({})) -> None:
    """Write a proposal; the record says what it was fitted for."""
    write_hdf5(
        path,
        {f"arrays/{name}": array for name, array in sorted(proposal.arrays.items())},
        dict(record) | {"kind": proposal.kind},
    )


def read_proposal(path: Path, integrand: Integrand) -> Proposal:
    """The proposal in a file, if a model of this dimension can be sampled by it."""
    contents = _contents(path)
    proposal = Proposal(one_line(contents.record.get("kind")), contents.below("arrays"))
    if (fault := fault_of(proposal.kind, proposal.arrays, integrand.dimension, wide=integrand.q0 is None)) is not None:
        raise DkefError(f"{path} is not {WHAT} ({fault}); {REMEDY}")
    return proposal


def _contents(path: Path) -> Contents:
    return read_hdf5(path, WHAT, REMEDY)
