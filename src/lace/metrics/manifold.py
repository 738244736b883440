"""Precision and recall of a set of samples (Kynkaanniemi et al., 2019).

    M(A)       the union over a in A of balls around a whose radius is the distance to a's k-th nearest in A
    precision  the share of samples inside M(reference):  does it look like the real thing?
    recall     the share of the reference inside M(samples):  is all of the real thing there?

They have the name of the network whose features were compared, and compare only sets of one size.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..errors import DataError

__all__ = ["inside", "precision_recall"]

NEIGHBOURS = 3
# Rows whose distances to all others are held at once.
ROWS = 1024


def precision_recall(samples: Tensor, reference: Tensor, k: int = NEIGHBOURS) -> tuple[Tensor, Tensor]:
    """Of every sample [N, D] whether it counts for precision [N], of every reference [M, D] whether for recall [M]."""
    return inside(samples, reference, k), inside(reference, samples, k)


def inside(points: Tensor, others: Tensor, k: int = NEIGHBOURS) -> Tensor:
    """1 for the points [N, D] that lie in the manifold of others [M, D], 0 for the others."""
    radii = radius(others, k)
    rows = [(torch.cdist(part, others.double()) <= radii).any(dim=1) for part in points.double().split(ROWS)]
    return torch.cat(rows).float()


def radius(points: Tensor, k: int) -> Tensor:
    """The distance of every point to its k-th nearest neighbour."""
    if len(points) <= k:
        raise DataError(f"{len(points)} pictures have no {k} neighbours each; {k + 1} are the fewest.")
    own = points.double()
    # A point is its own nearest.
    return torch.cat([torch.cdist(part, own).kthvalue(k + 1, dim=1).values for part in own.split(ROWS)])
