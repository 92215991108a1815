"""The type of every array in this package."""

from typing import Any

import numpy.typing as npt

Array = npt.NDArray[Any]
