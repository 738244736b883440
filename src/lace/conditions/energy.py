"""The paper's reading: energies and their operators (Nie, Vahdat and Anandkumar, NeurIPS 2021, Eq. 5 and section 3.3).

    class:     E(c|w) = -l_c / T + logsumexp(l / T),   or, as the released code has it,  -l_c / T + logsumexp(l)
    number:    E(c|w) = (c - f)^2 / (2 sigma^2),  sigma = 0.1 of the attribute's range
    a & b:     E_a + E_b
    a | b:     -log(exp(beta - E_a) + exp(-E_b)),  beta = ln 20
    ~a:        -alpha E_a,  alpha = min(0.1 / |E_a|, 1), a constant to the gradient
    k*a:       k E_a

A range has no energy in the paper; here it has -log of its probability. OR is not symmetric: its left side counts for
twenty of its right. These are energies, not logic: exp(-E) of a formula need not be a probability.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ..attributes.schema import Schema
from .formula import And, Formula, Is, Near, Not, Or, Weighted, Within
from .numerics import log_normal_interval

__all__ = ["energy", "near_energy"]

SIGMA = 0.1
BETA = math.log(20)
NOT_STRENGTH = 0.1


def near_energy(near: Near, value: Tensor) -> Tensor:
    """(c - f)^2 / (2 sigma^2), both scaled by the attribute's range; value is in the attribute's unit."""
    return ((value - near.value) / (SIGMA * near.attribute.span)).square() / 2


def energy(
    formula: Formula, readings: Tensor, schema: Schema, temperature: float = 1.0, picked: bool = False
) -> Tensor:
    """The energy of a formula at readings [N, columns]; ``picked`` divides only the class asked for by T."""

    def of(part: Formula) -> Tensor:
        return energy(part, readings, schema, temperature, picked)

    match formula:
        case Is(attribute, value):
            logits, chosen = readings[:, schema.slice(attribute.name)], attribute.classes.index(value)
            if picked:
                # Readings are logarithms of probabilities, whose logits are known but for a constant.
                logits = logits - logits.mean(dim=1, keepdim=True)
                return logits.logsumexp(dim=1) - logits[:, chosen] / temperature
            return -(logits / temperature).log_softmax(dim=1)[:, chosen]
        case Near(attribute):
            return near_energy(formula, schema.natural(readings, attribute))
        case Within(attribute, low, high):
            now = schema.natural(readings, attribute)
            return -log_normal_interval((low - now) / attribute.sigma, (high - now) / attribute.sigma)
        case And(operands):
            return torch.stack([of(part) for part in operands]).sum(dim=0)
        case Or((first, *others)):
            total = of(first)
            for part in others:
                total = -torch.logaddexp(BETA - total, -of(part))
            return total
        case Not(operand):
            inner = of(operand)
            return -(NOT_STRENGTH / inner.detach().abs()).clamp(max=1.0) * inner
        case Weighted(weight, operand):
            return weight * of(operand)
    raise TypeError(f"{type(formula).__name__} is no formula.")
