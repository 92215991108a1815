from pathlib import Path

import pytest

from dkef.config.compose import compose_cell
from dkef.config.files import choices
from dkef.config.typed import instantiate
from dkef.core.errors import DkefError
from dkef.data.catalogue import read_catalogue

ROOT = Path(__file__).parents[2]
HEADER = "file,urls,bytes,sha256,licence,doi,page\n"
WHOLE = ",,,CC0,10.1/x,https://example.org"  # a row without its file


def test_every_file_of_the_catalogue_has_a_doi() -> None:
    catalogue = read_catalogue(ROOT / "data/sources.csv")
    assert len(catalogue) >= 10
    assert all(entry.doi.startswith("10.") for entry in catalogue.values())


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
        ("x,,,,,,", "line 2: file is 'x'; allowed is folder/name, below data/raw"),
        ("../x/y,,,,,,", r"line 2: file is '\.\./x/y'; allowed is folder/name, below data/raw"),
        (f"x/../y,{WHOLE}", r"line 2: file is 'x/\.\./y'; allowed is folder/name, below data/raw"),
        ("/x/y,,,,,,", "line 2: file is '/x/y'; allowed is folder/name"),
        ("a/b,,many,,,,", "line 2: bytes is 'many'; allowed is a whole number >= 1, or null"),
        ("a/b,,0,,,,", "line 2: bytes is 0; allowed is >= 1, or null"),
        ("a/b,,²,,,,", "line 2: bytes is '²'; allowed is a whole number"),
        (f"a/b,,{'9' * 5000},,,,", "line 2: bytes is '9+; allowed is a whole number"),  # more digits than int() takes
        ("a/b,,,12,,,", "line 2: sha256 is '12'; allowed is 64 hexadecimal digits"),
        ("a/b,ftp://x,,,,,", r"line 2: urls\[0\] is 'ftp://x'; allowed is an http\(s\) address"),
        ("a/b,,,,,,https://x", "line 2: licence is ''; allowed is its name"),
        ("a/b,,,,CC0,11/x,https://x", r"line 2: doi is '11/x'; allowed is 10\.number/name, or nothing"),
        ("a/b,,,,CC0,,x", "line 2: page is 'x'; allowed is an https address"),
        (f"a/b,{WHOLE}\na/b,{WHOLE}", "names a file twice"),
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


def test_the_digest_of_miniboone_says_where_it_comes_from() -> None:
    entry = read_catalogue(ROOT / "data/sources.csv")["miniboone/MiniBooNE_PID.txt"]
    assert entry.bytes == 91_174_877
    assert entry.sha256 == "577ab8bcb612199a0386cef1725058295df9a18b778a003a6a4349bbd51abd48"
    assert "Git LFS pointer" in entry.note
