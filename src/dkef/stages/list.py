"""List experiments, datasets and models that can be chosen, with one line on each."""

import argparse
import sys
from collections.abc import Sequence

from dkef.config.listing import listing


def main(arguments: Sequence[str] | None = None) -> None:
    argparse.ArgumentParser(description=__doc__).parse_args(arguments)
    sys.stdout.write(listing())
