"""Broken files from whole ones: edits of bytes, of lines and cells, and of trees as in JSON and YAML."""

import copy
import json
import math
from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import strategies as st

Bytes = Callable[[bytes], bytes]
Tree = Callable[[Any], Any]

WORDS = (
    b"", b"0", b"-1", b"nan", b"NaN", b"inf", b"-Infinity", b"1e999", b"1e-999", b"9" * 400, b"0x10", b"1_000",
    b"null", b"true", b"[]", b"{}", b'"', b"'", b";", b",", b"\n", b"\r", b"\t", b"\x00", b"\xff\xfe", b"\xef\xbb\xbf",
    b"<html>", b"../../x", b"/etc/hostname", b"${oc.env:HOME}", b"${", b"!!python/object:os.system", b"&a [*a]",
    "\u2028\N{SNOWMAN}".encode(),
)  # fmt: skip
FRACTION = st.floats(0, 1, allow_nan=False)


def _place(data: bytes, fraction: float) -> int:
    return int(fraction * len(data))


def _flip(data: bytes, at: float, bit: int) -> bytes:
    i = min(_place(data, at), len(data) - 1)
    return data[:i] + bytes([data[i] ^ (1 << bit)]) + data[i + 1 :] if data else data


def _overwrite(data: bytes, at: float, new: bytes) -> bytes:
    i = _place(data, at)
    return data[:i] + new + data[i + len(new) :]


def _insert(data: bytes, at: float, new: bytes) -> bytes:
    i = _place(data, at)
    return data[:i] + new + data[i:]


def _remove(data: bytes, at: float, count: int) -> bytes:
    i = _place(data, at)
    return data[:i] + data[i + count :]


def _move(data: bytes, source: float, target: float, count: int) -> bytes:
    i = _place(data, source)
    return _insert(data, target, data[i : i + count])


def _replace_word(data: bytes, at: float, word: bytes) -> bytes:
    """Another word where one stands between separators."""
    i = j = _place(data, at)
    separators = b" \t\r\n,;:\"'[]{}"
    while i > 0 and data[i - 1] not in separators:
        i -= 1
    while j < len(data) and data[j] not in separators:
        j += 1
    return data[:i] + word + data[j:]


def _repeat_line(data: bytes, at: float, times: int) -> bytes:
    lines = data.split(b"\n")
    i = int(at * (len(lines) - 1))
    return b"\n".join([*lines[:i], *[lines[i]] * times, *lines[i + 1 :]])


def _edit(function: Callable[..., bytes], *arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[Bytes]:
    return st.tuples(*arguments).map(lambda given: lambda data: function(data, *given))


FLIPS: st.SearchStrategy[Bytes] = _edit(_flip, FRACTION, st.integers(0, 7))
BINARY: st.SearchStrategy[Bytes] = st.one_of(
    FLIPS,
    FLIPS,
    _edit(_overwrite, FRACTION, st.sampled_from([b"\x00", b"\xff", b"\x80", b"\xff\xff\xff\xff", b"\x00" * 8])),
    _edit(_overwrite, FRACTION, st.binary(min_size=1, max_size=16)),
    _edit(_insert, FRACTION, st.binary(min_size=1, max_size=16)),
    _edit(_remove, FRACTION, st.integers(1, 64)),
    _edit(_move, FRACTION, FRACTION, st.integers(1, 512)),
    FRACTION.map(lambda end: lambda data: data[: _place(data, end)]),
)
TEXT: st.SearchStrategy[Bytes] = st.one_of(
    BINARY,
    _edit(_replace_word, FRACTION, st.sampled_from(WORDS)),
    _edit(_replace_word, FRACTION, st.sampled_from(WORDS)),
    _edit(_insert, FRACTION, st.sampled_from(WORDS)),
    _edit(_repeat_line, FRACTION, st.sampled_from([0, 2, 50])),
)


@st.composite
def edited(draw: Any, whole: bytes, edits: st.SearchStrategy[Bytes]) -> bytes:
    """A file after one to six edits."""
    data = whole
    for edit in draw(st.lists(edits, min_size=1, max_size=6)):
        data = edit(data)
    return data


LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.sampled_from([0, -1, 2**31, 2**64, 10**40]),
    st.sampled_from([1e308, math.inf, math.nan]), st.floats(), st.text(max_size=12),
    st.sampled_from([word.decode("utf-8", "replace") for word in WORDS]),
    st.sampled_from(["os.system", "dkef.core.files.write_text", "dkef..x", "", "."]),
    st.just("dkef.models.gaussian.density.GaussianModel"),
)  # fmt: skip
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=5,
)


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key) below the root."""
    entries = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in list(entries):
        yield tree, key
        yield from _places(value)


def _change(tree: Any, at: float, action: str, value: Any) -> Any:
    places = list(_places(tree))
    if not places or action == "root":
        return value
    container, key = places[int(at * (len(places) - 1))]
    if action == "replace":
        container[key] = value
    elif action == "add" and isinstance(container, dict):
        container[str(value)[:20]] = copy.deepcopy(container[key])
    elif action == "add":
        container.append(value)
    else:
        del container[key]
    return tree


@st.composite
def changed_tree(draw: Any, tree: Any) -> Any:
    """A tree after one to three changes of values and keys."""
    changed = json.loads(json.dumps(tree))
    for _ in range(draw(st.integers(1, 3))):
        action = draw(st.sampled_from(["replace"] * 6 + ["delete"] * 2 + ["add", "root"]))
        changed = _change(changed, draw(FRACTION), action, draw(VALUES))
    return changed
