"""Fitting without a workflow: the models of config/model on rows of one's own."""

import logging
from pathlib import Path

from dkef.config.compose import compose_cell
from dkef.config.typed import instantiate
from dkef.core.arrays import Array
from dkef.models.protocol import Fit, FitContext


def fit(
    model: str, train: Array, valid: Array, *overrides: str, seed: int = 0, checkpoint: str | Path | None = None
) -> Fit:
    """Fit config/model/<model>.yaml to train [n, d], stopping early by valid [n', d].

    Overrides are Hydra's: "protocol=benchmark", "model.width=20". Rows should be centred and scaled, as the
    preprocess stage would have them. With a checkpoint file a killed fit continues where it was.
    """
    spec = instantiate(compose_cell((f"model={model}", *overrides)).model)
    place = Path(checkpoint) if checkpoint is not None else None
    context = FitContext("data", model, seed, place, log=logging.getLogger("dkef.fit"))
    outcome: Fit = spec.fit(train, valid, context)
    return outcome
