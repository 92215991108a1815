"""`make bench`: run every tests/bench/bench_*.py in a process of its own and gather results/bench.json."""

import argparse
import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("topics", nargs="*", help="e.g. kef normaliser; all of them by default")
    parser.add_argument("--out", type=Path, default=HERE.parents[1] / "results" / "bench.json")
    args = parser.parse_args()
    topics = args.topics or sorted(path.stem.removeprefix("bench_") for path in HERE.glob("bench_*.py"))
    figures: dict[str, float] = json.loads(args.out.read_text()) if args.out.exists() else {}
    for topic in topics:
        code = f"import json, bench_{topic} as b; print(json.dumps(b.measure()))"
        done = subprocess.run([sys.executable, "-c", code], cwd=HERE, stdout=subprocess.PIPE, text=True, check=True)
        measured = json.loads(done.stdout.splitlines()[-1])
        figures |= measured
        for name, value in measured.items():
            print(f"{name:45s} {value:.4g}", flush=True)
        args.out.parent.mkdir(exist_ok=True)
        args.out.write_text(json.dumps(figures, indent=2, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
