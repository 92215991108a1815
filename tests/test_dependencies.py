"""The files behind a stage."""

import subprocess
import sys
from pathlib import Path

import pytest

from dkef.config.code import sources_behind, target_modules
from dkef.config.compose import compose_cell


def names(*modules):
    return {Path(path).name for path in sources_behind(*modules)}


def test_a_model_s_own_module_stands_behind_its_training_and_another_model_s_does_not():
    behind = names("dkef.stages.train", "dkef.models.gaussian.spec")
    assert {"train.py", "spec.py", "protocol.py", "streams.py"} <= behind
    assert not behind & {"made.py", "kernels.py", "conditional.py", "compare.py", "plan.py", "settings.py"}


def test_imports_inside_functions_count():
    assert any(path.endswith("models/gaussian/density.py") for path in sources_behind("dkef.models.gaussian.spec"))


def test_the_component_of_a_mixture_stands_behind_it():
    section = compose_cell(("model=mixture_maf",)).model
    assert target_modules(section) == ["dkef.models.flows.spec", "dkef.models.mixture.spec"]


@pytest.mark.parametrize("stage", ["fetch", "preprocess", "compare", "summarise", "render", "claims"])
def test_stages_that_need_no_tensorflow_do_not_import_it(stage):
    code = f"import sys, dkef.stages.{stage}; sys.exit('tensorflow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_planning_an_experiment_with_every_family_imports_no_tensorflow():
    code = "import sys; from dkef.config.plan import Plan; Plan('smoke').check(); sys.exit('tensorflow' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
