"""Paths that somebody asks for: a slip in one is told before Snakemake says no more than that no rule makes it."""

from collections.abc import Iterable

from dkef.config.files import check_choice
from dkef.config.plan import Plan
from dkef.config.sentences import suggestion
from dkef.core.errors import ConfigError

TOPS = ("results", "figures")  # results/<experiment>/<dataset>/<model>/seed<k>/<file>, figures/<experiment>/<figure>
KEPT = "published"  # beside the folders of experiments


def check_targets(plan: Plan, targets: Iterable[str]) -> None:
    """Stop at a path of another experiment, or of a dataset or model that this one does not have."""
    for target in sorted(targets):
        top, *names = target.removeprefix("./").split("/")
        if top not in TOPS or len(names) < 2 or names[0] == KEPT:
            continue
        check_choice("experiment", names[0], target)
        if names[0] != plan.name:
            raise ConfigError(f"{target} is of another experiment than {plan.name}; add --config experiment={names[0]}")
        if len(names) > 3 and names[3].startswith("seed"):
            _require(target, f"experiment {plan.name} has no dataset", names[1], plan.datasets())
            _require(target, f"experiment {plan.name} has on {names[1]} no model", names[2], plan.models(names[1]))


def _require(target: str, nothing: str, name: str, known: list[str]) -> None:
    if name not in known:
        raise ConfigError(f"{target}: {nothing} {name!r}; {suggestion(name, known)}known are {', '.join(known)}")
