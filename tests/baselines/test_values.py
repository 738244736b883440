"""Sentences as rows of values, and what fills the rest."""

from __future__ import annotations

import math

import pytest
import torch

from lace.attributes.schema import Continuous, Schema
from lace.baselines.values import NEAREST, asked_values, filled, read_values
from lace.conditions.formula import Near
from lace.conditions.language import parse
from lace.errors import ConditionError, UnknownNameError

FREE = math.nan


def asked(sentence: str, schema: Schema) -> list[float]:
    return asked_values(parse(sentence, schema), schema).tolist()


def test_values_stand_in_the_columns_of_labels(schema: Schema) -> None:
    """smile no/yes, glasses no/yes, hair black/brown/blond, age of 0 to 80, yaw of -50 to 50."""
    assert asked("smile", schema) == pytest.approx([0, 1, *[FREE] * 7], nan_ok=True)
    assert asked("hair=brown & age=20 & yaw=25 & ~glasses", schema) == pytest.approx(
        [FREE, FREE, 1, 0, 0, 1, 0, 0.25, 0.75], nan_ok=True
    )


@pytest.mark.parametrize(
    "sentence",
    ["smile | glasses", "age>20", "2*smile", "~(smile & glasses)", "~hair=black", "smile & (age>3 | glasses)"],
)
def test_what_is_no_single_value_is_refused(schema: Schema, sentence: str) -> None:
    with pytest.raises(ConditionError, match="one value for each attribute"):
        asked(sentence, schema)


def test_two_values_are_refused(schema: Schema) -> None:
    with pytest.raises(ConditionError, match="age is given two"):
        asked("age=20 & smile & age=30", schema)


def test_words_of_another_model_are_refused(schema: Schema) -> None:
    with pytest.raises(UnknownNameError, match="wind"):
        asked_values(Near(Continuous("wind", 0, 1), 0.5), schema)
    with pytest.raises(ConditionError, match="age"):
        asked_values(Near(Continuous("age", 0, 10), 5), schema)


def test_readings_become_values(schema: Schema) -> None:
    """Probabilities of classes, numbers as they are, by name and not by place; NaN for what nobody reads."""
    smile, _, _, age, _ = schema
    other = Schema([age, Continuous("psi", 0, 1), smile])
    readings = torch.tensor([[0.3, 0.7, 0.1, 0.9, 0.2, 0.5, 0.3, 0.0, 0.0]]).log()
    readings[:, 7:] = torch.tensor([0.25, 0.5])
    assert read_values(readings, schema, other)[0].tolist() == pytest.approx([0.25, FREE, 0.3, 0.7], nan_ok=True)


def test_what_is_free_comes_from_the_nearest_examples() -> None:
    """The second column is a thousandth of the first in scale: distances are in deviations of each column."""
    rng = torch.Generator().manual_seed(0)
    examples = torch.rand(4000, 3, generator=rng) * torch.tensor([1.0, 1e-3, 1.0])
    examples[7, 2] = math.nan
    row = torch.tensor([0.5, 0.5e-3, FREE])
    rows = filled(row, examples, torch.rand(5000, generator=rng))
    assert torch.equal(rows[:, :2], row[:2].expand(5000, 2))
    spread = (examples[:, :2] - row[:2]) * torch.tensor([1.0, 1e3])
    near = examples[spread.square().sum(dim=1).sort().indices[: NEAREST + 5], 2]
    assert set(rows[:, 2].tolist()) <= set(near.tolist())
    assert len(rows[:, 2].unique()) == NEAREST


def test_everything_free_takes_every_example() -> None:
    examples = torch.arange(500.0)[:, None]
    rows = filled(torch.tensor([FREE]), examples, torch.linspace(0, 1, 5001)[1:])
    assert len(rows.unique()) == 500
