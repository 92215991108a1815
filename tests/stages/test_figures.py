"""Figures, tables and claims from a published bundle alone."""

from pathlib import Path

import pandas as pd

from dkef.stages.figures import main


def test_it_ends_with_what_became_of_the_claims(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(Path(__file__).parents[2])
    main(["--experiment", "objectives", "--tables", str(tmp_path), "--figures", str(tmp_path)])
    *paths, claims, reduced = capsys.readouterr().out.splitlines()
    assert {Path(path).name for path in paths} >= {"objectives.png", "claims.csv", "report.html"}
    assert all(Path(path).stat().st_size > 0 for path in paths)
    verdicts = pd.read_csv(tmp_path / "claims.csv")["verdict"]
    assert claims.startswith(f"{len(verdicts)} claims: ")
    for verdict, count in verdicts.value_counts().items():
        assert f"{count} {verdict}" in claims
    assert reduced.startswith("reduced run: ")
    assert reduced.endswith("runs are finished")
