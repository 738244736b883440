"""Mean pairwise distance against every pair counted, and closed forms."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

from lace.errors import DataError
from lace.metrics.diversity import cosine, diversity, euclidean

from ..conftest import within


def test_every_pair_counted() -> None:
    points = torch.randn(12, 3, generator=torch.Generator().manual_seed(0)).double()
    truth = [math.dist(a, b) for a, b in itertools.combinations(points.tolist(), 2)]
    assert diversity(euclidean(points)).value == pytest.approx(sum(truth) / len(truth))


def test_angles() -> None:
    """Directions 0, 90 and 180 degrees, at any length: distances 1, 1 and 2."""
    assert diversity(cosine(torch.tensor([[3.0, 0], [0, 0.1], [-2, 0]]))).value == pytest.approx(4 / 3)


def test_a_set_that_has_collapsed() -> None:
    assert diversity(euclidean(torch.ones(20, 5))) == pytest.approx((0, 0, 0), abs=1e-6)


def test_a_picture_drawn_twice_is_no_pair_with_itself() -> None:
    """All corners of a simplex are equally far apart, whichever are drawn."""
    assert diversity(euclidean(torch.eye(12))) == pytest.approx((2**0.5,) * 3, abs=1e-6)


def test_the_interval_is_as_wide_as_theory_says() -> None:
    """Uniform numbers: E|a - b| = 1/3, and its variance is 4/n Var(x^2 - x + 1/2) = 4 / (180 n) to first order."""
    n = 400
    found = diversity(euclidean(torch.rand(n, 1, generator=torch.Generator().manual_seed(0))))
    error = (4 / (180 * n)) ** 0.5
    assert within(found.value, 1 / 3, error)
    # The ends and the estimated variance are each known to about 3 %.
    assert within((found.high - found.low) / (2 * 1.96 * error), 1, 0.045)


def test_one_picture() -> None:
    with pytest.raises(DataError, match="at least two"):
        diversity(torch.zeros(1, 1))
