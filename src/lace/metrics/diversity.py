"""How different the pictures of a set are from one another: the mean distance of all pairs, by features of a network.

    D = sum_{i < j} d(x_i, x_j) / (n (n - 1) / 2),   d(a, b) = |a - b|, or 1 - a.b / (|a| |b|)

A set that has collapsed onto one picture has 0. It has the name of the network whose features were compared. The
interval resamples pictures; a picture that is drawn twice is no pair with itself.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from ..errors import DataError
from .bootstrap import Estimate, estimate

__all__ = ["cosine", "diversity", "euclidean"]


def euclidean(features: Tensor) -> Tensor:
    """All distances [N, N] of features [N, D]."""
    return torch.cdist(features, features)


def cosine(features: Tensor) -> Tensor:
    """All cosine distances [N, N] of features [N, D]."""
    unit = F.normalize(features, dim=1)
    return 1 - unit @ unit.T


def diversity(distances: Tensor, seed: int = 0) -> Estimate:
    """The mean over all pairs of distances [N, N]."""
    n = len(distances)
    if n < 2:
        raise DataError("One picture is no pair; diversity needs at least two.")
    pairs = distances.double().clone().fill_diagonal_(0)

    def over_pairs(drawn: Tensor) -> Tensor:
        """Of each row of drawn pictures [B, N] the mean, from how often every picture was drawn."""
        times = torch.zeros(len(drawn), n, dtype=pairs.dtype, device=pairs.device)
        times.scatter_add_(1, drawn, torch.ones_like(drawn, dtype=pairs.dtype))
        return ((times @ pairs) * times).sum(dim=1) / (n * n - times.square().sum(dim=1)).clamp_min(1)

    return estimate(torch.arange(n, device=pairs.device), over_pairs, seed)
