"""pyproject.toml (ranges), requirements.lock (pins with hashes) and environment.yml (the same pins) agree."""

import re
import tomllib
from pathlib import Path

import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).parents[1]
LOCK = (ROOT / "requirements.lock").read_text()
PINS = dict(re.findall(r"^([A-Za-z0-9-]+)==(\S+)", LOCK, re.MULTILINE))


def declared() -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return [Requirement(line) for line in project["dependencies"] + project["optional-dependencies"]["test"]]


def test_every_declared_range_holds_the_locked_version():
    for requirement in declared():
        assert PINS[requirement.name] in requirement.specifier, requirement


def test_environment_yml_has_the_locked_version_of_every_declared_package():
    conda = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    pip = next(entry["pip"] for entry in conda if isinstance(entry, dict))
    assert sorted(pip) == sorted(f"{requirement.name}=={PINS[requirement.name]}" for requirement in declared())
    assert "python=3.11" in conda


def test_continuous_integration_tries_the_oldest_and_the_newest_python():
    allowed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    supported = [f"3.{minor}" for minor in range(30) if f"3.{minor}" in SpecifierSet(allowed)]
    job = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())["jobs"]["check"]
    assert job["strategy"]["matrix"]["python"] == [supported[0], supported[-1]]
    commands = [step["run"].split()[1] for step in job["steps"] if "run" in step]
    assert commands == ["env", "test", "smoke"]
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(commands) <= set(targets)
    assert (ROOT / ".ci/run").read_text().splitlines()[-1] == "make test"


def test_every_locked_package_has_a_hash():
    for block in re.split(r"\n(?=[a-z])", LOCK):
        assert "--hash=sha256:" in block, block.splitlines()[0]


def test_none_of_them_names_a_host():
    for name in ("requirements.lock", "pyproject.toml", "environment.yml"):
        assert not re.search(r"https?://|index[-]url|find[-]links", (ROOT / name).read_text()), name
