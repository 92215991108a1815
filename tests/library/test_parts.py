"""Rows in separate parts: when they are seen as such, and that each part then has its share of the mass."""

import numpy as np
import pytest

import dkef
from dkef.core.streams import rng_for
from dkef.library.parts import separate_parts

CENTRES = np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]])


def blobs(sizes: tuple[int, ...], centres: np.ndarray = CENTRES) -> np.ndarray:
    rng = rng_for("test", "parts")
    rows = [c + 0.5 * rng.standard_normal((n, len(c))) for c, n in zip(centres, sizes, strict=True)]
    return rng.permutation(np.concatenate(rows))


def test_parts_between_which_there_is_nothing_are_counted_with_their_rows() -> None:
    assert sorted(separate_parts(blobs((150, 250, 400)))) == [150, 250, 400]


def ring() -> np.ndarray:
    angle = rng_for("test", "ring").uniform(0, 2 * np.pi, 1000)
    return np.column_stack([np.cos(angle), np.sin(angle)])


def heavy_tails() -> np.ndarray:
    rng = rng_for("test", "tails")
    return rng.standard_normal((1000, 2)) / np.sqrt(rng.chisquare(1.5, (1000, 1)))


def whole_numbers() -> np.ndarray:
    return rng_for("test", "integers").poisson(4, (1000, 2)).astype(float)


def with_yes_and_no() -> np.ndarray:
    """Two parts, but in each of them a column is constant: no density of its own can be fitted to one."""
    rng = rng_for("test", "binary")
    return np.column_stack([rng.standard_normal(600), np.where(rng.random(600) < 0.5, 0.0, 20.0)])


def many() -> np.ndarray:
    centres = np.stack(np.meshgrid(np.arange(4), np.arange(4)), axis=-1).reshape(-1, 2) * 20.0
    return blobs((150,) * 16, centres)


@pytest.mark.parametrize("x", [
    ring(), heavy_tails(), whole_numbers(), with_yes_and_no(), many(), blobs((500, 500, 20)), blobs((90, 90, 90)),
    np.eye(3),
], ids=["ring", "heavy tails", "whole numbers", "yes and no", "many", "outliers", "few rows", "tiny"])  # fmt: skip
def test_where_it_is_not_clear_the_rows_are_one_part(x: np.ndarray) -> None:
    assert separate_parts(x) == (len(x),)


def test_without_a_name_each_part_has_its_share_of_the_mass() -> None:
    """By sums over a grid around each part; shares of rows are exact, and log Z of a component to some percent."""
    x = blobs((200, 300, 500)) * [100.0, 1.0]
    fit = dkef.fit(x, width=6, layers=2, inducing_points=20, max_iterations=20, phase2_iterations=5)
    assert fit.name == "mixture_dkef_g15"
    assert fit.log_z.status == "ok"
    axis = np.linspace(-4, 4, 81)
    offsets = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    order = rng_for("split", "dkef.fit", 0).permutation(len(x))
    distances = np.linalg.norm((x / [100.0, 1.0])[order[100:], None] - CENTRES, axis=-1)
    nearest = distances.argmin(axis=1)
    for part, centre in enumerate(CENTRES):
        mass = np.exp(fit.log_prob((centre + offsets) * [100.0, 1.0])).sum() * 100.0 * (axis[1] - axis[0]) ** 2
        assert mass == pytest.approx((nearest == part).mean(), abs=0.02)


def test_a_name_is_followed_whatever_the_rows_are() -> None:
    assert dkef.fit(blobs((150, 150, 150)), "gaussian").name == "gaussian"
