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
    # Figures of topics that are not run now stay; after a full run there is nothing older than it.
    keep = bool(args.topics) and args.out.exists()
    figures: dict[str, float] = json.loads(args.out.read_text()) if keep else {}
    missed: list[str] = []
    for topic in topics:
        measured, sentences = run(topic)
        figures |= measured
        missed += sentences
        for name, value in measured.items():
            print(f"{name:45s} {value:.4g}", flush=True)
        args.out.parent.mkdir(exist_ok=True)
        args.out.write_text(json.dumps(figures, indent=2, sort_keys=True) + "\n")
    for sentence in missed:
        print(f"error: {sentence}", file=sys.stderr)
    sys.exit(bool(missed))


def run(topic: str) -> tuple[dict[str, float], list[str]]:
    """Figures of one topic, and a sentence for each that is outside its limits."""
    code = (
        f"import json, limits, bench_{topic} as b; figures = b.measure(); "
        "print(json.dumps([figures, limits.misses(figures, getattr(b, 'LIMITS', ()))]))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=HERE, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        sys.exit(f"error: the benchmark of {topic} ended with exit code {done.returncode}")
    # What else is on stderr is TensorFlow's remarks on the machine, which no level of its log silences entirely.
    measured, sentences = json.loads(done.stdout.splitlines()[-1])
    return measured, sentences


if __name__ == "__main__":
    main()
