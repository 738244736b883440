"""Exact probabilities, against the enumeration of everything that could be."""

from __future__ import annotations

import itertools
import math

import mpmath
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from lace.attributes.schema import Continuous, Discrete, Schema
from lace.conditions.formula import And, Formula, Is, Near, Not, Or, Weighted, Within
from lace.conditions.language import parse
from lace.conditions.numerics import log1mexp, log_normal_interval
from lace.conditions.probability import log_probability
from lace.errors import ConditionError

from .strategies import apart, formulas, readings

# Truths are worked out in numbers of any exponent: a weight may bring back a probability that a double takes for zero.
Number = mpmath.mpf


def events(formula: Formula) -> set[Formula]:
    """Leaves and weighted parts, which are events of their own."""
    match formula:
        case Not(operand):
            return events(operand)
        case And(operands) | Or(operands):
            return set().union(*(events(part) for part in operands))
    return {formula}


def holds(formula: Formula, world: dict[object, object]) -> bool:
    """Whether a formula is true once every attribute has a value."""
    match formula:
        case Not(operand):
            return not holds(operand, world)
        case And(operands):
            return all(holds(part, world) for part in operands)
        case Or(operands):
            return any(holds(part, world) for part in operands)
        case Is(attribute, value):
            return world[attribute] == value
        case Within(attribute, low, high):
            return low <= world[attribute] <= high
    return bool(world[formula])


def cells(formula: Formula, row: Tensor, schema: Schema) -> list[tuple[object, list[tuple[object, Number]]]]:
    """Every independent variable with its possible values and their probabilities."""
    found = []
    parts = events(formula)
    for attribute in schema:
        mine = [part for part in parts if isinstance(part, (Is, Within)) and part.attribute == attribute]
        if mine and isinstance(attribute, Discrete):
            found.append(
                (
                    attribute,
                    list(
                        zip(attribute.classes, map(mpmath.exp, row[schema.slice(attribute.name)].tolist()), strict=True)
                    ),
                )
            )
        elif mine:
            found.append((attribute, intervals(attribute, mine, row, schema)))
    for part in parts:
        if isinstance(part, (Near, Weighted)):
            p = alone(part, row, schema)
            found.append((part, [(True, p), (False, 1 - p)]))
    return found


def intervals(attribute: Continuous, parts: list[Within], row: Tensor, schema: Schema) -> list[tuple[object, Number]]:
    """A point inside each interval between the bounds, with the interval's probability."""
    cuts = sorted({bound for part in parts for bound in (part.low, part.high) if math.isfinite(bound)})
    value = float(row[schema.slice(attribute.name)][0]) * attribute.span + attribute.low
    edges = [-1e9, *cuts, 1e9]
    scaled = [(edge - value) / attribute.sigma for edge in edges]
    pairs = zip(edges, edges[1:], scaled, scaled[1:], strict=False)
    return [((low + high) / 2, between(a, b)) for low, high, a, b in pairs]


def between(a: float, b: float) -> Number:
    """The normal's mass from a to b, from whichever tail is small."""
    if a > 0:
        a, b = -b, -a
    return (mpmath.erfc(-b / math.sqrt(2)) - mpmath.erfc(-a / math.sqrt(2))) / 2


def alone(part: Formula, row: Tensor, schema: Schema) -> Number:
    """The probability of soft evidence, or of a weighted part."""
    if isinstance(part, Weighted):
        return brute_force(part.operand, row, schema) ** part.weight
    value = float(row[schema.slice(part.attribute.name)][0]) * part.attribute.span + part.attribute.low
    return mpmath.exp(-(((part.value - value) / (0.1 * part.attribute.span)) ** 2) / 2)


def brute_force(formula: Formula, row: Tensor, schema: Schema) -> Number:
    """The sum over all worlds in which the formula holds."""
    spaces, total = cells(formula, row, schema), Number(0)
    names = [name for name, _ in spaces]
    for world in itertools.product(*(values for _, values in spaces)):
        if holds(formula, dict(zip(names, (value for value, _ in world), strict=True))):
            total += math.prod((p for _, p in world), start=Number(1))
    return total


@settings(max_examples=300)
@given(data=st.data(), seed=st.integers(0, 10**6))
def test_equals_enumeration(schema: Schema, data: st.DataObject, seed: int) -> None:
    formula = data.draw(formulas(schema, size=6, number=apart))
    rows = readings(schema, 2, seed)
    truth = torch.tensor([float(brute_force(formula, row, schema)) for row in rows], dtype=torch.float64)
    found = log_probability(formula, rows, schema).exp()
    assert torch.allclose(found, truth, atol=1e-9, rtol=1e-7)


@given(data=st.data(), seed=st.integers(0, 10**6))
def test_single_precision_gives_logs_of_probabilities(schema: Schema, data: st.DataObject, seed: int) -> None:
    """Never above zero, never NaN, near the double-precision answer."""
    formula = data.draw(formulas(schema, number=apart))
    rows = readings(schema, 4, seed)
    single, double = (log_probability(formula, kind, schema) for kind in (rows.float(), rows))
    assert (single <= 0).all()
    assert torch.allclose(single.exp().double(), double.exp(), atol=2e-3)


SAME = [
    ("hair=black | hair=brown", "~hair=blond"),
    ("smile & smile", "smile"),
    ("smile | smile & glasses", "smile"),
    ("age>20 & age<30", "age in 20..30"),
    ("age<20 | age>30", "~age in 20..30"),
    ("age in 20..40 & age in 30..50", "age in 30..40"),
    ("age=55 & age=55", "age=55"),
    ("~(smile | glasses)", "~smile & ~glasses"),
    ("smile=no", "~smile"),
    ("(glasses & smile) | (~glasses & smile)", "smile"),
]


@pytest.mark.parametrize(("left", "right"), SAME)
def test_laws(schema: Schema, left: str, right: str) -> None:
    rows = readings(schema, 50, 1)
    a, b = (log_probability(parse(text, schema), rows, schema) for text in (left, right))
    assert torch.allclose(a, b, atol=1e-12)


def test_certain_and_impossible(schema: Schema) -> None:
    rows = readings(schema, 3, 2)
    assert torch.equal(log_probability(parse("smile & ~smile", schema), rows, schema).exp(), torch.zeros(3).double())
    assert torch.equal(log_probability(parse("smile | ~smile", schema), rows, schema), torch.zeros(3).double())


def test_tiny_probabilities_survive_in_single_precision(schema: Schema) -> None:
    """p(a or b) of events of e^-90: a product of complements would round to one."""
    rows = torch.full((1, schema.columns), -90.0)
    found = log_probability(parse("smile | glasses", schema), rows, schema)
    assert found.item() == pytest.approx(-90 + math.log(2), rel=1e-6)


def test_gradients_are_finite_and_right(schema: Schema) -> None:
    formula = parse("(smile & hair=black) | (~smile & age in 20..40) | 2*yaw>10 & ~age=50", schema)
    rows = readings(schema, 4, 3).requires_grad_()
    assert torch.autograd.gradcheck(lambda r: log_probability(formula, r, schema), (rows,), atol=1e-6)


@given(bound=st.floats(0, 80), sigma=st.floats(0.5, 20), seed=st.integers(0, 99))
def test_a_range_with_one_end_is_one_whose_other_end_is_far(bound: float, sigma: float, seed: int) -> None:
    """Values and slopes, also where the range is out of reach by tens of sigmas."""
    age = Continuous("age", 0, 80, sigma=sigma)
    wide = Continuous("age", -80_000, 80_000, sigma=sigma)
    years = 80 * torch.rand(20, 1, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    for tail, two_ended in (((bound, math.inf), (bound, 80_000)), ((-math.inf, bound), (-80_000, bound))):
        values, slopes = [], []
        for attribute, ends in ((age, tail), (wide, two_ended)):
            readings = ((years - attribute.low) / attribute.span).requires_grad_()
            log = log_probability(Within(attribute, *ends), readings, Schema([attribute]))
            values.append(log)
            slopes.append(torch.autograd.grad(log.sum(), readings)[0] / attribute.span)
        for found, expected in (values, slopes):
            assert bool(found.isfinite().all())
            assert torch.allclose(found, expected, rtol=1e-6, atol=1e-9)


def test_runaway_repetition_is_refused(schema: Schema) -> None:
    rng = torch.Generator().manual_seed(0)
    numbers = [f"age in {a:.3f}..{a + 1:.3f}" for a in (torch.rand(40, generator=rng) * 70).tolist()]
    yaws = [f"yaw in {a:.3f}..{a + 1:.3f}" for a in (torch.rand(40, generator=rng) * 80 - 45).tolist()]
    pairs = [f"({a} & {b} & {c})" for a, b, c in zip(numbers, yaws, numbers[::-1], strict=True)]
    sentence = " | ".join(f"{pair} & ~({other})" for pair, other in zip(pairs, pairs[1:] + pairs[:1], strict=True))
    rows = readings(schema, 1, 0)
    try:
        value = log_probability(parse(sentence, schema), rows, schema)
    except ConditionError as error:
        assert "simplify" in str(error)
    else:
        assert 0 <= float(value.exp()) <= 1


@given(st.floats(-700, -1e-12))
def test_log1mexp(log: float) -> None:
    truth = math.log(-math.expm1(log)) if log > -0.7 else math.log1p(-math.exp(log))
    assert float(log1mexp(torch.tensor(log, dtype=torch.float64))) == pytest.approx(truth, rel=1e-12, abs=0)


@given(st.floats(-30, 30), st.floats(1e-3, 20))
def test_interval_of_the_normal(low: float, width: float) -> None:
    """Against the integral of the density, in logarithms."""
    x = torch.linspace(low, low + width, 20_001, dtype=torch.float64)
    logs = -x.square() / 2 - 0.5 * math.log(2 * math.pi)
    weights = torch.full_like(x, float(x[1] - x[0]))
    weights[[0, -1]] /= 2
    truth = (logs + weights.log()).logsumexp(dim=0)
    found = log_normal_interval(x[:1], x[-1:])
    assert float(found) == pytest.approx(float(truth), abs=2e-4)


@pytest.mark.parametrize("log", [-60.0, -20.0, -5.0, -0.7, -0.5, -1e-3, -1e-6])
def test_log1mexp_in_single_precision(log: float) -> None:
    """Right to its last digits on both sides of ln 2: readings are single precision."""
    given = torch.tensor(log)
    truth = mpmath.log1p(-mpmath.exp(given.item()))
    assert float(log1mexp(given)) == pytest.approx(float(truth), rel=1e-6, abs=0)


@pytest.mark.parametrize(("low", "high"), [(4.0, 5.0), (8.0, 8.5), (-5.0, -4.0), (20.0, 21.0), (-0.5, 7.0)])
def test_both_tails_of_the_normal_in_single_precision(low: float, high: float) -> None:
    truth = float(mpmath.log((mpmath.erfc(low / mpmath.sqrt(2)) - mpmath.erfc(high / mpmath.sqrt(2))) / 2))
    assert float(log_normal_interval(torch.tensor(low), torch.tensor(high))) == pytest.approx(truth, rel=1e-5)
