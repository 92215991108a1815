"""Witnesses: the closed form of a mixture of Gaussians in raw coordinates, quadrature, finite differences."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from dkef.config.code import target_modules
from dkef.config.compose import compose_cell
from dkef.config.files import choices, config_folder
from dkef.core.arrays import Array
from dkef.core.errors import ConfigError, DkefError
from dkef.core.streams import rng_for
from dkef.data.synthetic.distributions import NormalMixture
from dkef.data.synthetic.planar import Rings
from dkef.data.whitening import Whitening
from dkef.models.gaussian.density import GaussianModel
from dkef.models.mixture.density import LogZ, MixtureModel, Part, curvature_along
from dkef.models.mixture.fit import spectral_clusters
from dkef.models.mixture.spec import Mixture
from dkef.models.protocol import DensityModel, Evaluation, Fit, FitContext
from dkef.models.storage import load_model, write_model
from dkef.normaliser.components import ComponentLogZ

GAUSSIAN = {"_target_": "dkef.models.gaussian.spec.Gaussian"}
TWO = NormalMixture(np.array([0.3, 0.7]), np.array([[4.0, 0.0], [-4.0, 1.0]]), np.array([0.5, 1.0]))


@dataclass(frozen=True)
class UnnormalisedSpec:
    """Fits a Gaussian, forgets its constant and leaves a checkpoint behind."""

    normalised: ClassVar[bool] = False

    def fit(self, train: Array, valid: Array, context: FitContext) -> Fit:
        assert context.checkpoint is not None
        context.checkpoint.write_text("state")
        fitted = GaussianModel.fit(train)
        return Fit(Unnormalised(fitted.mean, fitted.cholesky), stopped="converged", trace=[{"loss": 1.0}])


class Unnormalised(GaussianModel, of=UnnormalisedSpec):
    """A Gaussian without its constant: log density off by log Z = 2.5."""

    def log_density(self, x: Array) -> Array:
        return super().log_density(x) + 2.5


def two_gaussians(kind: type[GaussianModel] = GaussianModel, log_z: LogZ | None = None) -> MixtureModel:
    """TWO written as a mixture of standard normals, each in skew coordinates of its own."""
    parts = []
    for i, angle in enumerate((0.4, 2.0)):
        R = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
        W = R * np.array([0.8, 1.7]) / TWO.stds[i]
        model = kind(np.zeros(2), np.diag([0.8, 1.7]))
        parts.append(Part(float(TWO.weights[i]), Whitening(TWO.means[i], W), model, log_z or LogZ()))
    return MixtureModel(tuple(parts))


def near_both(n: int) -> Array:
    """Points around and between the two components."""
    return rng_for("test", "mixture", "points").normal(size=(n, 2)) * np.array([3.0, 1.0])


def test_density_score_and_curvature_equal_the_closed_form_in_raw_coordinates() -> None:
    x = near_both(50)
    at = two_gaussians().evaluate(x)
    np.testing.assert_allclose(at.log_density, TWO.log_density(x), rtol=1e-12)
    np.testing.assert_allclose(at.score, TWO.score(x), rtol=1e-10, atol=1e-10)
    # differences of a score of size ~30 with step 5e-4 round at 1e-15 * 30 / 5e-4
    np.testing.assert_allclose(at.curvature, TWO.curvature(x), atol=1e-9)


def test_a_component_with_an_estimated_log_z_enters_with_its_normalised_density() -> None:
    x = near_both(20)
    model = two_gaussians(Unnormalised, LogZ(2.5, 0.01, 0.001))
    np.testing.assert_allclose(model.log_prob(x), TWO.log_density(x), rtol=1e-12)


def test_log_z_of_a_component_agrees_with_quadrature() -> None:
    from dkef.models.kef.density import KefModel
    from dkef.models.kef.parameters import BaseMeasure, Component, KefParameters

    rng = rng_for("test", "mixture", "kef")
    q0 = BaseMeasure(np.array([0.1, -0.2]), np.array([1.0, 1.5]), np.array([2.0, 1.8]))
    kernel = Component("gaussian", 1.0, 0.5, ())
    parameters = KefParameters(rng.normal(size=5), rng.normal(size=(5, 2)), (kernel,), q0)
    found = ComponentLogZ(200_000).log_z(KefModel(parameters), rng.normal(size=(100, 2)), FitContext())
    axis = np.linspace(-15, 15, 601)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    exact = math.log(np.exp(parameters.log_density(grid)).sum() * (axis[1] - axis[0]) ** 2)
    assert found.status == "ok"
    assert found.stderr < 0.02
    assert found.value == pytest.approx(exact, abs=4 * found.stderr)
    assert 0 < found.bias_bound < 0.01


def test_curvature_along_a_direction_equals_that_of_the_true_hessian() -> None:
    x = rng_for("test", "mixture", "ring").normal(size=(30, 2)) + np.array([3.0, 3.0])

    class Ring(Unnormalised):
        def evaluate(self, x: Array, batch: int = 1000) -> Evaluation:
            ring = Rings((5.0,), 0.5)
            return Evaluation(ring.log_density(x), ring.score(x), ring.curvature(x))

    directions = np.array([[1.0, 0.0], [0.3, -2.0]])
    found = curvature_along(Ring(np.zeros(2), np.eye(2)), x, directions)
    expected = np.einsum("ka,nab,kb->nk", directions, Rings((5.0,), 0.5).hessian(x), directions)
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-8)


def test_the_mixture_density_integrates_to_one() -> None:
    axis = np.linspace(-10, 10, 401)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    total = np.exp(two_gaussians().log_density(grid)).sum() * (axis[1] - axis[0]) ** 2
    assert total == pytest.approx(1, abs=1e-8)  # the trapezoidal rule on smooth, decayed integrands


def test_a_mixture_doubts_what_one_of_its_components_doubts() -> None:
    first, second = two_gaussians().parts
    assert MixtureModel((first, second)).log_z_status == "ok"
    doubted = replace(second, log_z=LogZ(status="untrusted: few samples"))
    assert MixtureModel((first, doubted)).log_z_status == "untrusted: component 1, few samples"


def test_a_mixture_remembers_the_cluster_of_every_training_row() -> None:
    x = near_both(100)
    fit = Mixture(GAUSSIAN, clusters=2).fit(x, x[:10], FitContext())
    again = MixtureModel.restore(fit.model.settings(), fit.model.arrays())
    np.testing.assert_array_equal(again.clusters, spectral_clusters(x, 2, 10, rng_for("clusters", "data", 0)))


def test_samples_have_the_weights_and_the_places_of_the_components() -> None:
    x = two_gaussians().sample(4000, rng_for("test", "mixture", "sample"))
    right = x[:, 0] > 1
    # four standard errors each: sqrt(.3 * .7 / 4000), .5 / sqrt(1200)
    assert right.mean() == pytest.approx(0.3, abs=4 * 0.0073)
    np.testing.assert_allclose(x[right].mean(axis=0), [4, 0], atol=4 * 0.0145)
    np.testing.assert_allclose(np.cov(x[~right].T), np.eye(2), atol=0.15)


def test_a_model_file_gives_back_the_same_mixture(tmp_path: Path) -> None:
    model = two_gaussians()
    write_model(tmp_path / "model.h5", Fit(model), {})
    again = load_model(tmp_path / "model.h5")
    x = near_both(5)
    np.testing.assert_array_equal(again.evaluate(x).score, model.evaluate(x).score)


def test_a_file_cannot_choose_a_foreign_module_to_import() -> None:
    model = two_gaussians()
    settings = {"components": [{"class": "antigravity.Model", "settings": {}, "log_z_status": "ok"}]}
    with pytest.raises(DkefError, match="import antigravity first"):
        MixtureModel.restore(settings, model.arrays())


def test_a_component_of_a_class_that_is_gone_is_one_sentence() -> None:
    """Found by fuzzing: a ModuleNotFoundError."""
    model = two_gaussians()
    settings = {"components": [{"class": "dkef.modens.Gone", "settings": {}, "log_z_status": "ok"}]}
    with pytest.raises(DkefError, match=r"dkef\.modens\.Gone, which cannot be imported"):
        MixtureModel.restore(settings, model.arrays())


def test_three_rings_are_clustered_by_radius_and_the_largest_comes_first() -> None:
    x = Rings((1.0, 3.0, 5.0), 0.1).sample(1500, rng_for("test", "mixture", "rings"))
    labels = spectral_clusters(x, 3, 10, rng_for("test", "clusters"))
    np.testing.assert_array_equal(labels, (2 - np.round((np.linalg.norm(x, axis=1) - 1) / 2)).astype(int))


def test_weights_are_shares_of_the_rows_and_each_component_is_fitted_to_its_cluster_alone() -> None:
    x = TWO.sample(900, rng_for("test", "mixture", "fit"))
    fit = Mixture(GAUSSIAN, clusters=2).fit(x, x[:50], FitContext())
    assert isinstance(fit.model, MixtureModel)
    left = x[:, 0] < 0
    assert fit.model.parts[0].weight == left.mean()
    np.testing.assert_allclose(fit.model.parts[0].whitening.mean, x[left].mean(axis=0), rtol=1e-12)
    assert fit.stopped == "closed form"
    # a two-component fit of 900 rows has 9 free numbers: its likelihood is below the truth's by about 9 / (2 * 900)
    gap = (TWO.log_density(y := TWO.sample(5000, rng_for("test", "y"))) - fit.model.log_density(y)).mean()
    assert -0.005 < gap < 0.03


def test_clusters_depend_on_dataset_and_seed_but_not_on_the_model() -> None:
    x = TWO.sample(300, rng_for("test", "mixture", "fit"))
    one = Mixture(GAUSSIAN, clusters=3).fit(x, x[:5], FitContext(model="a")).model.arrays()["mean"]
    other = Mixture(GAUSSIAN, clusters=3).fit(x, x[:5], FitContext(model="b")).model.arrays()["mean"]
    np.testing.assert_array_equal(one, other)


ASKED: list[tuple[Any, ...]] = []


@dataclass(frozen=True)
class KnownLogZ:
    """The constant that `Unnormalised` leaves out; notes what it is asked."""

    value: float = 2.5

    def log_z(self, model: DensityModel, train: Array, context: FitContext) -> LogZ:
        ASKED.append((context.model, context.checkpoint, train))
        return LogZ(self.value, 0.1, 0.01)


def test_an_unnormalised_component_gets_its_own_log_z_and_a_place_for_its_own_checkpoint(tmp_path: Path) -> None:
    ASKED.clear()
    x = TWO.sample(400, rng_for("test", "mixture", "fit"))
    log_z = {"_target_": f"{__name__}.KnownLogZ", "value": 2.5}
    spec = Mixture({"_target_": f"{__name__}.UnnormalisedSpec"}, clusters=2, log_z=log_z)
    fit = spec.fit(x, x[:20], FitContext(model="m", checkpoint=tmp_path / "checkpoint-1.h5"))
    assert [entry[:2] for entry in ASKED] == [
        (f"m/component{i}", tmp_path / f"checkpoint-1-component{i}.h5") for i in (0, 1)
    ]
    for part, (*_, rows) in zip(fit.model.parts, ASKED, strict=True):  # whitened, without those that validate
        assert len(rows) == round(part.weight * 400) - int(0.1 * part.weight * 400)
        np.testing.assert_allclose(np.cov(rows.T), np.eye(2), atol=0.2)
    assert fit.notes["component1.log_z_stderr"] == 0.1
    assert not list(tmp_path.iterdir())
    plain = Mixture(GAUSSIAN, clusters=2).fit(x, x[:20], FitContext(model="m"))
    np.testing.assert_allclose(fit.model.log_prob(x), plain.model.log_prob(x), rtol=1e-12)


def test_an_unnormalised_component_without_a_normaliser_is_refused_before_it_is_fitted() -> None:
    with pytest.raises(DkefError, match="log_z is null, but the component UnnormalisedSpec is not normalised; name a"):
        Mixture({"_target_": f"{__name__}.UnnormalisedSpec"}, clusters=2)


def test_the_code_that_normalises_components_counts_as_code_of_the_mixture() -> None:
    section = compose_cell(("model=mixture_dkef_g15",)).model
    assert {"dkef.models.mixture.spec", "dkef.models.kef.spec", "dkef.normaliser.components"} == set(
        target_modules(section)
    )
    with pytest.raises(ConfigError, match=r"model\.log_z\.samples is 1; allowed is >= 1000"):
        compose_cell(("model=mixture_dkef_g15", "model.log_z.samples=1"))


def test_a_diverged_component_makes_a_diverged_mixture() -> None:
    x = TWO.sample(400, rng_for("test", "mixture", "fit"))
    fit = Mixture({"_target_": f"{__name__}.Diverging"}, clusters=2).fit(x, x[:20], FitContext())
    assert (fit.status, fit.stopped) == ("diverged", "diverged")
    assert [record["component"] for record in fit.trace] == [0, 1]


@dataclass(frozen=True)
class Diverging:
    def fit(self, train: Array, valid: Array, context: FitContext) -> Fit:
        return Fit(GaussianModel.fit(train), status="diverged", stopped="diverged", trace=[{"loss": 1.0}])


def test_a_cluster_too_small_to_validate_is_refused_with_a_sentence() -> None:
    x = np.concatenate([TWO.sample(60, rng_for("test", "few")), 50 + TWO.sample(5, rng_for("test", "fewer"))])
    with pytest.raises(DkefError, match="a cluster of 5 rows is too small"):
        Mixture(GAUSSIAN, clusters=2, neighbours=4).fit(x, x[:5], FitContext())


def test_a_wrong_key_inside_the_component_is_found_when_the_configuration_is_read() -> None:
    with pytest.raises(ConfigError, match=r"model\.component"):
        compose_cell(("model=mixture_gaussian", "+model.component.width=3"))


def test_every_mixture_configuration_names_the_component_in_its_file_name() -> None:
    names = {name for name in choices("model") if name.startswith("mixture_")}
    assert {"mixture_gaussian", "mixture_maf", "mixture_dkef_g15"} <= names
    for name in names:
        text = (config_folder() / "model" / f"{name}.yaml").read_text()
        assert f"override /model@component: {name.removeprefix('mixture_')}\n" in text


def test_a_component_is_configured_like_the_same_model_alone_and_the_clusters_come_from_the_fidelity() -> None:
    mixed: Mapping[str, Any] = compose_cell(("model=mixture_maf", "fidelity=code")).model
    alone: Mapping[str, Any] = compose_cell(("model=maf", "fidelity=code")).model
    assert mixed["component"] == alone
    assert mixed["clusters"] == 5
