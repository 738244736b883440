"""The Frechet distance against closed forms and another way to work it out."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from lace.errors import DataError
from lace.metrics.frechet import Moments, frechet_distance, moments


def gaussian(seed: int, dim: int = 6) -> Moments:
    rng = torch.Generator().manual_seed(seed)
    half = torch.randn(dim, dim, generator=rng, dtype=torch.float64)
    return Moments(torch.randn(dim, generator=rng, dtype=torch.float64), half @ half.T)


def test_shifted_and_scaled() -> None:
    """N(m, a^2 I) and N(0, b^2 I): |m|^2 + D (a - b)^2."""
    one = Moments(torch.full((5,), 2.0).double(), 9 * torch.eye(5).double())
    other = Moments(torch.zeros(5).double(), torch.eye(5).double())
    assert frechet_distance(one, other) == pytest.approx(5 * 4 + 5 * 4, abs=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_equals_the_product_form(seed: int) -> None:
    """tr (S1 S2)^1/2 from the eigenvalues of the plain, unsymmetric product."""
    one, other = gaussian(seed), gaussian(seed + 100)
    values = np.linalg.eigvals((one.covariance @ other.covariance).numpy())
    truth = float((one.mean - other.mean).square().sum() + one.covariance.trace() + other.covariance.trace())
    truth -= 2 * np.sqrt(values.astype(complex)).real.sum()
    assert frechet_distance(one, other) == pytest.approx(truth, rel=1e-9)
    assert frechet_distance(other, one) == pytest.approx(truth, rel=1e-9)


def test_nothing_between_a_set_and_itself_even_where_it_is_flat() -> None:
    rows = torch.randn(20, 50, generator=torch.Generator().manual_seed(0))
    assert frechet_distance(moments(rows), moments(rows)) == pytest.approx(0, abs=1e-5)


def test_moments_are_numpys() -> None:
    rows = torch.randn(40, 3, generator=torch.Generator().manual_seed(1)).double()
    found = moments(rows)
    assert np.allclose(found.mean, rows.numpy().mean(axis=0))
    assert np.allclose(found.covariance, np.cov(rows.numpy(), rowvar=False))


def test_a_weight_counts_a_row_as_often() -> None:
    rows = torch.randn(5, 3, generator=torch.Generator().manual_seed(2)).double()
    times = torch.tensor([1, 3, 2, 1, 4])
    weighted, repeated = moments(rows, times.double()), rows.repeat_interleave(times, dim=0)
    assert torch.allclose(weighted.mean, repeated.mean(dim=0))
    assert np.allclose(weighted.covariance, np.cov(rows.numpy(), rowvar=False, aweights=times.numpy()))


def test_one_picture_is_no_distribution() -> None:
    with pytest.raises(DataError, match="two pictures"):
        moments(torch.zeros(1, 3))
