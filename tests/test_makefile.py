"""`make clean` removes what was produced and nothing that is kept in version control."""

import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]
PRODUCED = (
    "data/processed/ring/seed0.h5", "figures/paper/toys.png", "results/bench.json", "results/paper/metrics.csv",
    ".snakemake/metadata/x",
)  # fmt: skip


def test_make_clean_keeps_what_is_tracked(tmp_path: Path) -> None:
    listed = ["git", "ls-files", "data", "figures", "results", "Makefile"]
    tracked = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    assert "figures/published/toys.png" in tracked
    for name in (*tracked, *PRODUCED, "data/raw/wine.csv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    shutil.copy(ROOT / "Makefile", tmp_path)
    subprocess.run(["make", "clean"], cwd=tmp_path, check=True, capture_output=True)
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert left == {*tracked, "data/raw/wine.csv"}
