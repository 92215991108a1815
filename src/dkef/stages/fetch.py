"""One raw file, from a local mirror or its public home, checked, whole or not at all.

Folders named in DKEF_DATA_MIRROR are searched first, then data/mirror; with the file there no request is made.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from dkef.core.errors import DkefError
from dkef.data.catalogue import read_catalogue
from dkef.data.download import Patience
from dkef.data.fetch import fetch_file, mirrors


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", required=True, help='canonical JSON: {"file": name in the catalogue}')
    parser.add_argument("--out", type=Path, required=True, help="data/raw/<file>")
    parser.add_argument("--sources", type=Path, default=Path("data/sources.csv"), help="the catalogue")
    args = parser.parse_args(arguments)
    name = json.loads(args.config)["file"]
    catalogue = read_catalogue(args.sources)
    if name not in catalogue:
        raise DkefError(f"{name} is not in {args.sources}; known are {', '.join(sorted(catalogue))}")
    fetch_file(catalogue[name], args.out, mirrors(), Patience())
