"""The files behind a stage."""

import subprocess
import sys
from pathlib import Path

import pytest

from dkef.dependencies import sources_behind


def names(*modules):
    return {Path(path).name for path in sources_behind(*modules)}


def test_a_model_s_own_module_stands_behind_its_training_and_another_model_s_does_not():
    behind = names("dkef.train", "dkef.specs.gaussian")
    assert {"train.py", ["specs", "gaussian.py"][1], "protocol.py", "streams.py"} <= behind
    assert not behind & {"flows.py", "kef.py", "kcef.py", "compare.py", "plan.py", "settings.py"}


def test_imports_inside_functions_count():
    assert any(path.endswith("models/gaussian.py") for path in sources_behind("dkef.specs.gaussian"))


@pytest.mark.parametrize("stage", ["fetch", "preprocess", "compare", "summarise", "render", "claims"])
def test_stages_that_need_no_tensorflow_do_not_import_it(stage):
    code = f"import sys, dkef.{stage}; sys.exit('tensorflow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_planning_the_paper_imports_no_tensorflow():
    code = "import sys; from dkef.plan import Plan; Plan('paper').check(); sys.exit('tensorflow' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
