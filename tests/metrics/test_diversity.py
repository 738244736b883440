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


def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    """Uniform numbers: E|a - b| = 1/3. A picture drawn twice that counted as a pair would pull the interval down."""
    held = 0
    for k in range(200):
        found = diversity(euclidean(torch.rand(40, 1, generator=torch.Generator().manual_seed(k))), seed=k)
        held += found.low <= 1 / 3 <= found.high
    assert within(held / 200, 0.94, (0.94 * 0.06 / 200) ** 0.5)


def test_one_picture() -> None:
    with pytest.raises(DataError, match="at least two"):
        diversity(torch.zeros(1, 1))
