"""Raw files below data/raw, or draws from a known distribution, to whitened splits in one HDF5 file."""

import argparse
import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dkef.config.schema.dataset import Dataset
from dkef.config.typed import instantiate, typed
from dkef.core.errors import DkefError
from dkef.core.files import require_noted
from dkef.core.job import parse_job
from dkef.core.provenance import canonical, config_digest
from dkef.core.streams import rng_for
from dkef.data.copies import count_copies
from dkef.data.prepare import prepare
from dkef.data.source import Source
from dkef.data.splits import write_splits

log = logging.getLogger("dkef.stages.preprocess")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", required=True, help="canonical JSON: name, seed, dataset")
    parser.add_argument("--raw", type=Path, default=Path("data/raw"), help="folder of the raw files")
    parser.add_argument("--out", type=Path, required=True, help="splits file to write")
    args, config = parse_job(parser, arguments)
    name, seed = config["name"], config["seed"]
    dataset = typed(Dataset, config["dataset"], lambda key: f"dataset {name}")
    source: Source = instantiate(dataset.source, f"dataset {name}", "dataset.source")

    def stream(purpose: str) -> np.random.Generator:
        return rng_for(purpose, name, seed)

    try:
        for file in source.files:
            require_noted(args.raw / file, "delete it and fetch it again")
        splits = prepare(source.read(args.raw, stream("sample")), dataset, stream)
    except DkefError as error:
        raise DkefError(f"dataset {name}: {error}") from None
    write_splits(args.out, splits, {"config": config, "config_digest": config_digest(canonical(config))})
    sizes = f"{len(splits.train)}/{len(splits.valid)}/{len(splits.test)}"
    log.info("%s seed %d: D %d, train/valid/test %s, digest %s", name, seed, splits.dimension, sizes, splits.digest)
    for part, kinds in (("validation", splits.valid_copies), ("test", splits.test_copies)):
        if any(found := count_copies(kinds)):
            log.warning(
                "%s seed %d: %d %s rows are exact and %d near copies of training rows, which rewards models that "
                "memorise; metrics ending in _no_copies leave them out, preprocessing.split_by: distinct_rows keeps "
                "exact copies on one side and drop_duplicate_rows removes them",
                name, seed, found.exact, part, found.near,
            )  # fmt: skip
    for kind, what, reason in splits.removed:
        log.info("removed %s %s: %s", kind, what, reason)
