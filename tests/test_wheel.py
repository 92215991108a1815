"""`pip install .` gives a package that works in any folder, without the checkout."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FIT = """
import pathlib, sys
import numpy as np
import dkef
assert pathlib.Path(dkef.__file__).is_relative_to(sys.argv[1]), dkef.__file__
x = np.random.default_rng(0).normal(size=(200, 2)) * [1.0, 50.0]
fit = dkef.fit(x, model="maf", max_iterations=20)
assert np.isfinite(fit.log_prob(x)).all()
assert len(dkef.published.load("synthetic_quick"))
"""


def run(*words: str | Path, cwd: Path, site: str = "") -> str:
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(cwd), "TF_CPP_MIN_LOG_LEVEL": "2", "PYTHONPATH": site}
    done = subprocess.run([*map(str, words)], cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with nothing but the installed wheel; libraries are those of this environment."""
    folder = tmp_path_factory.mktemp("wheel")
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    for name in names:
        if (ROOT / name).is_file():
            (folder / "source" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / "source" / name)
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    run(*pip, "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", folder, folder / "source", cwd=folder)
    (wheel,) = folder.glob("dkef-*.whl")
    run(*pip, "install", "-q", "--no-deps", "--target", folder / "site", wheel, cwd=folder)
    shutil.rmtree(folder / "source")
    return folder / "site"


@pytest.mark.slow
def test_a_density_is_fitted_in_another_folder(site: Path, tmp_path: Path) -> None:
    run(sys.executable, "-c", FIT, site, cwd=tmp_path, site=str(site))


@pytest.mark.slow
def test_the_wheel_has_every_configuration_of_the_checkout(site: Path) -> None:
    for path in (ROOT / "config").rglob("*.yaml"):
        assert (site / "dkef" / "share" / path.relative_to(ROOT)).read_bytes() == path.read_bytes(), path
