"""Intervals by resampling (Efron, 1979): draw n of n rows with replacement, many times, and see how a figure moves."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

__all__ = ["interval"]

RESAMPLES = 1000


def interval(
    rows: Tensor, figure: Callable[[Tensor], Tensor], seed: int = 0, resamples: int = RESAMPLES
) -> tuple[float, float]:
    """The 95 % interval of ``figure(rows)``; a figure of a batch of resampled rows [B, N, ...] is [B]."""
    rng = torch.Generator().manual_seed(seed)
    index = torch.randint(len(rows), (resamples, len(rows)), generator=rng).to(rows.device)
    found = torch.cat([figure(rows[part]) for part in index.split(100)]).double()
    low, high = torch.quantile(found, torch.tensor([0.025, 0.975], dtype=found.dtype, device=found.device)).tolist()
    return low, high
