"""What a job loads before it works, asked in a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[1] / "src" / "dkef"


def loaded(code: str) -> set[str]:
    """Top-level packages that a process has loaded after some code."""
    code += "\nimport sys\nprint(*sorted({name.partition('.')[0] for name in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize("stage", ["preprocess", "evaluate", "grid", "compare", "train", "plan"])
def test_stages_load_tensorflow_and_numba_only_where_they_use_them(stage: str) -> None:
    assert not loaded(f"import dkef.stages.{stage}") & {"tensorflow", "numba", "sklearn", "matplotlib"}


def test_comparing_loads_no_pandas() -> None:
    assert "pandas" not in loaded("import dkef.stages.compare")


@pytest.mark.parametrize("stage", ["evaluate", "grid", "compare"])
def test_short_jobs_do_not_load_scipy_special_or_spatial(stage: str) -> None:
    """Which would take longer than their work on small sets."""
    code = f"import dkef.stages.{stage}, dkef.models.kef.density, dkef.models.flows.density, sys"
    loaded(code + "\nassert not {'scipy.special', 'scipy.spatial'} & set(sys.modules)")


@pytest.mark.parametrize("stage", ["normalise_target", "normalise_chunk", "normalise_merge"])
def test_the_normaliser_loads_numba_and_no_statistics(stage: str) -> None:
    code = f"import dkef.stages.{stage}, sys\nassert 'scipy.stats' not in sys.modules"
    assert not loaded(code) & {"tensorflow", "sklearn", "matplotlib", "pandas"}


def test_tensorflow_comes_without_keras_and_leaves_it_to_who_asks() -> None:
    code = "import os\nfrom dkef.core.tensorflow import tf\n"
    assert not loaded(code) & {"keras", "sklearn", "matplotlib"}
    assert "keras" in loaded(code + "tf.keras.layers.Dense(1)\n")
    assert "keras" in loaded(code + "assert 'TF_USE_LEGACY_KERAS' not in os.environ\nimport keras\n")


def test_namespaces_of_tensorflow_are_loaded_when_they_are_used() -> None:
    """And hold what they hold after an ordinary import, also those that share their name with a package."""
    look = (
        "import json, pathlib, sys\nbefore = set(sys.modules)\n"
        "parts = [path.name for path in pathlib.Path(tf.__file__).parent.glob('_api/v2/[a-z]*') if path.is_dir()]\n"
        "held = {part: dir(getattr(tf, part)) for part in ['compat', *sorted(parts)] if dir(tf.compat.v1)}\n"
        "print(json.dumps(['tensorflow.python.keras' in before, held]))"
    )
    ordinary = "import os\nos.environ['TF_USE_LEGACY_KERAS'] = '1'\nimport tensorflow as tf\n"
    found = []
    for code in (ordinary, "from dkef.core.tensorflow import tf\n"):
        command = [sys.executable, "-c", code + look]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found.append(json.loads(done.stdout.splitlines()[-1]))
    (eager, expected), (early, held) = found
    assert eager
    assert not early
    assert held == expected


def test_one_module_imports_tensorflow() -> None:
    """Or the first that does would bring Keras with it."""
    found = [path for path in SOURCES.rglob("*.py") if "import tensorflow" in path.read_text(encoding="utf-8")]
    assert found == [SOURCES / "core" / "tensorflow.py"]


def test_tensorflow_says_nothing_about_hardware_unless_it_is_asked() -> None:
    code = "from dkef.core.tensorflow import tf\nassert float(tf.constant(1.0) + 1) == 2\nimport sys\nsys.exit('ours')"
    told = {}
    for level in (None, "0"):
        environment = {name: value for name, value in os.environ.items() if name != "TF_CPP_MIN_LOG_LEVEL"}
        environment |= {"TF_CPP_MIN_LOG_LEVEL": level} if level else {}
        told[level] = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
        ).stderr
    assert told[None] == "ours\n"
    assert "oneDNN" in told["0"]


def test_tensorflow_starts_in_a_process_without_stderr() -> None:
    code = "from dkef.core.tensorflow import tf\nprint(float(tf.constant(1.0) + 1))"
    command = ["sh", "-c", 'exec "$0" -c "$1" 2>&-', sys.executable, code]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout == "2.0\n"


def test_only_the_noise_is_held_back_and_all_is_shown_where_it_fails() -> None:
    code = (
        "import os\nfrom dkef.core.tensorflow import _without_noise\n"
        "def write():\n    os.write(2, b'I0000 00:00:1.2 34 port.cc:153] oneDNN is on\\nfrom another thread\\n')\n"
        "with _without_noise():\n    write()\n"
        "os.write(2, b'--\\n')\n"
        "try:\n    with _without_noise():\n        write()\n        raise ImportError\nexcept ImportError:\n    pass\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    held, shown = done.stderr.split("--\n")
    assert held == "from another thread\n"
    assert shown.splitlines() == ["I0000 00:00:1.2 34 port.cc:153] oneDNN is on", "from another thread"]
