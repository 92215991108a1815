"""What the grid stage finds out about one model by quadrature, as a record beside the grid: quadrature.json."""

from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from dkef.config.typed import of_record
from dkef.core.arrays import Array
from dkef.core.files import read_json, write_json
from dkef.data.synthetic.distributions import Distribution, NormalMixture
from dkef.metrics.pointwise import NotFiniteError
from dkef.metrics.quadrature import HALF_WIDTH, SHELLS, Integral, Quadrature, box_share, integrate
from dkef.models.protocol import DensityModel

TOLERANCE = 1e-3  # nats: an error of log Z beyond this is stated with every likelihood that rests on it
SHARP_REACH = 3.0  # standard deviations around the mean that count as the sharp component


@dataclass(frozen=True)
class Integrals:
    """Integrals of one model with their errors; those of an unknown truth, or of a failed rule, are None."""

    status: str  # ok | untrusted: why | invalid: why
    log_z: float | None = None
    log_z_error: float | None = None
    kl: float | None = None  # KL(p_true || model)
    kl_error: float | None = None
    fisher: float | None = None  # with the factor one half
    fisher_error: float | None = None
    sharp_mass: float | None = None  # share of the mass on the sharp component
    sharp_mass_error: float | None = None
    true_sharp_mass: float | None = None
    reach: float | None = None
    points: int | None = None


def measure(model: DensityModel, truth: Distribution | None) -> Integrals:
    """All integrals of a model of one or two dimensions."""
    try:
        found = integrate(model.log_density, model.dimension, truth, model.score)
        numbers = {
            "log_z": found.log_z,
            "kl": found.kl,
            "fisher": found.fisher,
            "sharp_mass": sharp_mass(model, truth, found.log_z),
        }
    except NotFiniteError as error:
        return Integrals(f"invalid: {error}")
    own = {name: value.value for name, value in numbers.items() if value is not None}
    errors = {f"{name}_error": value.error for name, value in numbers.items() if value is not None}
    share = true_sharp_mass(truth)
    return Integrals(doubt(found), **own, **errors, true_sharp_mass=share, reach=found.reach, points=found.points)


def doubt(found: Quadrature) -> str:
    """ "ok", or what speaks against the integrals."""
    if found.edge:
        return f"untrusted: the density still has mass at {HALF_WIDTH * 2**SHELLS:g}, where the quadrature ends"
    if found.log_z.error > TOLERANCE:
        return f"untrusted: the quadrature of log Z has an error of {found.log_z.error:.2g} nats"
    return "ok"


def sharp_interval(truth: Distribution | None) -> tuple[Array, Array] | None:
    """The narrowest component of a mixture on the line, three standard deviations to each side; None for others."""
    if not (isinstance(truth, NormalMixture) and truth.dimension == 1 and len(set(truth.stds.tolist())) > 1):
        return None
    k = int(np.argmin(truth.stds))
    return truth.means[k] - SHARP_REACH * truth.stds[k], truth.means[k] + SHARP_REACH * truth.stds[k]


def sharp_mass(model: DensityModel, truth: Distribution | None, log_z: Integral) -> Integral | None:
    """Share of a model's mass there."""
    interval = sharp_interval(truth)
    return None if interval is None else box_share(model.log_density, *interval, log_z)


def true_sharp_mass(truth: Distribution | None) -> float | None:
    """Share of the truth's own mass there."""
    interval = sharp_interval(truth)
    if truth is None or interval is None:
        return None
    return box_share(truth.log_density, *interval, Integral(0.0, 0.0)).value


def write_integrals(path: Path, found: Integrals) -> None:
    write_json(path, asdict(found))


def read_integrals(path: Path) -> Integrals:
    return of_record(Integrals, read_json(path), path, "delete it and run the grid stage again")
