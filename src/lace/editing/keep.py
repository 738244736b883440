"""What an edit keeps: every word that it is not about, except those that the model itself ties to it.

    class:   KL(p || p') = sum_c p_c log(p_c / p'_c)          p, p' before and after
    number:  (f' - f)^2 / (2 (5 sigma)^2)                      sigma: the head's own error

Held to a single sigma, numbers that nobody looks at would cost more of the person than they are worth.
A smile lifts the cheeks and a beard has a chin to grow on: to hold those still would forbid the edit. Words are tied
where their readings correlate by 0.4 or more over the bank.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ..attributes.schema import Attribute, Continuous, Schema

if TYPE_CHECKING:
    from ..model import Model

__all__ = ["change", "tied"]

TIE = 0.4
# Errors of the head that a number may be off by.
TOLERANCE = 5.0


def change(readings: Tensor, before: Tensor, schema: Schema, words: set[str]) -> Tensor:
    """How far ``words`` have changed: the sum of the above for each row [N]."""
    total = readings.new_zeros(len(readings))
    for attribute in schema:
        if attribute.name in words:
            columns = schema.slice(attribute.name)
            total = total + _change(attribute, readings[:, columns], before[:, columns])
    return total


def _change(attribute: Attribute, now: Tensor, before: Tensor) -> Tensor:
    if isinstance(attribute, Continuous):
        return ((now - before)[:, 0] * attribute.span / (TOLERANCE * attribute.sigma)).square() / 2
    return (before.exp() * (before - now)).sum(dim=1)


def tied(model: Model, words: set[str]) -> set[str]:
    """These words, and those that move with them."""
    schema, readings = model.schema, model.bank.readings
    columns = [readings[:, schema.slice(a.name)] for a in schema]
    values = [own if isinstance(a, Continuous) else own.exp() for a, own in zip(schema, columns, strict=True)]
    # A column that never changes correlates with nothing.
    together = torch.corrcoef(torch.cat(values, dim=1).T).abs().nan_to_num()
    asked = torch.cat([together[schema.slice(word)] for word in words]).amax(dim=0)
    return words | {a.name for a in schema if float(asked[schema.slice(a.name)].max()) >= TIE}
