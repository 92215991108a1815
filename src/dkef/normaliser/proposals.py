"""The proposals by name: fitted once for a model, kept in a file, turned into weights by any job.

q0         nothing to fit: Appendix D of the paper
mixture    g = eps q0 + (1 - eps) h, with h around the training rows (`mixture`, `cover`)
annealed   chains from that g to p~ (`annealing`)
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dkef.errors import DkefError
from dkef.hdf5 import read_hdf5, write_hdf5
from dkef.models.kef_parameters import KefParameters
from dkef.models.protocol import Array
from dkef.normaliser.annealing import AnnealedWeights, Schedule, tune
from dkef.normaliser.cover import Cover
from dkef.normaliser.cover_fit import fit_cover
from dkef.normaliser.mixture import Mixture, MixtureWeights
from dkef.normaliser.settings import Normaliser
from dkef.normaliser.weights import Q0Weights, Weights
from dkef.provenance import array_digest, config_digest

Name = tuple[str | int, ...]


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
    kind: str, parameters: KefParameters, rows: Array | None, settings: Normaliser, name: Name,
    report: Callable[[str], None] = lambda line: None,
) -> Proposal:  # fmt: skip
    """The proposal of a kind for a model and the rows it was trained on."""
    if kind == "q0":
        return Q0
    if rows is None:
        raise DkefError(f"the proposal {kind} is built around the training rows; name their file with --data")
    if rows.shape[1] != parameters.z.shape[1]:
        raise DkefError(f"the training rows have {rows.shape[1]} columns, the model {parameters.z.shape[1]}")
    mixture = fit_cover(parameters, rows, settings.cover, name, report)
    cover = mixture.cover
    arrays = {
        "weights": cover.weights, "centres": cover.centres, "shape": cover.shape, "factors": cover.factors,
        "q0_share": np.asarray(mixture.q0_share),
    }  # fmt: skip
    if kind == "annealed":
        schedule = tune(parameters, mixture, settings.annealing, name, report)
        arrays |= {name: np.asarray(value) for name, value in vars(schedule).items()}
    return Proposal(kind, arrays)


def weights_of(proposal: Proposal, parameters: KefParameters, name: Name) -> Weights:
    """The weights of a model under a fitted proposal."""
    if proposal.kind == "q0":
        return Q0Weights(parameters, *name)
    a = proposal.arrays
    cover = Cover(a["weights"], a["centres"], a["shape"], a["factors"])
    mixture = Mixture(parameters.q0, cover, float(a["q0_share"]))
    if proposal.kind == "mixture":
        return MixtureWeights(parameters, mixture, *name)
    schedule = Schedule(a["b"], a["step"], a["metric"], int(a["steps"]), int(a["leapfrog"]))
    return AnnealedWeights(parameters, mixture, schedule, *name)


def write_proposal(path: Path, proposal: Proposal) -> None:
    write_hdf5(
        path, {f"arrays/{name}": array for name, array in sorted(proposal.arrays.items())}, {"kind": proposal.kind}
    )


def read_proposal(path: Path) -> Proposal:
    contents = read_hdf5(path, "a proposal of the normalise stage", "delete it and run the pilot again")
    return Proposal(str(contents.record.get("kind")), contents.below("arrays"))
