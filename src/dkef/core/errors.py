"""Errors that are meant to be read by a person, and how a command line shows them."""

import logging
import os
import sys
from collections.abc import Callable
from typing import NoReturn

from dkef.core.screen import ERROR, STOPPED

LONGEST = 1000  # characters of a message


class DkefError(Exception):
    """One sentence for the user: where, what was found, what to do.

    It may quote a file; what in it would break the line or steer the terminal is shown as its escape, and of a text
    that nobody would read the beginning and the end, which say where it was and what to do.
    """

    def __str__(self) -> str:
        text = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in super().__str__())
        return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]} ... {text[-LONGEST // 3 :]}"


class ConfigError(DkefError):
    """Something in the configuration is misspelt, of the wrong type or out of range."""


def one_line(text: object) -> str:
    """What somebody else's message says, on one line and not too long."""
    return " ".join(str(text).split())[:200] or type(text).__name__


def run_stage(main: Callable[[], None]) -> NoReturn:
    """Run a stage's `main`: a DkefError or Ctrl-C becomes one line on stderr, a bug keeps its traceback."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S", stream=sys.stderr)
    try:
        main()
        sys.stdout.flush()
    except DkefError as error:
        sys.exit(f"{ERROR}{error}")
    except KeyboardInterrupt:
        print(STOPPED, file=sys.stderr)
        sys.exit(130)  # as shells report it
    except BrokenPipeError:  # whoever reads the output, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # where the rest goes
        sys.exit(141)  # as shells report it
    sys.exit(0)
