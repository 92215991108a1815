"""Estimators with scikit-learn's conventions."""

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import check_estimator

import dkef.sklearn
from dkef.core.errors import ConfigError
from dkef.core.streams import rng_for

# All estimators share fit, score_samples, score and sample; they differ in their parameters. Two of them pass through
# all checks of scikit-learn, which fit some 60 times: one in closed form and one that is trained. A kernel family would
# take minutes, mostly for log Z; of it and the others only the checks of parameters are run. No check is expected to
# fail; that of array API input is skipped by scikit-learn itself unless SCIPY_ARRAY_API is set.
CHECKED = {"Gaussian": {}, "MADE": {"max_iterations": 2, "hidden_layers": 1, "width": 4}}
OF_PARAMETERS = (
    "check_parameters_default_constructible", "check_no_attributes_set_in_init", "check_get_params_invariance",
    "check_set_params", "check_estimator_repr", "check_estimator_cloneable", "check_estimators_unfitted",
)  # fmt: skip


@pytest.mark.parametrize("name", CHECKED)
def test_scikit_learns_own_checks_pass(name):
    estimator = getattr(dkef.sklearn, name)(**CHECKED[name], random_state=0)
    found = check_estimator(estimator, on_fail=None, on_skip=None)
    assert {check["check_name"]: repr(check["exception"]) for check in found if check["status"] == "failed"} == {}
    assert {check["check_name"] for check in found if check["status"] == "skipped"} <= {"check_array_api_input"}
    assert sum(check["status"] == "passed" for check in found) > 30


@pytest.mark.parametrize("name", dkef.sklearn.__all__)
@pytest.mark.parametrize("check", OF_PARAMETERS)
def test_the_parameters_of_all_estimators_pass_scikit_learns_checks(name, check):
    getattr(estimator_checks, check)(name, getattr(dkef.sklearn, name)(random_state=0))


def test_a_kernel_family_has_a_normalised_density(x):
    sizes = {"max_iterations": 3, "components": 1, "layers": 1, "width": 2, "inducing_points": 5}
    estimator = dkef.sklearn.DKEF(**sizes, settings={"phase2_iterations": 2}, random_state=0).fit(x)
    same = dkef.fit(x, **sizes, phase2_iterations=2)
    np.testing.assert_array_equal(estimator.score_samples(x), same.log_prob(x))


@pytest.fixture(scope="module")
def x():
    return rng_for("test", "sklearn").standard_normal((200, 2)) @ [[2.0, 1.0], [0.0, 0.5]] + [10.0, -3.0]


def test_an_estimator_is_the_fit_of_its_model(x):
    estimator = dkef.sklearn.Gaussian(random_state=4).fit(x)
    direct = dkef.fit(x, "gaussian", seed=4)
    np.testing.assert_array_equal(estimator.score_samples(x), direct.log_prob(x))
    assert estimator.score(x) == pytest.approx(direct.log_prob(x).mean())
    np.testing.assert_array_equal(estimator.sample(5, random_state=1), direct.sample(5, 1))
    assert estimator.n_features_in_ == 2


def test_parameters_and_settings_reach_the_specification(x):
    estimator = dkef.sklearn.MAF(max_iterations=3, width=4, layers=2, settings={"batch_rows": 20}, random_state=0).fit(
        x
    )
    same = dkef.fit(x, "maf", max_iterations=3, width=4, layers=2, batch_rows=20)
    np.testing.assert_array_equal(estimator.score_samples(x), same.log_prob(x))
    with pytest.raises(ConfigError, match=r"widht is an unknown key; did you mean width\?"):
        dkef.sklearn.MADE(settings={"widht": 3}).fit(x)


def test_pipelines_and_grid_searches_take_them(x):
    search = GridSearchCV(dkef.sklearn.MADE(max_iterations=5, random_state=0), {"width": [2, 4]}, cv=2).fit(x)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    pipeline = make_pipeline(StandardScaler(), dkef.sklearn.Gaussian(random_state=0)).fit(x)
    expected = dkef.sklearn.Gaussian(random_state=0).fit(x).score_samples(x) + np.log(x.std(axis=0)).sum()
    np.testing.assert_allclose(pipeline.score_samples(x), expected, rtol=1e-9)


def test_estimators_are_compared_as_fits_are(x):
    one, two = dkef.sklearn.Gaussian(random_state=0).fit(x), dkef.sklearn.Gaussian(random_state=1).fit(x)
    assert list(dkef.compare({"one": one, "two": two}, x).index) == ["one", "two"]
