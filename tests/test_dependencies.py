"""The files behind a stage."""

import subprocess
import sys
from pathlib import Path

import pytest

from dkef.config import compose_cell
from dkef.dependencies import sources_behind, target_modules


def names(*modules):
    return {Path(path).name for path in sources_behind(*modules)}


def test_a_model_s_own_module_stands_behind_its_training_and_another_model_s_does_not():
    behind = names("dkef.train", "dkef.specs.gaussian")
    assert {"train.py", ["specs", "gaussian.py"][1], "protocol.py", "streams.py"} <= behind
    assert not behind & {"flows.py", "kef.py", "kcef.py", "compare.py", "plan.py", "settings.py"}


def test_imports_inside_functions_count():
    assert any(path.endswith("models/gaussian.py") for path in sources_behind("dkef.specs.gaussian"))


def test_the_component_of_a_mixture_stands_behind_it():
    section = compose_cell(("model=mixture_maf",)).model
    assert target_modules(section) == ["dkef.specs.flows", "dkef.specs.mixture"]


@pytest.mark.parametrize("stage", ["fetch", "preprocess", "compare", "summarise", "render", "claims"])
def test_stages_that_need_no_tensorflow_do_not_import_it(stage):
    code = f"import sys, dkef.{stage}; sys.exit('tensorflow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_planning_an_experiment_with_every_family_imports_no_tensorflow():
    code = "import sys; from dkef.plan import Plan; Plan('smoke').check(); sys.exit('tensorflow' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
