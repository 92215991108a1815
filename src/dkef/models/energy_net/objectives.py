"""What an energy network is trained by: a loss of each row, from the log density and its derivatives there.

An objective is a function of the network, rows x [n, d] and noise [n, d], which is 0 where rows validate; it returns
[n]. Sliced or denoising score matching would stand here beside the exact one, under a name in `OBJECTIVES` that
`EnergyNetwork.objective` allows.
"""

from collections.abc import Callable

from dkef.core.backend import Tensor, backend_of
from dkef.models.kef.kernels import Expansion

DensityJet = Callable[[Tensor], Expansion]  # log p~ [n] at rows [n, d], with d_d log p~ and d_d^2 log p~ [n, d]
Objective = Callable[[DensityJet, Tensor, Tensor], Tensor]


def score_matching(density: DensityJet, x: Tensor, noise: Tensor) -> Tensor:
    """sum_d [ d_d^2 log p~ + (d_d log p~)^2 / 2 ] at rows with noise (Hyvarinen 2005), every derivative exact."""
    log_p = density(x + noise)
    return backend_of(x).sum(log_p.second + 0.5 * log_p.first * log_p.first, -1)


OBJECTIVES: dict[str, Objective] = {"score_matching": score_matching}
