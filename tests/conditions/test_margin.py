"""Margins: their sign is the verdict of the heads' best guess, and they compose as min, max and minus."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from lace.attributes.schema import Schema
from lace.conditions.formula import And, Formula, Is, Near, Not, Or, Weighted, Within
from lace.conditions.language import parse
from lace.conditions.margin import margin

from .strategies import formulas, readings


def guess(formula: Formula, row: torch.Tensor, schema: Schema) -> bool:
    """The verdict on the likeliest class (against all others together) and the predicted number."""
    match formula:
        case Not(operand):
            return not guess(operand, row, schema)
        case And(operands):
            return all(guess(part, row, schema) for part in operands)
        case Or(operands):
            return any(guess(part, row, schema) for part in operands)
        case Weighted(_, operand):
            return guess(operand, row, schema)
        case Is(attribute, value):
            return bool(row[schema.slice(attribute.name)].exp()[attribute.classes.index(value)] > 0.5)
    attribute = formula.attribute
    number = float(row[schema.slice(attribute.name)][0]) * attribute.span + attribute.low
    if isinstance(formula, Near):
        return abs(number - formula.value) < 0.1 * attribute.span
    assert isinstance(formula, Within)
    return formula.low < number < formula.high


@given(data=st.data(), seed=st.integers(0, 10**6))
def test_sign_is_the_verdict(schema: Schema, data: st.DataObject, seed: int) -> None:
    formula = data.draw(formulas(schema))
    rows = readings(schema, 5, seed)
    found = (margin(formula, rows, schema) > 0).tolist()
    assert found == [guess(formula, row, schema) for row in rows]


def test_a_class_has_its_log_odds(schema: Schema) -> None:
    rows = readings(schema, 20, 4)
    p = rows[:, schema.slice("hair")][:, 2].exp()
    assert torch.allclose(margin(parse("hair=blond", schema), rows, schema), (p / (1 - p)).log())


def test_a_range_is_nearly_its_log_odds(schema: Schema) -> None:
    """For one side of a wide range, the logistic's factor makes both scales alike."""
    rows = readings(schema, 200, 5)
    number = rows[:, schema.slice("age")][:, 0] * 80
    near = (number - 40).abs() < 10
    p = torch.special.ndtr((number - 40) / 5)
    found = margin(parse("age>40", schema), rows, schema)
    assert ((found - (p / (1 - p)).log())[near].abs() < 0.35).all()
