"""How clearly a draw obeys a sentence: one number, above 0 where the heads' best guess obeys it.

class:    log p_c - log(1 - p_c)
range:    1.702 min(f - low, high - f) / sigma     (a normal is nearly a logistic with this factor)
number:   the range of 0.1 of the attribute's span to either side
a & b: min        a | b: max        ~a: -m        k*a: m  (a weight does not move the boundary)
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..attributes.schema import Continuous, Schema
from .energy import SIGMA
from .formula import And, Formula, Is, Near, Not, Or, Weighted, Within

__all__ = ["margin"]

LOGISTIC = 1.702


def margin(formula: Formula, readings: Tensor, schema: Schema) -> Tensor:
    """The margin of a formula at readings [N, columns]."""

    def of(part: Formula) -> Tensor:
        return margin(part, readings, schema)

    match formula:
        case Is(attribute, value):
            logs = readings[:, schema.slice(attribute.name)]
            chosen = attribute.classes.index(value)
            others = [k for k in range(len(attribute.classes)) if k != chosen]
            return logs[:, chosen] - logs[:, others].logsumexp(dim=1)
        case Within(attribute, low, high):
            return _range(attribute, low, high, readings, schema)
        case Near(attribute, value):
            reach = SIGMA * attribute.span
            return _range(attribute, value - reach, value + reach, readings, schema)
        case And(operands):
            return torch.stack([of(part) for part in operands]).amin(dim=0)
        case Or(operands):
            return torch.stack([of(part) for part in operands]).amax(dim=0)
        case Not(operand):
            return -of(operand)
        case Weighted(_, operand):
            return of(operand)
    raise TypeError(f"{type(formula).__name__} is no formula.")


def _range(attribute: Continuous, low: float, high: float, readings: Tensor, schema: Schema) -> Tensor:
    value = schema.natural(readings, attribute)
    return LOGISTIC * torch.minimum(value - low, high - value) / attribute.sigma
