"""What the class of a model's specification states for planning: see `dkef.models.protocol.Trainable`."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # models import this module, and their results know nothing of a normaliser
    from dkef.config.schema.normaliser import Normaliser


def is_normalised(specification: object) -> bool:
    """The one flag: whether densities of a specification, an instance or its class, know their own constant."""
    return bool(getattr(specification, "normalised", True))


def no_log_z(specification: object) -> str:
    """Why nobody can estimate log Z of its unnormalised densities; empty where somebody can."""
    return "" if is_normalised(specification) else str(getattr(specification, "no_log_z", ""))


def log_z_obstacle(specification: object, settings: "Normaliser") -> str:
    """What keeps these settings from finding log Z, as the end of a sentence; empty where nothing does."""
    if reason := no_log_z(specification):
        return f"is not normalised, and its log Z cannot be estimated: {reason}"
    if is_normalised(specification) or settings.proposal != "q0" or getattr(specification, "has_q0", False):
        return ""
    return (
        "is not normalised and has no q0 to draw from, but normaliser.proposal is q0; allowed are mixture, annealed "
        "and cheapest: choose normaliser=target"
    )
