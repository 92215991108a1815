"""Every command and every YAML file that a README prints: short ones are run, long ones planned."""

import dataclasses
import functools
import importlib
import itertools
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from snakemake.cli import get_argument_parser, parse_config

from dkef.config.compose import compose_cell
from dkef.config.experiment import load_experiment
from dkef.config.jobs import Wanted, cell_jobs, whole_jobs
from dkef.config.plan import Plan
from dkef.config.schema.dataset import Preprocessing
from dkef.config.typed import instantiate
from dkef.data.splits import write_splits
from dkef.data.tables import Csv, Npy
from dkef.report.claims.choices import NOISELESS
from dkef.stages import preprocess
from tests.data.test_splits import made_up
from tests.workflow.project import MY_MODEL, Project

ROOT = Path(__file__).parents[1]
PAGES = sorted([
    ROOT / "README.md", *ROOT.glob("*/README.md"), *(ROOT / "results" / "published").glob("*/README.md"),
    ROOT / "src" / "dkef" / "README.md",
])  # fmt: skip
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
RUN = "results/smoke/ring_tiny/gaussian/seed0/metrics.csv"  # the one command that takes seconds
ELSEWHERE = ("git", "scancel", "cd", "source", ".")  # what belongs to other programs


def blocks(*kinds: str) -> list[tuple[Path, str]]:
    found = [(page, match) for page in PAGES for match in BLOCK.finditer(page.read_text(encoding="utf-8"))]
    return [(page, match[2]) for page, match in found if match[1] in kinds]


def printed_commands() -> list[list[str]]:
    """The words of every command, each command once; a comment or the output below it is none."""
    lines = [
        line.removeprefix("$ ")
        for _, text in blocks("console", "bash", "sh")
        for line in text.replace("\\\n", " ").splitlines()
    ]
    commands = [shlex.split(part, comments=True) for line in lines for part in line.split(" && ")]
    return [list(words) for words in dict.fromkeys(tuple(words) for words in commands if words)]


COMMANDS = printed_commands()


def named(program: str) -> list[list[str]]:
    """Arguments of the commands that call a program, by whatever path and after whatever variables."""
    calls = []
    for words in COMMANDS:
        rest = list(words)
        while re.match(r"[A-Z_]+=", rest[0]):
            rest.pop(0)
        if rest[:3] == ["python", "-m", program] or Path(rest[0]).name == program:
            calls.append(rest[3:] if rest[0] == "python" else rest[1:])
    return calls


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A config folder with the files that config/README.md prints, where it says they lie."""
    folder = tmp_path_factory.mktemp("printed")
    for text in (text for page, text in blocks("yaml") if page.parent.name == "config"):
        place = re.match(r"# \w+/(\w+/\w+\.yaml)", text)
        assert place, f"say in the first line where it lies:\n{text}"
        path = folder / place[1]
        path.parent.mkdir(exist_ok=True)
        path.write_text(text.replace("/data/mine.csv", str(folder / "mine.csv")))
    (folder / "my_models.py").write_text(MY_MODEL)
    for text in (text for _, text in blocks("python") if text.startswith("# my_energy.py")):
        (folder / "my_energy.py").write_text(text)
    (folder / "mine.csv").write_text("a,b\n" + "".join(f"{i},{i * i % 97}\n" for i in range(200)))
    compose_cell.cache_clear()
    load_experiment.cache_clear()
    with pytest.MonkeyPatch.context() as patch:  # once: cells that several commands share are composed once
        patch.setenv("DKEF_CONFIG_PATH", str(folder))
        patch.syspath_prepend(str(folder))
        yield folder
    compose_cell.cache_clear()


@functools.cache
def planned(*config: str) -> Plan:
    """The plan of a command, with every cell checked."""
    plan = Plan.of_command_line(parse_config(list(config)))
    plan.check()
    return plan


def braces(word: str) -> list[str]:
    """The words that a shell makes of a{b,c}."""
    found = re.search(r"\{([^{}]*,[^{}]*)\}", word)
    if not found:
        return [word]
    return [x for part in found[1].split(",") for x in braces(word[: found.start()] + part + word[found.end() :])]


def test_every_printed_command_is_one_that_these_tests_know() -> None:
    known = ("snakemake", "make", "pip", "python", *ELSEWHERE)
    programs = [next(Path(word).name for word in words if not re.match(r"[A-Z_]+=", word)) for words in COMMANDS]
    assert [words for words, program in zip(COMMANDS, programs, strict=True) if program not in known] == []
    assert {"snakemake", "make"} <= set(programs)


@pytest.mark.parametrize("words", named("snakemake"), ids=" ".join)
def test_what_snakemake_is_given_can_be_planned(words: Sequence[str], own: Path) -> None:
    args = get_argument_parser().parse_args(list(words))
    if args.workflow_profile:
        assert (ROOT / args.workflow_profile / "config.yaml").is_file()
    plan = planned(*(args.config or []))
    figures = dict.fromkeys(plan.experiment.figures, ("sensitivity", "proposals"))
    jobs = [*cell_jobs(plan, Wanted(figures, ())), *whole_jobs(plan, Wanted(figures, ()))]
    known = {str(job.output) for job in jobs} | {job.stage for job in jobs}
    targets = {word for target in args.targets for word in braces(target)}
    assert targets <= known


@pytest.mark.parametrize("words", named("make"), ids=" ".join)
def test_what_make_is_given_is_there_and_names_an_experiment(words: Sequence[str], own: Path) -> None:
    makefile = (ROOT / "Makefile").read_text()
    for word in words:
        name, assigned, value = word.partition("=")
        if assigned:
            assert re.search(rf"^(?:[a-z-]+: )?{name} \?=|\$\({name}\)|\$\(or \$\({name}\)", makefile, re.MULTILINE)
        else:
            assert re.search(rf"^{name}:.*## ", makefile, re.MULTILINE), f"make {name} is not in the Makefile"
        if name == "EXPERIMENT":
            Plan(value)


@pytest.mark.parametrize("words", [words for words in COMMANDS if words[0] == "python"], ids=" ".join)
def test_what_python_is_given_is_there_and_takes_these_options(
    words: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> None:
    options = {word.partition("=")[0] for word in words[2:] if word.startswith("--")}
    if words[1] != "-m":
        file = ROOT / words[1]
    elif words[2] != "dkef":
        file = ROOT.joinpath(*words[2].split(".")).with_suffix(".py")
    else:
        with pytest.raises(SystemExit):
            importlib.import_module(f"dkef.stages.{words[3]}").main(["--help"])
        assert options <= set(re.findall(r"--[a-z-]+", capsys.readouterr().out))
        return
    assert options <= set(re.findall(r"--[a-z-]+", file.read_text()))


@pytest.mark.parametrize("words", named("pip"), ids=" ".join)
def test_what_pip_is_given_is_there(words: Sequence[str]) -> None:
    files = [after for option, after in itertools.pairwise(words) if option == "-r"]
    assert files
    assert all((ROOT / file).is_file() for file in files)


@pytest.mark.slow
def test_the_printed_cell_is_made_as_printed(tmp_path: Path) -> None:
    (words,) = [words for words in named("snakemake") if RUN in words]
    project = Project.make(tmp_path / "project")
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", *words], cwd=project.folder, env=project.environment(),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "log_likelihood" in (project.folder / RUN).read_text()


def test_a_printed_file_does_not_lie_where_one_is_kept() -> None:
    for page, text in blocks("yaml"):
        place = re.match(r"# (\S+\.yaml)", text)
        assert place is None or not (ROOT / place[1]).exists(), f"{page.name} would overwrite {place[1]}"


def test_the_printed_ablation_has_the_name_that_claims_read_and_a_log_z_that_can_be_trusted(own: Path) -> None:
    plan = planned("experiment=my_noise")
    assert plan.models("redwine") == ["dkef", NOISELESS]
    for model in ("dkef", NOISELESS):
        settings = plan.cell("redwine", model).normaliser
        assert settings.proposal == "cheapest"
        assert settings.tolerance is not None


def test_the_printed_model_and_dataset_run(own: Path, tmp_path: Path) -> None:
    suites = {"all": {"datasets": ["mine"], "models": ["shrunk"], "seeds": 1}}
    (own / "experiment" / "printed.yaml").write_text(yaml.safe_dump({"title": "", "figures": [], "suites": suites}))
    plan = Plan("printed")
    plan.check()
    assert plan.spec("mine", "shrunk").weight == 0.25
    preprocess.main(["--config", plan.preprocess_slice("mine", 0), "--out", str(tmp_path / "splits.h5")])


def test_the_page_about_data_names_every_key_of_a_dataset() -> None:
    text = (ROOT / "data" / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`[^|]*`) \|", text, re.MULTILINE)
    named_there = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    keys = {field.name for kind in (Csv, Npy, Preprocessing) for field in dataclasses.fields(kind)}
    assert keys <= named_there
    (of_arrays,) = re.findall(r"^`Npy` takes (.*)\.$", text, re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", of_arrays)) == {field.name for field in dataclasses.fields(Npy)}


def test_the_python_that_the_page_about_data_prints_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ((_, text),) = [(page, text) for page, text in blocks("python") if page.parent.name == "data"]
    (tmp_path / "data/processed/redwine").mkdir(parents=True)
    splits = made_up()
    write_splits(tmp_path / "data/processed/redwine/seed0.h5", splits, {"config": {}})
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(compile(text, "data/README.md", "exec"), names)
    assert names["splits"].digest == splits.digest


def test_the_dataset_that_the_page_about_data_prints_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ((_, text),) = [(page, text) for page, text in blocks("yaml") if page.parent.name == "data"]
    (tmp_path / "dataset").mkdir()
    (tmp_path / "dataset" / "of_page.yaml").write_text(text)
    (tmp_path / "measurements.csv").write_text("a,b,label\n" + "".join(f"{i},{i % 7},x\n" for i in range(50)))
    monkeypatch.setenv("DKEF_CONFIG_PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "config", tmp_path / "config")
    compose_cell.cache_clear()
    source = instantiate(compose_cell(("dataset=of_page", "model=gaussian")).dataset.source)
    assert source.read(tmp_path, None).columns == ("a", "b")
