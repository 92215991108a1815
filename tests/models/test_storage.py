"""Model files."""

import numpy as np
import pytest

import dkef
from dkef.core.errors import DkefError
from dkef.core.hdf5 import read_hdf5, write_hdf5
from dkef.core.streams import rng_for
from dkef.models.gaussian.density import GaussianModel
from dkef.models.protocol import Fit
from dkef.models.storage import read_record, read_training, write_model


@pytest.fixture
def saved(tmp_path):
    model = GaussianModel.fit(rng_for("test", "storage").standard_normal((50, 2)))
    write_model(tmp_path / "model.h5", Fit(model, notes={"skipped": 3}), {"config_digest": "abc"})
    return tmp_path / "model.h5", model


def rewrite_record(path, **changes):
    """Change entries of a model file's record."""
    contents = read_hdf5(path, "a model", "")
    write_hdf5(path, contents.arrays, contents.record | changes)


def test_a_loaded_model_is_the_saved_one(saved):
    path, model = saved
    x = np.array([[0.0, 1.0], [2.0, -1.0]])
    np.testing.assert_array_equal(dkef.load_model(path).log_prob(x), model.log_prob(x))


def test_the_record_says_what_produced_it(saved):
    record = read_record(saved[0])
    assert record["status"] == "ok"
    assert record["notes"] == {"skipped": 3}
    assert record["provenance"]["config_digest"] == "abc"
    assert record["provenance"]["libraries"]["numpy"] == np.__version__


@pytest.mark.parametrize("name", ["os.system", "subprocess.Popen", "builtins.eval"])
def test_a_file_that_names_a_class_outside_the_package_is_refused(saved, name):
    rewrite_record(saved[0], **{"class": name})
    with pytest.raises(DkefError, match="outside the trusted packages"):
        dkef.load_model(saved[0])


def test_a_file_that_names_something_of_the_package_that_is_no_model_is_refused(saved):
    rewrite_record(saved[0], **{"class": "dkef.core.files.write_text"})
    with pytest.raises(DkefError, match="not a density model"):
        dkef.load_model(saved[0])


def test_broken_and_missing_files_are_named_in_one_sentence(tmp_path):
    (tmp_path / "broken.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    with pytest.raises(DkefError, match=r"broken\.h5 is not a model file"):
        dkef.load_model(tmp_path / "broken.h5")
    with pytest.raises(DkefError, match=r"absent\.h5 does not exist"):
        dkef.load_model(tmp_path / "absent.h5")


def test_a_model_that_the_workflow_has_not_trained_is_named_with_what_it_lacks(saved):
    with pytest.raises(DkefError, match=r"model.h5: provenance.config is missing.*train again"):
        read_training(saved[0])
