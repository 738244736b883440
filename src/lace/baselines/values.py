"""What baselines can be asked: one value for each attribute, in place of a sentence.

A row of values has the layout of labels (:mod:`lace.attributes.training`): class probabilities, a scaled number, and
NaN for what the sentence leaves free.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..attributes.schema import Discrete, Schema
from ..conditions.formula import And, Formula, Is, Near, Not
from ..errors import ConditionError

__all__ = ["asked_values", "filled", "read_values"]

# Examples among which the values that a sentence leaves free are drawn: few enough to be near, many enough to vary.
NEAREST = 100


def asked_values(formula: Formula, schema: Schema) -> Tensor:
    """The row of values [columns] that an AND of single values asks for; anything else is refused."""
    row, parts = torch.full((schema.columns,), torch.nan), formula.operands if isinstance(formula, And) else (formula,)
    for leaf in map(_single, parts):
        attribute, columns = schema[leaf.attribute.name], schema.slice(leaf.attribute.name)
        if attribute != leaf.attribute:
            raise ConditionError(f"This baseline knows no {attribute.name} as '{leaf}' means it.")
        if row[columns.start].isfinite():
            raise ConditionError(f"Baselines take one value for each attribute, and {attribute.name} is given two.")
        if isinstance(leaf, Is):
            row[columns] = torch.tensor([float(name == leaf.value) for name in leaf.attribute.classes])
        else:
            row[columns] = (leaf.value - leaf.attribute.low) / leaf.attribute.span
    return row


def read_values(readings: Tensor, heads: Schema, schema: Schema) -> Tensor:
    """Readings of heads [N, columns] as rows of values of another schema; NaN for what the heads do not read."""
    rows = torch.full((len(readings), schema.columns), torch.nan, device=readings.device)
    for attribute in schema:
        if attribute.name in heads:
            own = readings[:, heads.slice(attribute.name)]
            rows[:, schema.slice(attribute.name)] = own.exp() if isinstance(attribute, Discrete) else own
    return rows


def filled(row: Tensor, examples: Tensor, pick: Tensor) -> Tensor:
    """A whole row of values for each number of ``pick`` in (0, 1]: what ``row`` leaves free is taken from an example.

    The examples are those nearest to what is asked for, by squared distance in units of each column's deviation.
    """
    known, asked = examples[examples.isfinite().all(dim=1)].float(), row.isfinite()
    distance = ((known - row) / known.std(dim=0).clamp_min(1e-6))[:, asked].square().sum(dim=1)
    nearest = distance.argsort(stable=True)[: NEAREST if bool(asked.any()) else len(known)]
    return torch.where(asked, row, known[nearest[((1 - pick) * len(nearest)).long()]])


def _single(part: Formula) -> Is | Near:
    match part:
        case Is() | Near():
            return part
        case Not(Is(attribute, value)) if len(attribute.classes) == 2:
            return Is(attribute, next(name for name in attribute.classes if name != value))
    raise ConditionError(
        f"Baselines take one value for each attribute, such as glasses & age=55, and '{part}' is no single value."
    )
