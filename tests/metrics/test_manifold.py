"""Precision and recall against a search in plain Python, and on sets whose overlap is known."""

from __future__ import annotations

import math

import pytest
import torch

from lace.errors import DataError
from lace.metrics import manifold
from lace.metrics.manifold import inside, precision_recall


def normal(n: int, dim: int, seed: int, shift: float = 0.0) -> torch.Tensor:
    return torch.randn(n, dim, generator=torch.Generator().manual_seed(seed)) + shift


@pytest.mark.parametrize("k", [1, 3])
def test_equals_a_plain_search(monkeypatch: pytest.MonkeyPatch, k: int) -> None:
    monkeypatch.setattr(manifold, "ROWS", 7)
    samples, reference = normal(40, 2, 0, 0.7), normal(30, 2, 1)
    precision, recall = precision_recall(samples, reference, k)
    for found, points, others in ((precision, samples, reference), (recall, reference, samples)):
        rows = others.double().tolist()
        radii = [sorted(math.dist(one, other) for other in rows)[k] for one in rows]
        for point, within in zip(points.double().tolist(), found.tolist(), strict=True):
            assert within == any(math.dist(point, one) <= far for one, far in zip(rows, radii, strict=True))
    assert 0.1 < float(precision.mean()) < 0.9


def test_a_set_and_itself_and_one_far_away() -> None:
    points = normal(50, 8, 0)
    assert [float(part.mean()) for part in precision_recall(points, points)] == [1, 1]
    assert [float(part.mean()) for part in precision_recall(points, points + 100)] == [0, 0]


def test_a_set_that_lost_half_keeps_its_precision() -> None:
    """Two heaps in the reference, samples of one: all of them right, and half of the reference missing."""
    samples, reference = normal(200, 3, 0), torch.cat([normal(200, 3, 1), normal(200, 3, 2, 50.0)])
    precision, recall = precision_recall(samples, reference)
    assert float(precision.mean()) > 0.9
    assert float(recall[200:].mean()) == 0
    assert float(recall[:200].mean()) > 0.9


def test_on_a_line() -> None:
    """Points 0, 1, 3 have radii 1, 1, 2 to their nearest: the manifold is [-1, 5]."""
    points = torch.tensor([[-1.1], [-1.0], [2.0], [5.0], [5.1]])
    assert inside(points, torch.tensor([[0.0], [1.0], [3.0]]), k=1).tolist() == [0, 1, 1, 1, 0]


def test_too_few_pictures() -> None:
    with pytest.raises(DataError, match="4 are the fewest"):
        inside(normal(5, 2, 0), normal(3, 2, 0))
