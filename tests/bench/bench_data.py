"""Memory and time of the preprocess stage on a HEPMASS-shaped gzip of 2,000,000 rows, all of them read."""

import gzip
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from limits import Limit

from dkef.core.streams import rng_for
from dkef.data.particles import FEATURES

ROWS = 2_000_000
BLOCK_ROWS = 10_000
LIMITS = (Limit("hepmass_2m_rows_peak_mb", "preprocess reads its files in blocks", most=1500.0),)


def write_hepmass(path: Path, rows: int) -> None:
    """A gzip file of `rows` rows in UCI's format, every second one signal; one block of rows, again and again."""
    x = rng_for("bench", "hepmass").standard_normal((BLOCK_ROWS, 27))
    label = np.arange(BLOCK_ROWS) % 2
    lines = (",".join(f"{v:.18e}" for v in (a, *row)) + "\n" for a, row in zip(label, x, strict=True))
    header, block = gzip.compress(f"# label,{','.join(FEATURES)}\n".encode()), gzip.compress("".join(lines).encode())
    with open(path, "wb") as file:
        file.write(header)
        for _ in range(rows // BLOCK_ROWS):
            file.write(block)  # gzip members one after the other are one gzip file


def gunzip_seconds(path: Path) -> float:
    start = time.perf_counter()
    with gzip.open(path, "rb") as file:
        while file.read(1 << 20):
            pass
    return time.perf_counter() - start


def measure(rows: int = ROWS) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as name:
        raw = Path(name)
        write_hepmass(raw / "train.gz", rows)
        write_hepmass(raw / "test.gz", BLOCK_ROWS)
        source = {
            "_target_": "dkef.data.particles.Hepmass",
            "train_file": "train.gz",
            "test_file": "test.gz",
            "train_file_rows": None,
            "drop": dict.fromkeys(("f5", "f9", "f13", "f17", "f21"), "discrete"),
        }
        config = {"name": "bench", "seed": 0, "dataset": {"title": "HEPMASS-shaped", "source": source}}
        paths = ["--raw", str(raw), "--out", str(raw / "out.h5")]
        start = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "dkef", "preprocess", "--config", json.dumps(config), *paths],
            check=True,
            stderr=subprocess.DEVNULL,
        )
        seconds = time.perf_counter() - start
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        unzip = gunzip_seconds(raw / "train.gz")
    return {
        "hepmass_2m_rows_peak_mb": peak,
        "hepmass_2m_rows_seconds": seconds,
        "hepmass_2m_rows_over_gunzip": seconds / unzip,
    }
