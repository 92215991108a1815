"""The files behind a stage, and their digest."""

import subprocess
import sys
from pathlib import Path

import pytest

from dkef.config import code, kept_syntax, syntax
from dkef.config.code import sources_behind, sources_digest, target_modules
from dkef.config.compose import choices, compose_cell
from dkef.report.figures.catalogue import find as find_figure


def names(*modules):
    return {Path(path).name for path in sources_behind(*modules)}


def test_a_model_s_own_module_stands_behind_its_training_and_another_model_s_does_not():
    behind = names("dkef.stages.train", "dkef.models.gaussian.spec")
    assert {"train.py", "spec.py", "protocol.py", "streams.py"} <= behind
    assert not behind & {"made.py", "kernels.py", "conditional.py", "compare.py", "plan.py", "cell.py"}


def test_imports_inside_functions_count():
    assert any(path.endswith("models/gaussian/density.py") for path in sources_behind("dkef.models.gaussian.spec"))


def test_the_component_of_a_mixture_stands_behind_it():
    section = compose_cell(("model=mixture_maf",)).model
    assert {"dkef.models.flows.spec", "dkef.models.mixture.spec"} <= set(target_modules(section))


@pytest.mark.parametrize("stage", ["fetch", "preprocess", "compare", "summarise", "render", "claims"])
def test_stages_that_need_no_tensorflow_do_not_import_it(stage):
    code = f"import sys, dkef.stages.{stage}; sys.exit('tensorflow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_planning_an_experiment_with_every_family_imports_no_tensorflow():
    code = "import sys; from dkef.config.plan import Plan; Plan('smoke').check(); sys.exit('tensorflow' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("model", choices("model"))
def test_training_depends_on_no_synthetic_distribution(model):
    modules = target_modules(compose_cell((f"model={model}",)).model)
    assert not [path for path in sources_behind("dkef.stages.train", *modules) if "synthetic" in path]


@pytest.mark.parametrize(
    "figure", ["gaussian_scales", "toys", "real_data", "toy_traces", "real_traces", "real_data_q0"]
)
def test_no_figure_depends_on_the_normaliser_or_its_settings(figure):
    behind = [Path(path) for path in sources_behind("dkef.stages.render", find_figure(figure).module)]
    assert not [path for path in behind if path.stem == "normaliser" or path.parent.name == "normaliser"]


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A user's package outside this one: two modules, one of which imports the other."""
    package = tmp_path / "my_package"
    package.mkdir()
    (package / "__init__.py").write_text('"""Mine."""')
    (package / "model.py").write_text("from .layers import width\nfrom dkef.core import streams\n")
    (package / "layers.py").write_text("def width():\n    return 30\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield package
    forget()


def forget():
    for function in vars(code).values():
        getattr(function, "cache_clear", lambda: None)()


def test_what_a_user_s_module_imports_of_the_user_s_own_stands_behind_it(mine):
    own = str(mine)
    behind = sources_behind("my_package.model")
    assert [Path(path).name for path in behind if path.startswith(own)] == ["layers.py", "model.py"]
    assert any(path.endswith("core/streams.py") for path in behind)
    assert not any("numpy" in path for path in behind)


def edited(path, old, new):
    """Digests of the user's model before and after an edit."""
    before = sources_digest("my_package.model")
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    forget()
    return before, sources_digest("my_package.model")


def test_an_edit_of_a_formula_anywhere_behind_a_module_changes_its_digest(mine):
    before, after = edited(mine / "layers.py", "30", "31")
    assert before != after


def test_an_edit_of_a_sentence_does_not(mine):
    before, after = edited(mine / "layers.py", "def", "# a remark\ndef")
    assert before == after


@pytest.mark.parametrize(("use", "counts"), [("status = str(late)", True), ("raise KeyError(str(late))", False)])
def test_the_text_of_an_error_counts_where_another_module_keeps_it(mine, use, counts):
    (mine / "layers.py").write_text("class Late(ValueError): ...\ndef width():\n    raise Late('too late')\n")
    handler = f"try:\n    width()\nexcept ValueError as late:\n    {use}\n"
    (mine / "model.py").write_text(f"from .layers import width\n{handler}")
    before, after = edited(mine / "layers.py", "too late", "much too late")
    assert (before != after) == counts


def test_texts_that_become_a_status_count():
    """The bias bound's condition and the status of a metric are texts of errors."""
    assert "BoundError" in kept_behind("dkef.normaliser.chunks")
    assert {"UnavailableError", "NotFiniteError"} <= kept_behind("dkef.stages.compare")
    assert not kept_behind("dkef.stages.train", "dkef.models.kef.spec")


def kept_behind(*modules):
    files = code._behind(*modules).items()
    return {name for module, path in files for name in code._facts(module, path).errors.kept}


def test_what_is_kept_of_a_file_is_what_is_found_in_it(tmp_path, monkeypatch):
    """The first asks for it, the second reads it; of another text, and of a damaged record, it is found anew."""
    monkeypatch.setattr(kept_syntax, "_folder", lambda: tmp_path / "kept")
    found = []
    monkeypatch.setattr(
        kept_syntax, "reduced", lambda *arguments: found.append(arguments) or syntax.reduced(*arguments)
    )
    path = tmp_path / "module.py"
    text = "import os\n\n\nclass Odd(ValueError):\n    pass\n\n\ndef f(x):\n    raise Odd(f'{x} is odd')\n"

    def asked() -> tuple[kept_syntax.Facts, str, str, int]:
        source, before = kept_syntax.SourceFile(path), len(found)
        return (
            source.facts("package"),
            source.digest(frozenset()),
            source.digest(frozenset({"Odd"})),
            len(found) - before,
        )

    path.write_text(text, encoding="utf-8")
    first, second = asked(), asked()
    assert first[:3] == second[:3]
    assert first[1] != first[2]
    assert (first[3], second[3]) == (3, 0)
    assert first[0] == (False, frozenset({"os"}), syntax.errors(syntax.reduced(text)))
    path.write_text(text.replace("is odd", "is strange"), encoding="utf-8")
    edited = asked()
    assert edited[1] == first[1]
    assert edited[2] != first[2]
    for file in (tmp_path / "kept").iterdir():
        file.write_text(file.read_text(encoding="utf-8")[:-20], encoding="utf-8")
    assert asked()[:3] == edited[:3]


def test_where_nothing_can_be_kept_all_is_found_anew(tmp_path, monkeypatch):
    (tmp_path / "a_file").write_text("", encoding="utf-8")
    monkeypatch.setattr(kept_syntax, "_folder", lambda: tmp_path / "a_file" / "below")
    (tmp_path / "module.py").write_text("x = 1\n", encoding="utf-8")
    source = kept_syntax.SourceFile(tmp_path / "module.py")
    assert not source.facts("package").empty
    assert len(source.digest(frozenset())) == 64
