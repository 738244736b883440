"""Intervals by resampling (Efron, 1979): draw n of n rows with replacement, many times, and see how a figure moves."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["Estimate", "estimate", "estimates", "interval", "mean"]

RESAMPLES = 1000


class Estimate(NamedTuple):
    """A figure with its 95 % interval."""

    value: float
    low: float
    high: float


NOTHING = Estimate(*[float("nan")] * 3)


def interval(
    rows: Tensor, figure: Callable[[Tensor], Tensor], seed: int = 0, resamples: int = RESAMPLES
) -> tuple[float, float]:
    """The 95 % interval of ``figure(rows)``; a figure of a batch of resampled rows [B, N, ...] is [B]."""
    low, high = _quantiles(rows, figure, seed, resamples).tolist()
    return low, high


def estimate(rows: Tensor, figure: Callable[[Tensor], Tensor], seed: int = 0, resamples: int = RESAMPLES) -> Estimate:
    """``figure(rows)`` with its interval; no number where there are no rows."""
    return estimates(rows, lambda part: figure(part)[:, None], seed, resamples)[0] if len(rows) else NOTHING


def estimates(
    rows: Tensor, figures: Callable[[Tensor], Tensor], seed: int = 0, resamples: int = RESAMPLES
) -> list[Estimate]:
    """Several figures of the same rows at once; of a batch of resampled rows they are [B, figures]."""
    values, bounds = figures(rows[None])[0], _quantiles(rows, figures, seed, resamples)
    return [Estimate(*each) for each in torch.cat([values[None].double(), bounds]).T.tolist()]


def mean(rows: Tensor) -> Tensor:
    """The figure of most metrics: the mean of each batch of resampled rows [B, N]."""
    return rows.mean(dim=1)


def _quantiles(rows: Tensor, figures: Callable[[Tensor], Tensor], seed: int, resamples: int) -> Tensor:
    """The lower and the upper end of the intervals, [2] or [2, figures]."""
    rng = torch.Generator().manual_seed(seed)
    index = torch.randint(len(rows), (resamples, len(rows)), generator=rng).to(rows.device)
    found = torch.cat([figures(rows[part]) for part in index.split(100)]).double()
    return torch.quantile(found, torch.tensor([0.025, 0.975], dtype=found.dtype, device=found.device), dim=0)
