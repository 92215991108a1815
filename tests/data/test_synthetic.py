from pathlib import Path

import numpy as np
import pytest

from dkef.config.compose import compose_cell
from dkef.config.typed import instantiate
from dkef.core.errors import ConfigError
from dkef.core.streams import rng_for
from dkef.data.synthetic.source import KNOWN, Synthetic

TURNED = {"funnel": 231.24, "banana": 231.24, "square": 205.07, "cosine": 140.90}


def source_of(dataset: str, fidelity: str) -> Synthetic:
    cell = compose_cell((f"dataset={dataset}", f"fidelity={fidelity}"))
    source = instantiate(cell.dataset.source)
    assert isinstance(source, Synthetic)
    return source


@pytest.mark.parametrize("name", KNOWN)
def test_rotation_follows_the_fidelity_key_for_four_sets_only(name: str) -> None:
    plain, turned = source_of(name, "paper"), source_of(name, "code")
    draws = [source.read(Path(), rng_for("test", name)).values for source in (plain, turned)]
    angle = np.radians(TURNED.get(name, 0.0))
    R = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    expected = draws[0] @ R.T if name in TURNED else draws[0]
    np.testing.assert_allclose(draws[1], expected, atol=1e-12)
    np.testing.assert_allclose(
        turned.true_density().log_density(draws[1]), plain.true_density().log_density(draws[0]), atol=1e-8
    )


def test_figure_1_has_exactly_3000_and_7000_points_of_its_components() -> None:
    source = source_of("gaussian_scales", "paper")
    law = KNOWN["gaussian_scales"]
    x = source.read(Path(), rng_for("test", "counts")).values
    assert x.shape == (10_000, 1)
    # Components come one after the other: their means are known to 0.2/sqrt(3000) and 1/sqrt(7000).
    assert x[:3000].mean() == pytest.approx(-1, abs=5 * 0.2 / 3000**0.5)
    assert x[3000:].mean() == pytest.approx(1, abs=5 / 7000**0.5)
    assert x[:3000].std() == pytest.approx(0.2, rel=0.06)
    assert np.isfinite(law.log_density(x)).all()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"distribution": "spiral"}, "distribution is 'spiral'; allowed is one of funnel"),
        ({"distribution": "ring", "rows": 0}, "rows is 0; allowed is >= 1"),
        ({"distribution": "gaussian_scales", "rotation_degrees": 5.0}, "0 for a distribution that is not planar"),
        ({"distribution": "ring", "stratified": True}, "false for a distribution that is not a normal mixture"),
    ],
)
def test_a_bad_synthetic_setting_is_one_sentence(arguments: dict[str, object], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        Synthetic(**arguments)  # type: ignore[arg-type]
