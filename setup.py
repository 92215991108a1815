"""The rest is in pyproject.toml; this puts into the wheel what the package reads and what lies beside it here.

`config/` and the published metrics have one home, the checkout. A wheel gets a copy of both, below `dkef/share`.
"""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
SHARED = ("config/**/*.yaml", "results/published/*/metrics.csv")


class BuildWithShare(build_py):
    """Copies the shared files beside the modules; an editable install reads those of the checkout."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        share = Path(self.build_lib, "dkef", "share")
        shutil.rmtree(share, ignore_errors=True)  # of an earlier build
        for path in sorted(file for pattern in SHARED for file in ROOT.glob(pattern)):
            to = share / path.relative_to(ROOT)
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, to)


setup(cmdclass={"build_py": BuildWithShare})
