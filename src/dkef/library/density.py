"""A fitted density in the units of the rows it was fitted to, and its file."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dkef.config.typed import of_record
from dkef.core.arrays import Array
from dkef.core.errors import DkefError
from dkef.data.whitening import Whitening
from dkef.library.rows import as_rows, require_dimension, require_whole
from dkef.models.protocol import DensityModel, Fit
from dkef.models.storage import LIBRARY, REMEDY, restore_with_contents, write_model


@dataclass(frozen=True)
class LogZ:
    """log of the integral of the model's density over whitened rows: 0 for a normalised model.

    low and high are a 95 % interval. The status is "ok", "untrusted: why" or, without a value, "undefined: why".
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    stderr: float | None = None
    status: str = "ok"


@dataclass(frozen=True)
class FittedDensity:
    """What dkef.fit gives: p(x) in the units of x, of a model p_w of the whitened rows w = (x - mean) W.

    log p(x) = log p_w(w) - log Z + log |det W|.
    """

    model: DensityModel  # of whitened rows, perhaps not normalised
    whitening: Whitening
    log_z: LogZ
    name: str  # of the model
    columns: tuple[str, ...]
    seed: int
    status: str  # ok | diverged
    stopped: str  # converged | max_iterations | time_budget | diverged | closed form
    notes: dict[str, float | int | str]
    trace: list[dict[str, float]]  # one record an iteration; not saved

    @property
    def dimension(self) -> int:
        return self.model.dimension

    def log_prob(self, y: Any) -> Array:
        """Normalised log density at the rows of y [n, d]; returns [n]."""
        if self.log_z.value is None:
            raise DkefError(f"log_prob: log Z of this {self.name} is {self.log_z.status}; score and sample do without")
        return self.log_density(y) - self.log_z.value

    def log_density(self, y: Any) -> Array:
        """The same before log Z is subtracted: up to a constant where the model is not normalised; [n]."""
        log_p: Array = self.model.log_density(self._whitened(y, "log_prob")) + self.whitening.log_det
        return log_p

    def score(self, y: Any) -> Array:
        """Gradient of the log density at the rows of y [n, d], by the chain rule; [n, d]."""
        gradient: Array = self.model.score(self._whitened(y, "score")) @ self.whitening.W.T
        return gradient

    def sample(self, n: int, rng: np.random.Generator | int | None = None) -> Array:
        """n draws [n, d]; rng is a generator or a seed. Kernel families draw by Markov chains, see KefModel.sample."""
        require_whole("sample", "n", n, 0)
        return self.whitening.invert(self.model.sample(n, np.random.default_rng(rng)))

    def save(self, path: str | Path) -> None:
        """Write model, units and log Z to one HDF5 file, which dkef.load reads."""
        fit = Fit(self.model, self.status, self.stopped, notes=self.notes)
        saved = {"name": self.name, "columns": self.columns, "seed": self.seed, "log_z": vars(self.log_z)}
        write_model(Path(path), fit, {LIBRARY: saved}, {"mean": self.whitening.mean, "W": self.whitening.W})

    def _whitened(self, y: Any, who: str) -> Array:
        rows = as_rows(y, who)
        require_dimension(rows, self.dimension, who)
        return self.whitening.apply(rows)

    def __repr__(self) -> str:
        value = "" if self.log_z.value is None else f" {self.log_z.value:.4g}"
        log_z = "" if self.model.normalised else f", log Z{value} {self.log_z.status}"
        return f"<{self.name} of {self.dimension} columns: {self.status} ({self.stopped}){log_z}>"


@dataclass(frozen=True)
class _Saved:
    """What stands in a file beside the model."""

    name: str
    columns: list[str]
    seed: int
    log_z: LogZ


def load(path: str | Path, trusted: tuple[str, ...] = ()) -> FittedDensity:
    """Read what FittedDensity.save wrote.

    Only models of this package are restored; name further packages in `trusted` for models of your own.
    """
    path = Path(path)
    if not path.exists():
        raise DkefError(f"{path} does not exist; dkef.fit(x).save(path) writes such files")
    model, contents = restore_with_contents(path, trusted)
    arrays, record = contents.below(LIBRARY), contents.record
    provenance = record["provenance"]
    if not arrays or not isinstance(provenance, dict) or LIBRARY not in provenance:
        raise DkefError(f"{path} was not saved by dkef.fit; dkef.load_model reads models of the workflow")
    saved = of_record(_Saved, provenance[LIBRARY], path, REMEDY)
    whitening = _whitening(path, arrays, model.dimension)
    if len(saved.columns) != model.dimension:
        raise DkefError(f"{path} names {len(saved.columns)} columns for a model of {model.dimension}; {REMEDY}")
    return FittedDensity(
        model, whitening, saved.log_z, saved.name, tuple(saved.columns), saved.seed, str(record["status"]),
        str(record["stopped"]), dict(record.get("notes", {})), [],
    )  # fmt: skip


def _whitening(path: Path, arrays: dict[str, Array], d: int) -> Whitening:
    """W must be invertible, or samples and densities would be of another space."""
    mean, W = (np.asarray(arrays.get(name, []), dtype=np.float64) for name in ("mean", "W"))
    fits = mean.shape == (d,) and W.shape == (d, d) and bool(np.isfinite(mean).all() and np.isfinite(W).all())
    if not fits or not math.isfinite(Whitening(mean, W).log_det):
        raise DkefError(f"{path} holds no whitening of {d} columns; {REMEDY}")
    return Whitening(mean, W)
