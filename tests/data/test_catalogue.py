from pathlib import Path

import jsonschema
import pandas as pd
import pytest
import yaml

from dkef.config.compose import choices, compose_cell
from dkef.config.typed import instantiate
from dkef.core.errors import DkefError
from dkef.data.catalogue import read_catalogue

ROOT = Path(__file__).parents[2]
HEADER = "file,urls,bytes,sha256,licence,doi,page\n"


def test_every_row_of_the_catalogue_satisfies_its_schema() -> None:
    schema = yaml.safe_load((ROOT / "workflow/schemas/sources.schema.yaml").read_text())
    rows = pd.read_csv(ROOT / "data/sources.csv")
    for _, row in rows.iterrows():
        jsonschema.validate(row.dropna().to_dict(), schema)
    broken = rows.iloc[0].dropna().to_dict() | {"sha256": "abc"}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(broken, schema)


def test_every_raw_file_of_every_dataset_is_in_the_catalogue() -> None:
    known = read_catalogue(ROOT / "data/sources.csv")
    asked = {
        file
        for name in choices("dataset")
        for file in instantiate(compose_cell((f"dataset={name}",)).dataset.source).files
    }
    assert asked == set(known)


def test_parts_of_larger_sets_say_so_in_title_and_subset() -> None:
    for name in ("miniboone_part", "hepmass_part"):
        dataset = compose_cell((f"dataset={name}",)).dataset
        assert "(part)" in dataset.title
        assert dataset.subset_of is not None


@pytest.mark.parametrize("fidelity", ["paper", "code"])
def test_fidelity_decides_noise_and_whitening_of_the_wines(fidelity: str) -> None:
    steps = compose_cell(("dataset=redwine", f"fidelity={fidelity}")).dataset.preprocessing
    expected = {"paper": (1.0, "train"), "code": (2.0, "all")}[fidelity]
    assert (steps.dequantise_gaps, steps.whiten_on) == expected
    assert not steps.drop_duplicate_rows


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("x,,,,,,", "line 2: file 'x' must be folder/name, below data/raw"),
        ("../x/y,,,,,,", "line 2: file '../x/y' must be folder/name"),
        ("/x/y,,,,,,", "line 2: file '/x/y' must be folder/name"),
        ("a/b,,many,,,,", "line 2: bytes 'many' is not a whole number"),
        ("a/b,,²,,,,", "line 2: bytes '²' is not a whole number"),
        (f"a/b,,{'9' * 5000},,,,", "line 2: bytes '9+ .* is not a whole number"),  # more digits than int() takes
        ("a/b,,,12,,,", "line 2: sha256 '12' is not 64 hexadecimal digits"),
        ("a/b,ftp://x,,,,,", r"line 2: 'ftp://x' is not an http\(s\) address"),
        ("a/b,,,,,,\na/b,,,,,,", "names a file twice"),
        ("a/b,,", "line 2: the columns must be file, urls"),
    ],
)
def test_a_bad_catalogue_row_is_one_sentence(tmp_path: Path, line: str, sentence: str) -> None:
    (tmp_path / "sources.csv").write_text(HEADER + line + "\n")
    with pytest.raises(DkefError, match=sentence):
        read_catalogue(tmp_path / "sources.csv")


def test_a_missing_catalogue_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(DkefError, match=r"sources\.csv does not exist; run from the project's root"):
        read_catalogue(tmp_path / "sources.csv")
