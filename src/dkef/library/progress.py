"""A bar where somebody looks on, log lines (dkef.fit, level INFO) where nobody does."""

import contextlib
import importlib.util
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

Watch = Callable[[int, int | None, float], None]


@dataclass(frozen=True)
class Display:
    """Shows where a fit stands: `watch` by iterations, `say` by words."""

    watch: Watch
    say: Callable[[str], None]


@contextlib.contextmanager
def display(wanted: bool | None) -> Iterator[Display]:
    """A bar if it is wanted; None wants one on a terminal and in a notebook."""
    if wanted is False:
        yield Display(lambda iteration, most, best: None, lambda text: None)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True, force_terminal=wanted)
    # Without ipywidgets rich can only warn in a notebook.
    seen = console.is_terminal or (console.is_jupyter and importlib.util.find_spec("ipywidgets") is not None)
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[told]}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not seen) as bar:
        task = bar.add_task("fitting", total=None, told="")

        def watch(iteration: int, most: int | None, best: float) -> None:
            loss = f", best validation loss {best:.4f}" if math.isfinite(best) else ""
            bar.update(task, total=most, completed=iteration, told=f"iteration {iteration}{loss}")

        yield Display(watch, lambda text: bar.update(task, description=text, total=None))
