"""The Frechet distance between two sets of features, taken for Gaussians (Dowson and Landau, 1982).

    d^2 = |m1 - m2|^2 + tr(S1 + S2 - 2 (S1^1/2 S2 S1^1/2)^1/2)

It is called FID only on the features of the standard Inception network; on others it has the name of their network.
It grows as samples get fewer, so it compares only sets of one size, beside the distance of two sets that are alike.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ..errors import DataError

__all__ = ["Moments", "frechet_distance", "moments"]


class Moments(NamedTuple):
    """Mean [D] and covariance [D, D] of features."""

    mean: Tensor
    covariance: Tensor


def moments(features: Tensor, weights: Tensor | None = None) -> Moments:
    """The moments of features [N, D], in double precision; ``weights`` [N] say how much each row counts."""
    if len(features) < 2:
        raise DataError("A distribution needs at least two pictures.")
    rows = features.double()
    share = rows.new_full((len(rows),), 1 / len(rows)) if weights is None else weights.to(rows) / weights.double().sum()
    mean = share @ rows
    centred = rows - mean
    # What a weighted sample lacks to be unbiased; n / (n - 1) for equal weights.
    unbiased = 1 / (1 - share.square().sum())
    return Moments(mean, unbiased * (centred * share[:, None]).T @ centred)


def frechet_distance(one: Moments, other: Moments) -> float:
    """The squared distance, as is usual."""
    # Where there are fewer pictures than features many eigenvalues are alike, and a GPU's solver gives up.
    one, other = (Moments(*(part.cpu() for part in moments)) for moments in (one, other))
    root = square_root(one.covariance)
    # Rounding may leave small negative eigenvalues where features are flat.
    overlap = torch.linalg.eigvalsh(root @ other.covariance @ root).clamp_min(0).sqrt().sum()
    spread = one.covariance.trace() + other.covariance.trace()
    return float((one.mean - other.mean).square().sum() + spread - 2 * overlap)


def square_root(matrix: Tensor) -> Tensor:
    """The symmetric root of a covariance."""
    values, vectors = torch.linalg.eigh(matrix)
    return (vectors * values.clamp_min(0).sqrt()) @ vectors.T
