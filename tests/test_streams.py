"""Named random streams."""

import numpy as np

from dkef.core.streams import rng_for, stream_key


def test_the_same_name_gives_the_same_stream_and_another_name_another_one():
    first = rng_for("noise", "ring", 0).standard_normal(1000)
    again = rng_for("noise", "ring", 0).standard_normal(1000)
    other = rng_for("noise", "ring", 1).standard_normal(1000)
    np.testing.assert_array_equal(first, again)
    # Correlation of independent normals has standard deviation 1/sqrt(1000) = 0.03; 5 of these is out of reach.
    assert abs(np.corrcoef(first, other)[0, 1]) < 0.16


def test_names_cannot_run_into_each_other():
    assert stream_key("a", "bc") != stream_key("ab", "c")
    assert stream_key("a", 1) != stream_key("a", "1")
