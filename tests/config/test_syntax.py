"""What of a source file counts: the pairs below are the whole contract, one line of an edit each."""

from textwrap import dedent

import pytest

from dkef.config.syntax import ancestors, canonical_tree, errors, imports, reduced


def key(source, kept=frozenset()):
    return canonical_tree(reduced(dedent(source), kept))


# Edits that cannot change a result: before, after.
SAME = {
    "comment": ("x = 1", "# about x\nx = 1  # one"),
    "layout": ("x = (1 + 2)", "x = 1 + 2\n\n\n"),
    "docstring of a module": ("x = 1", '"""About."""\nx = 1'),
    "docstring of a function": ("def f(): return 1", 'def f():\n    """About."""\n    return 1'),
    "docstring of a class": ("class A: pass", 'class A:\n    """About."""'),
    "docstring of a field": ("class A:\n    x = 1", 'class A:\n    x = 1\n    """About x."""'),
    "annotation of an argument": (
        "def f(a, *b, c=1, **d): return a",
        "def f(a: int, *b: int, c: int=1, **d: int): return a",
    ),
    "annotation of a result": ("def f(): return 1", "def f() -> int: return 1"),
    "annotation of a method": (
        "class A:\n    @property\n    def f(self): ...",
        "class A:\n    @property\n    def f(self) -> int: ...",
    ),
    "annotation of a variable": (
        "def f():\n    x = 1\n    return x",
        "def f():\n    x: int\n    x: float = 1\n    return x",
    ),
    "an import for an annotation": ("def f(a): ...", "from typing import Any\ndef f(a: Any): ..."),
    "an import for type checkers": ("x = 1", "if TYPE_CHECKING:\n    from dkef import fit\nx = 1"),
    "message of an error": ("raise DkefError('old')", "raise DkefError(f'{path} is new: {len(rows)}')"),
    "message of any error": ("raise ValueError('a' + b)", "raise ValueError('%s c' % d)"),
    "message in another error": ("e = ConfigError('a')", "e = ConfigError('b')"),
    "message in a variable": (
        "def f(x):\n    why = 'a' if x else 'b'\n    raise E(f'{why}')",
        "def f(x):\n    why = 'c' if x else 'd'\n    raise E(f'{x}, {why}')",
    ),
    "message of an assertion": ("assert x", "assert x, 'x is false'"),
    "message of a check": ("require(x > 0, 'x', x, '> 0')", "require(x > 0, 'x', x, 'above zero')"),
    "message of an exit": ("sys.exit('a')", "sys.exit(f'b {c}')"),
    "message of a warning": ("warnings.warn('a')", "warnings.warn('b')"),
    "message of the log": ("log.info('%d rows', n)", "log.info('%d of %d rows', n, len(x))"),
    "another line of the log": ("def f():\n    x()", "def f():\n    self.log.warning('going')\n    x()"),
    "help": ("p.add_argument('--x', help='a')", "p.add_argument('--x', help='b' + c, metavar='X')"),
    "description": ("p = ArgumentParser(description=__doc__)", "p = ArgumentParser(prog='x')"),
}

# Edits that may change one: before, after.
OTHER = {
    "formula": ("y = x + 1", "y = x - 1"),
    "number": ("C = 1", "C = 2"),
    "kind of a number": ("C = 1", "C = 1.0"),
    "true and one": ("C = True", "C = 1"),
    "text": ("NAME = 'a'", "NAME = 'b'"),
    "text and bytes": ("NAME = 'a'", "NAME = b'a'"),
    "default of an argument": ("def f(x: int = 1): ...", "def f(x: int = 2): ..."),
    "text in an f-string": ("path = f'{a}.csv'", "path = f'{a}.json'"),
    "value in an f-string": ("path = f'{a}.csv'", "path = f'{b}.csv'"),
    "text that a function returns": ("def f():\n    x = 'a'\n    return x", "def f():\n    x = 'b'\n    return x"),
    "text of a class in a function": (
        "def f():\n    class A:\n        x = 'a'\n    return A",
        "def f():\n    class A:\n        x = 'b'\n    return A",
    ),
    "text of a nonlocal": ("def f():\n    nonlocal x\n    x = 'a'", "def f():\n    nonlocal x\n    x = 'b'"),
    "text that locals() shows": (
        "def f():\n    x = 'a'\n    return locals()",
        "def f():\n    x = 'b'\n    return locals()",
    ),
    "text a user prints": ("print('a')", "print('b')"),
    "annotation of a field": ("@dataclass\nclass A:\n    x: int = 1", "@dataclass\nclass A:\n    x: float = 1"),
    "a field more": ("class A(Base):\n    x: int", "class A(Base):\n    x: int\n    y: int"),
    "annotation that a decorator reads": ("@f.register\ndef g(x: int): ...", "@f.register\ndef g(x: str): ..."),
    "what is raised": ("raise E('a')", "raise F('a')"),
    "a number that an error carries": ("raise Diverged('a', 1)", "raise Diverged('a', 2)"),
    "a keyword of an error": ("raise E('a', again=True)", "raise E('a', again=False)"),
    "whether it is raised": ("if x > 0:\n    raise E('a')", "if x > 1:\n    raise E('a')"),
    "condition of a check": ("require(x > 0, 'x')", "require(x > 1, 'x')"),
    "a check of words": ("require(x in ('a', 'b'), 'x')", "require(x in ('a', 'c'), 'x')"),
    "a call inside the log": ("log.info('%g', rng.random())", "log.info('%g')"),
    "a call inside a message": ("raise E(f'{next(x)}')", "raise E('x')"),
    "an assignment inside a message": ("log.info(f'{(n := 1)}')", "log.info(f'{(n := 2)}')"),
    "np.log": ("y = np.log(x)", "y = np.log(z)"),
    "something else named log": ("log.append('a')", "log.append('b')"),
    "type of an option": ("p.add_argument('--x', type=int)", "p.add_argument('--x', type=float)"),
    "default of an option": (
        "p.add_argument('--x', default=1, help='a')",
        "p.add_argument('--x', default=2, help='a')",
    ),
    "text of a class named like an error": ("x = SquaredError('a')", "x = SquaredError('b')"),
    "a decorator": ("@a\ndef f(): ...", "@b\ndef f(): ..."),
    "an import": ("from a import x", "from b import x"),
    "what stands instead of types": (
        "if TYPE_CHECKING:\n    pass\nelse:\n    x = 1",
        "if TYPE_CHECKING:\n    pass\nelse:\n    x = 2",
    ),
    "a docstring that is read": ('"""A."""\nx = __doc__', '"""B."""\nx = __doc__'),
    "a docstring of a class that is read": (
        'class A:\n    """A."""\nx = A.__doc__',
        'class A:\n    """B."""\nx = A.__doc__',
    ),
}


@pytest.mark.parametrize("case", SAME)
def test_an_edit_of_a_sentence_leaves_the_key(case):
    before, after = SAME[case]
    assert key(before) == key(after)


@pytest.mark.parametrize("case", OTHER)
def test_an_edit_that_may_change_a_result_changes_the_key(case):
    before, after = OTHER[case]
    assert key(before) != key(after)


def test_the_text_of_an_error_that_a_handler_keeps_counts():
    kept = frozenset({"BoundError"})
    assert key("raise BoundError('a')", kept) != key("raise BoundError('b')", kept)
    assert key("raise DkefError('a')", kept) == key("raise DkefError('b')", kept)


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        ("status = str(e)", {"Late"}),
        ("return Outcome(f'invalid: {e}')", {"Late"}),
        ("rows.append(e.args[0])", {"Late"}),
        ("log.info('%s', e)", set()),
        ("raise DkefError(f'{path}: {one_line(e)}') from None", set()),
        ("sys.exit(f'error: {e}')", set()),
        ("again = e.code == 3 and isinstance(e, Late)", set()),
    ],
)
def test_a_handler_keeps_the_text_unless_it_ends_in_a_message(body, kept):
    tree = reduced(f"def f():\n    try:\n        g()\n    except Late as e:\n        {body}\n")
    assert errors(tree).kept == kept


def test_which_classes_a_handler_catches():
    handler = "try:\n    g()\nexcept {} as e:\n    keep(e)\n"

    def caught(clause, before=""):
        return errors(reduced(before + handler.format(clause))).kept

    assert caught("(Late, b.Early)") == {"Late", "Early"}
    assert caught("BROKEN", "BROKEN = (Late, *OTHERS)\n") == {"Late", "BaseException"}
    assert caught("BROKEN", "from elsewhere import BROKEN\n") == {"BaseException"}


def test_ancestors_follow_classes_of_the_sources_and_built_in_ones():
    bases = {"A": ("B",), "B": ("KeyError", "C")}
    assert ancestors("A", bases) == {"A", "B", "C", "KeyError", "LookupError", "Exception", "BaseException", "object"}


def test_imports_of_every_form():
    source = """
        import a.b
        from c import d
        from . import e
        from ..f import g
        def h():
            from i.j import k
        if TYPE_CHECKING:
            import l
    """
    assert imports(reduced(dedent(source)), "p.q") == {
        "a.b", "c", "c.d", "p.q", "p.q.e", "p.f", "p.f.g", "i.j", "i.j.k",
    }  # fmt: skip
