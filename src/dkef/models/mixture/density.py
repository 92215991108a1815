"""A weighted sum of fitted densities, each living in whitened coordinates of its own.

    p(x) = sum_i w_i |det W_i| p_i((x - m_i) W_i)

Every p_i is normalised: by its own construction, or by an estimate of its log Z that is kept with its standard error
and the bound on its bias. Score matching never sees these constants, which is why each one is needed here.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from dkef.core.arrays import Array, log_sum_exp
from dkef.core.errors import DkefError
from dkef.data.whitening import Whitening
from dkef.models.protocol import DensityModel, Evaluation, FitContext
from dkef.models.storage import TRUSTED_PACKAGES, density_class

STEP = 5e-4  # of the differences below, in whitened coordinates, where densities have features of size 0.05 and more


class LogZ(NamedTuple):
    """Estimated log Z of a component; zeros for one that is normalised by construction."""

    value: float = 0.0
    stderr: float = 0.0
    bias_bound: float = 0.0  # the estimate lies below log Z by no more than this, on average; NaN if not known
    status: str = "ok"  # or why not to believe the estimate


class ComponentNormaliser(Protocol):
    """What `model.log_z` of a mixture names: a frozen dataclass that finds log Z of fitted components."""

    def log_z(self, model: DensityModel, train: Array, context: FitContext) -> LogZ:
        """log Z of a model that was fitted to the rows of train [n, d]; the context names its random streams."""
        ...


@dataclass(frozen=True)
class Part:
    """One component: its weight, the coordinates it lives in, the model and the log of its integral."""

    weight: float
    whitening: Whitening
    model: DensityModel
    log_z: LogZ

    def log_density(self, x: Array) -> Array:
        """log of w |det W| p((x - m) W) at x [n, d]; returns [n]."""
        return self.model.log_density(self.whitening.apply(x)) + self.offset

    @property
    def offset(self) -> float:
        return float(np.log(self.weight)) + self.whitening.log_det - self.log_z.value

    def settings(self) -> dict[str, Any]:
        kind = type(self.model)
        return {
            "class": f"{kind.__module__}.{kind.__qualname__}",
            "settings": self.model.settings(),
            "log_z_status": self.log_z.status,
        }

    def evaluate(self, x: Array, batch: int) -> Evaluation:
        """The same with its derivatives in x: the score is s W', the curvature the diagonal of W H W'."""
        y = self.whitening.apply(x)
        at = self.model.evaluate(y, batch)
        curvature = curvature_along(self.model, y, self.whitening.W, batch)
        return Evaluation(at.log_density + self.offset, at.score @ self.whitening.W.T, curvature)


def curvature_along(model: DensityModel, y: Array, directions: Array, batch: int = 1000) -> Array:
    """v' H v at y [n, d] for the Hessian H of a log density and each row v of `directions` [k, d]; returns [n, k].

    A model offers the diagonal of H only, so the score is differenced along v: four evaluations, error of order
    STEP^4. Models compute scores in float64, which leaves about 1e-11 of |score| as rounding.
    """
    out = np.empty((len(y), len(directions)))
    for k, v in enumerate(directions):
        length = np.linalg.norm(v)
        step = STEP * v / length
        near = {t: model.evaluate(y + t * step, batch).score @ v for t in (-2, -1, 1, 2)}
        out[:, k] = (near[-2] - 8 * near[-1] + 8 * near[1] - near[2]) / (12 * STEP) * length
    return out


class MixtureModel(DensityModel):
    """The mixture; normalised, with the errors of its components' log Z on record."""

    def __init__(self, parts: tuple[Part, ...], clusters: Array | None = None) -> None:
        self.parts = parts
        self.clusters = np.zeros(0, dtype=int) if clusters is None else clusters  # of the training rows, in their order

    @property
    def dimension(self) -> int:
        return self.parts[0].model.dimension

    @property
    def log_z_status(self) -> str:
        doubts = [
            f"component {i}, {part.log_z.status.removeprefix('untrusted: ')}"
            for i, part in enumerate(self.parts)
            if part.log_z.status != "ok"
        ]
        return f"untrusted: {'; '.join(doubts)}" if doubts else "ok"

    def log_density(self, x: Array) -> Array:
        log_p: Array = log_sum_exp([part.log_density(x) for part in self.parts], axis=0)
        return log_p

    def evaluate(self, x: Array, batch: int = 1000) -> Evaluation:
        at = [part.evaluate(x, batch) for part in self.parts]
        log_parts = np.stack([e.log_density for e in at])  # [i, n]
        scores, curvatures = np.stack([e.score for e in at]), np.stack([e.curvature for e in at])  # [i, n, d]
        log_p = log_sum_exp(log_parts, axis=0)
        share = np.exp(log_parts - log_p)[:, :, None]  # posterior probability of each component
        score = (share * scores).sum(axis=0)
        curvature = (share * (curvatures + scores**2)).sum(axis=0) - score**2
        return Evaluation(log_p, score, curvature)

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        counts = rng.multinomial(n, [part.weight for part in self.parts])
        drawn = [
            part.whitening.invert(part.model.sample(int(count), rng))
            for part, count in zip(self.parts, counts, strict=True)
            if count
        ]
        x: Array = rng.permutation(np.concatenate(drawn))
        return x

    def arrays(self) -> dict[str, Array]:
        named = {
            "weight": np.array([part.weight for part in self.parts]),  # [i]
            "mean": np.stack([part.whitening.mean for part in self.parts]),  # [i, d]
            "W": np.stack([part.whitening.W for part in self.parts]),  # [i, d, d]
            "log_z": np.array([part.log_z[:3] for part in self.parts]),  # [i, 3]: value, stderr, bias bound
            "clusters": self.clusters,  # [n]
        }
        for i, part in enumerate(self.parts):
            named |= {f"component{i}.{name}": array for name, array in part.model.arrays().items()}
        return named

    def settings(self) -> dict[str, Any]:
        return {"components": [part.settings() for part in self.parts]}

    @classmethod
    def restore(cls, settings: Mapping[str, Any], arrays: Mapping[str, Array]) -> Self:
        parts = []
        for i, entry in enumerate(settings["components"]):
            prefix = f"component{i}."
            own = {name.removeprefix(prefix): a for name, a in arrays.items() if name.startswith(prefix)}
            model = _component_class(entry["class"]).restore(entry["settings"], own)
            value, stderr, bias_bound = map(float, arrays["log_z"][i])
            log_z = LogZ(value, stderr, bias_bound, entry["log_z_status"])
            parts.append(Part(float(arrays["weight"][i]), Whitening(arrays["mean"][i], arrays["W"][i]), model, log_z))
        return cls(tuple(parts), arrays["clusters"])


def _component_class(name: str) -> type[DensityModel]:
    """The class a file names for a component: of this package, or of a module that is already imported.

    Loading a model file must not run anything that the file chooses, hence no import of foreign modules.
    """
    module = name.rpartition(".")[0]
    if module.partition(".")[0] not in TRUSTED_PACKAGES and module not in sys.modules:
        raise DkefError(f"a mixture names the component class {name}; if you know the file, import {module} first")
    return density_class(name, "a mixture")
