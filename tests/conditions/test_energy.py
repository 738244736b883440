"""The paper's energies and operators, written out by hand."""

from __future__ import annotations

import math

import pytest
import torch

from lace.attributes.schema import Schema
from lace.conditions.energy import energy
from lace.conditions.language import parse

from .strategies import readings


def single(schema: Schema, sentence: str, row: torch.Tensor, temperature: float = 1.0) -> float:
    return float(energy(parse(sentence, schema), row, schema, temperature))


@pytest.fixture
def row(schema: Schema) -> torch.Tensor:
    return readings(schema, 1, 11)


def test_a_class(schema: Schema, row: torch.Tensor) -> None:
    logits = row[0, schema.slice("hair")].tolist()
    assert single(schema, "hair=brown", row) == pytest.approx(-logits[1] + math.log(sum(map(math.exp, logits))))


@pytest.mark.parametrize("temperature", [1.25, 2.0, 4.0])
def test_of_two_classes_the_codes_energy_is_least_at_its_probability(schema: Schema, temperature: float) -> None:
    """d/dm of -m / (2T) + log 2 cosh(m / 2) is 0 where p = 1/2 + 1/(2T), m the log odds."""
    rows = torch.zeros(1001, schema.columns)
    p = torch.linspace(0.002, 0.998, 1001)
    rows[:, schema.slice("smile")] = torch.stack([1 - p, p], dim=1).log()
    least = energy(parse("smile", schema), rows, schema, temperature, picked=True).argmin()
    assert float(p[least]) == pytest.approx(0.5 + 0.5 / temperature, abs=0.001)


def test_both_forms_are_one_at_temperature_one(schema: Schema, row: torch.Tensor) -> None:
    formula = parse("hair=black", schema)
    assert torch.allclose(energy(formula, row, schema, picked=True), energy(formula, row, schema))


@pytest.mark.parametrize("temperature", [0.4, 2.0])
def test_temperature_divides_both_terms(schema: Schema, row: torch.Tensor, temperature: float) -> None:
    logits = [value / temperature for value in row[0, schema.slice("hair")].tolist()]
    truth = -logits[0] + math.log(sum(map(math.exp, logits)))
    assert single(schema, "hair=black", row, temperature) == pytest.approx(truth)


def test_a_number(schema: Schema, row: torch.Tensor) -> None:
    scaled = float(row[0, schema.slice("age")][0])
    assert single(schema, "age=20", row) == pytest.approx((0.25 - scaled) ** 2 / (2 * 0.01))


def test_and_adds(schema: Schema, row: torch.Tensor) -> None:
    parts = [single(schema, text, row) for text in ("smile", "age=40", "hair=blond")]
    assert single(schema, "smile & age=40 & hair=blond", row) == pytest.approx(sum(parts))


def test_or_favours_its_left_twenty_to_one(schema: Schema, row: torch.Tensor) -> None:
    a, b = single(schema, "smile", row), single(schema, "glasses", row)
    assert single(schema, "smile | glasses", row) == pytest.approx(-math.log(20 * math.exp(-a) + math.exp(-b)))
    assert single(schema, "glasses | smile", row) == pytest.approx(-math.log(20 * math.exp(-b) + math.exp(-a)))


def test_or_survives_large_energies(schema: Schema, row: torch.Tensor) -> None:
    """Plain exponentials would give -log 0 here."""
    assert math.isfinite(single(schema, "1000*age=0 | 1000*age=80", row.float()))


def test_not_lowers_by_a_tenth_at_most(schema: Schema, row: torch.Tensor) -> None:
    for sentence in ("smile", "age=0", "age=80", "0.001*age=40"):
        inner = single(schema, sentence, row)
        assert single(schema, f"~({sentence})", row) == pytest.approx(-min(0.1 / inner, 1) * inner)


def test_not_pushes_with_a_constant_weight(schema: Schema) -> None:
    """The gradient takes alpha as given: -alpha dE."""
    rows = readings(schema, 1, 12).requires_grad_()
    inner = energy(parse("age=0", schema), rows, schema)
    (plain,) = torch.autograd.grad(inner.sum(), rows)
    (pushed,) = torch.autograd.grad(energy(parse("~age=0", schema), rows, schema).sum(), rows)
    assert torch.allclose(pushed, -min(0.1 / inner.item(), 1.0) * plain)


def test_a_range_has_minus_its_log_probability(schema: Schema, row: torch.Tensor) -> None:
    age = float(row[0, schema.slice("age")][0]) * 80
    inside = [0.5 * math.erfc(-(bound - age) / 5 / math.sqrt(2)) for bound in (10, 70)]
    assert single(schema, "age in 10..70", row) == pytest.approx(-math.log(inside[1] - inside[0]))
