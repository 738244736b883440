"""ACC on judgements whose score can be counted by hand."""

from __future__ import annotations

import math

import pytest
import torch

from lace.attributes.schema import Schema
from lace.metrics.accuracy import ALL, accuracy, matches
from lace.metrics.bootstrap import estimate, interval, mean

NAN = float("nan")


def row(smile: float = NAN, glasses: float = NAN, hair: int | None = None, age: float = NAN, yaw: float = NAN):
    """A row of the layout: p(yes), p(yes), the class of hair, years, degrees."""
    colours = [NAN] * 3 if hair is None else [float(k == hair) for k in range(3)]
    return torch.tensor([1 - smile, smile, 1 - glasses, glasses, *colours, age / 80, (yaw + 50) / 100])


def test_a_small_table_counted_by_hand(schema: Schema) -> None:
    asked = row(smile=1, hair=2, age=40)
    judged = torch.stack(
        [
            row(smile=0.6, glasses=0.1, hair=2, age=40, yaw=3),
            row(smile=0.4, glasses=0.1, hair=2, age=48, yaw=3),
            row(smile=0.9, glasses=0.9, hair=1, age=24, yaw=3),
            row(smile=0.9, glasses=0.9, hair=2, age=NAN, yaw=3),
        ]
    )
    scores = accuracy(judged, asked, schema)
    assert list(scores) == ["smile", "hair", "age", ALL]
    assert scores["smile"].acc.value == pytest.approx(3 / 4)
    assert scores["hair"].acc.value == pytest.approx(3 / 4)
    assert scores["age"].acc.value == pytest.approx(1 - (0 + 0.1 + 0.2) / 3)
    assert scores["age"].error
    assert scores["age"].error.value == pytest.approx(8)
    # Right in all; smile wrong; hair wrong; not read.
    assert scores[ALL].acc.value == pytest.approx(1 / 3)
    assert [score.pictures for score in scores.values()] == [4, 4, 3, 3]
    assert scores["smile"].error is None


def test_the_match_of_all_is_the_product(schema: Schema) -> None:
    judged = torch.stack([row(smile=0.9, age=44, yaw=-10), row(smile=0.2, age=40, yaw=0)])
    scores = accuracy(judged, row(smile=1, age=40, yaw=10), schema)
    assert scores[ALL].acc.value == pytest.approx((0.95 * 0.8 + 0) / 2)


def test_two_numbers_far_off_are_no_match(schema: Schema) -> None:
    """1 - |d| is below 0 for both; their product would be above it."""
    scores = accuracy(row(age=400, yaw=900)[None], row(age=0, yaw=0), schema)
    assert scores[ALL].acc.value == 0
    assert scores["age"].acc.value == pytest.approx(-4)


def test_every_picture_may_be_asked_something_else(schema: Schema) -> None:
    judged = torch.stack([row(smile=0.9, age=20), row(smile=0.9, age=20)])
    asked = torch.stack([row(smile=0), row(age=40)])
    match = matches(judged, asked, schema)
    assert match[0, 0] == 0
    assert match[1, 3] == pytest.approx(0.75)
    assert match.isfinite().sum() == 2
    assert accuracy(judged, asked, schema)[ALL].acc.value == pytest.approx(0.375)


def test_nothing_read_is_no_number(schema: Schema) -> None:
    scores = accuracy(row(smile=0.5)[None], row(age=40), schema)
    assert scores["age"].pictures == 0
    assert math.isnan(scores["age"].acc.value)


def test_intervals_are_the_bootstraps() -> None:
    rows = torch.rand(50, generator=torch.Generator().manual_seed(0))
    found = estimate(rows, mean, seed=3)
    assert found.value == pytest.approx(float(rows.mean()))
    assert (found.low, found.high) == interval(rows, lambda part: part.mean(dim=1), seed=3)
