"""Random formulas and readings."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from hypothesis import strategies as st

from lace.attributes.schema import Continuous, Schema
from lace.conditions.formula import And, Formula, Is, Near, Not, Or, Weighted, Within

Number = Callable[[Continuous], st.SearchStrategy[float]]


def anywhere(attribute: Continuous) -> st.SearchStrategy[float]:
    """Any number of an attribute's range."""
    return st.floats(attribute.low, attribute.high)


def apart(attribute: Continuous) -> st.SearchStrategy[float]:
    """Numbers a thousandth of the range apart: plain differences of distribution functions keep their digits."""
    return st.integers(0, 1000).map(lambda k: attribute.low + attribute.span * k / 1000)


def leaf(schema: Schema, number: Number) -> st.SearchStrategy[Formula]:
    kinds: list[st.SearchStrategy[Formula]] = []
    for attribute in schema:
        if isinstance(attribute, Continuous):
            value = number(attribute)
            inside = st.tuples(value, value).filter(lambda pair: pair[0] < pair[1])
            kinds += [
                value.map(lambda v, a=attribute: Near(a, v)),
                inside.map(lambda pair, a=attribute: Within(a, *pair)),
                value.map(lambda v, a=attribute: Within(a, v, math.inf)),
                value.map(lambda v, a=attribute: Within(a, -math.inf, v)),
            ]
        else:
            kinds.append(st.sampled_from(attribute.classes).map(lambda name, a=attribute: Is(a, name)))
    return st.one_of(kinds)


def formulas(schema: Schema, size: int = 8, number: Number = anywhere) -> st.SearchStrategy[Formula]:
    def grow(parts: st.SearchStrategy[Formula]) -> st.SearchStrategy[Formula]:
        several = st.lists(parts, min_size=2, max_size=3).map(tuple)
        weight = st.floats(0.01, 100, exclude_min=True)
        return st.one_of(several.map(And), several.map(Or), parts.map(Not), st.builds(Weighted, weight, parts))

    return st.recursive(leaf(schema, number), grow, max_leaves=size)


def readings(schema: Schema, rows: int, seed: int) -> torch.Tensor:
    """Random readings in double precision, from sure to unsure."""
    rng = torch.Generator().manual_seed(seed)
    columns = []
    for attribute in schema:
        if isinstance(attribute, Continuous):
            columns.append(torch.rand(rows, 1, generator=rng, dtype=torch.float64))
        else:
            noise = torch.randn(rows, attribute.columns, generator=rng, dtype=torch.float64)
            columns.append((3 * noise).log_softmax(dim=1))
    return torch.cat(columns, dim=1)
