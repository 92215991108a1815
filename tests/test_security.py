"""Nothing that a file or a configuration says is run, and nothing is written outside the folders of the project."""

import io
import os
import sys
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
import yaml

import dkef
from dkef.config.compose import compose_cell
from dkef.config.experiment import load_experiment
from dkef.config.plan import Plan
from dkef.config.typed import instantiate
from dkef.core.errors import ConfigError, DkefError
from dkef.core.streams import rng_for
from dkef.core.trust import allowed, belongs_to_user
from dkef.data.archives import extract
from dkef.data.catalogue import read_catalogue
from dkef.data.download import UnavailableError
from dkef.data.tables import Npy
from dkef.models.gaussian.density import GaussianModel
from dkef.models.protocol import Fit
from dkef.models.storage import load_own_model, write_model
from tests.models.test_storage import rewrite_record


@pytest.fixture
def model(tmp_path: Path) -> Path:
    fitted = GaussianModel.fit(rng_for("test", "security").standard_normal((50, 2)))
    write_model(tmp_path / "model.h5", Fit(fitted), {"config_digest": "abc"})
    return tmp_path / "model.h5"


# `this` and `antigravity` do something when they are imported, which is how one notices.
@pytest.mark.parametrize(
    "name", ["this.s", "antigravity.x", "os.system", "dkef", "", ".", "dkef..x", "dkef.nothing.X", 7]
)
def test_a_model_file_never_makes_a_module_run(model: Path, name: object) -> None:
    rewrite_record(model, **{"class": name})
    for load in (dkef.load_model, load_own_model):
        with pytest.raises(DkefError) as caught:
            load(model)
        assert "\\n" not in str(caught.value)  # a line break shows as its escape
    assert not {"this", "antigravity"} & set(sys.modules)


def test_a_job_of_the_workflow_restores_classes_in_modules_of_the_user(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_density.py").write_text(
        "from dkef.models.gaussian.density import GaussianModel\nclass Mine(GaussianModel): pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    rewrite_record(model, **{"class": "my_density.Mine"})
    with pytest.raises(DkefError, match="outside the trusted packages"):
        dkef.load_model(model)
    assert type(load_own_model(model)).__name__ == "Mine"


def test_the_users_own_modules_are_those_outside_the_installation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_package").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    assert belongs_to_user("my_package")
    for name in ("os", "sys", "subprocess", "builtins", "numpy", "h5py", "no_such_module", "", "..", "a b"):
        assert not belongs_to_user(name), name
    monkeypatch.setenv("DKEF_TRUSTED", os.pathsep.join(["numpy", "other"]))
    assert belongs_to_user("numpy")
    assert not belongs_to_user("h5py")
    assert allowed("dkef.models.gaussian.spec.Gaussian")
    assert not allowed("dkefs.Gaussian")


@pytest.mark.parametrize(
    "target", ["antigravity.X", "this.s", "subprocess.Popen", "unittest.mock.Mock", "x", "", "dkef..x"]
)
def test_a_configuration_cannot_name_code_that_is_not_ours_or_the_users(target: str) -> None:
    with pytest.raises(ConfigError, match="_target_") as caught:
        instantiate({"_target_": target}, "config/model/x.yaml", "model")
    assert "\\n" not in str(caught.value)  # a line break shows as its escape
    assert not {"this", "antigravity"} & set(sys.modules)


def test_yaml_makes_no_objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model").mkdir()
    witness = tmp_path / "witness"
    (tmp_path / "model" / "evil.yaml").write_text(f"_target_: !!python/object/apply:os.mkdir ['{witness}']\n")
    monkeypatch.setenv("DKEF_CONFIG_PATH", str(tmp_path))
    with pytest.raises(ConfigError):
        compose_cell(("model=evil",))
    assert not witness.exists()


def test_an_array_file_with_pickled_objects_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(DkefError, match=r"x\.npy is not a whole \.npy file"):
        Npy(paths=[str(tmp_path / "x.npy")]).read(tmp_path, rng_for("test"))


def archives() -> dict[str, bytes]:
    outside, link = "../../escaped.csv", "link.csv"
    packed, rolled = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(outside, b"1,2\n")
    with tarfile.open(fileobj=rolled, mode="w") as tar:
        entry = tarfile.TarInfo(outside)
        entry.size = 4
        tar.addfile(entry, io.BytesIO(b"1,2\n"))
        entry = tarfile.TarInfo(link)
        entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/hostname"
        tar.addfile(entry)
    return {"x.zip": packed.getvalue(), "x.tar": rolled.getvalue()}


@pytest.mark.parametrize("name", ["x.zip", "x.tar"])
def test_archives_write_nothing_outside_the_file_that_was_asked_for(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    (folder / name).write_bytes(archives()[name])
    extract(folder / name, "escaped.csv", folder / "out.csv")
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == sorted(["out.csv", name])
    with pytest.raises(UnavailableError, match=r"without link\.csv"):
        extract(folder / name, "link.csv", folder / "link.csv")


@pytest.mark.parametrize("name", ["../../x", "/tmp/x", "a/b", "a b", "..", "a;b", ""])
@pytest.mark.parametrize("group", ["datasets", "models"])
def test_no_name_in_an_experiment_leads_outside_the_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group: str, name: str
) -> None:
    of = {"datasets": "ring", "models": "gaussian"}
    chosen = {key: [value] for key, value in of.items()} | {group: [name]}
    (tmp_path / "experiment").mkdir()
    (tmp_path / "experiment" / "outside.yaml").write_text(
        yaml.safe_dump({
            "title": "X", "figures": [], group: {name: {"of": of[group]}}, "suites": {"all": chosen | {"seeds": 1}},
        })
    )  # fmt: skip
    monkeypatch.setenv("DKEF_CONFIG_PATH", str(tmp_path))
    load_experiment.cache_clear()
    with pytest.raises(ConfigError, match="letters, digits and _"):
        Plan("outside")


@pytest.mark.parametrize("file", ["../x.csv", "/etc/x.csv", "a/../../x.csv", "x.csv"])
def test_the_catalogue_names_no_file_outside_data_raw(tmp_path: Path, file: str) -> None:
    (tmp_path / "sources.csv").write_text(f"file,urls,bytes,sha256,licence,doi,page\n{file},,,,CC0,,x\n")
    with pytest.raises(DkefError, match=r"line 2: file is .*; allowed is folder/name, below data/raw"):
        read_catalogue(tmp_path / "sources.csv")
