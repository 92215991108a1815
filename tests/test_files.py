"""Files are whole or absent."""

import pytest

from dkef.errors import DkefError
from dkef.files import read_json, whole_file, write_json


def test_a_failed_write_leaves_the_old_file_and_no_scratch_file(tmp_path):
    target = tmp_path / "result.txt"
    target.write_text("old")

    def write_half():
        with whole_file(target) as scratch:
            scratch.write_text("ne")
            raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        write_half()
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_json_survives_a_round_trip_and_equal_records_are_equal_bytes(tmp_path):
    write_json(tmp_path / "a.json", {"b": 0.1, "a": [1, None]})
    write_json(tmp_path / "b.json", {"a": [1, None], "b": 0.1})
    assert read_json(tmp_path / "a.json") == {"a": [1, None], "b": 0.1}
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe"])
def test_a_broken_json_file_is_named_in_one_sentence(tmp_path, content):
    broken = tmp_path / "log_z.json"
    broken.write_bytes(content)
    with pytest.raises(DkefError, match=r"log_z\.json is not JSON .* delete it"):
        read_json(broken)
