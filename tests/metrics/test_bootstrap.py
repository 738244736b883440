"""Bootstrap intervals against the normal interval of a mean, and their coverage."""

from __future__ import annotations

import torch

from lace.metrics.bootstrap import interval

from ..conftest import within


def mean(rows: torch.Tensor) -> torch.Tensor:
    return rows.mean(dim=1)


def test_the_interval_of_a_mean() -> None:
    rows = torch.randn(400, generator=torch.Generator().manual_seed(0))
    low, high = interval(rows, mean)
    half = 1.96 * float(rows.std()) / 20
    # A quantile of 1,000 resamples is known to about 0.085 standard errors of the mean at the 2.5 % tail.
    error = 0.085 * float(rows.std()) / 20
    assert within(low, float(rows.mean()) - half, error)
    assert within(high, float(rows.mean()) + half, error)


def test_coverage() -> None:
    """Of 300 intervals about 95 % hold the truth."""
    rng = torch.Generator().manual_seed(1)
    held = 0
    for k in range(300):
        low, high = interval((torch.rand(100, generator=rng) < 0.3).float(), mean, seed=k, resamples=200)
        held += low <= 0.3 <= high
    # Discreteness and skewness cost a percent or two at n = 100.
    assert within(held / 300, 0.94, (0.94 * 0.06 / 300) ** 0.5)
