"""DES, the disentangled edit strength of a sequence of edits, as the paper defines it.

    DES = mean_i DES_i,   DES_i = E[ Delta_i - max_{j != i} |Delta_j| ],   Delta_j = (ACC_j - ACC_0j) / (1 - ACC_0j)

ACC_0j and ACC_j are the j-th attribute's ACC before and after the i-th edit. The paper leaves four things to its
reader, and we read them so:

- The expectation is inside ACC, the mean match over faces. On a single face a class is right or wrong, and Delta would
  be 0 / 0 for every face that was right before.
- j runs over the attributes of the whole sequence, edited before or yet to be, each measured against its own value in
  the sequence: what is asked of it in the end. An attribute that is never edited has no ACC.
- "Before" is after edit i - 1; before the first edit, it is the face to start from.
- Where all faces are right before, 1 - ACC_0j is 0. It is held at half a face's error, 1 / (2 n) for n faces, so that
  an attribute that stays right counts 0, and one that loses a single face counts 2.

That divisor is hard on what was edited well: from ACC 0.98 to 0.96 is Delta = -1. With the paper's own figures it
would say that glasses, the last edit (DES_4 = 0.989), moved the ACC of smiles (0.956) by less than 0.0005. So ``plain``
is given besides, where the others count as they changed, max_{j != i} |ACC_j - ACC_0j|. Intervals resample faces; the
maximum of noise is above 0, so few faces make DES too small.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from ..attributes.schema import Schema
from ..errors import DataError
from .accuracy import matches
from .bootstrap import Estimate, estimates

__all__ = ["Disentanglement", "Strength", "disentanglement"]


class Strength(NamedTuple):
    """DES of one edit or their mean: by the definition, and with the plain changes of the others."""

    des: Estimate
    plain: Estimate


@dataclass(frozen=True)
class Disentanglement:
    """DES of a sequence, of each of its edits, and the ACC [edits + 1, attributes] before and after every edit."""

    mean: Strength
    edits: dict[str, Strength]
    acc: Tensor


def disentanglement(
    stages: Sequence[Tensor], asked: Tensor, schema: Schema, sequence: Sequence[str], seed: int = 0
) -> Disentanglement:
    """DES of faces judged before and after every edit.

    ``stages`` are judged values [N, columns] of the same N faces: to start from, after the first edit, and so on;
    ``asked`` is what the whole sequence asks for ([N, columns] or [columns]); ``sequence`` names the attribute of each
    edit, in order.
    """
    if len(stages) != len(sequence) + 1 or len(set(sequence)) < 2 or len(set(sequence)) != len(sequence):
        raise DataError(
            f"{len(sequence)} edits, {', '.join(sequence)}, need a judgement before and after each ({len(stages)} were "
            "given); and DES compares at least two attributes, each edited once."
        )
    names = [attribute.name for attribute in schema]
    columns = [names.index(schema[name].name) for name in sequence]
    rows = torch.stack([matches(stage, asked, schema)[:, columns] for stage in stages], dim=1).double()
    # [N, stages, attributes]; before and after are compared on the same faces.
    rows = rows.where(rows.isfinite().all(dim=1, keepdim=True), torch.nan)
    found = estimates(rows, _strengths, seed)
    pairs = [Strength(*pair) for pair in zip(found[::2], found[1::2], strict=True)]
    return Disentanglement(pairs[-1], dict(zip(sequence, pairs[:-1], strict=True)), rows.nanmean(dim=0))


def _strengths(rows: Tensor) -> Tensor:
    """Of resampled matches [B, N, edits + 1, attributes] DES and plain of each edit, and their means, in turn."""
    acc = rows.nanmean(dim=1)
    change = acc.diff(dim=1)
    delta = change / (1 - acc[:, :-1]).clamp_min(0.5 / rows.shape[1])
    both = torch.stack([_own(delta) - _most_of_others(others) for others in (delta, change)], dim=2)
    return torch.cat([both, both.mean(dim=1, keepdim=True)], dim=1).flatten(1)


def _own(changes: Tensor) -> Tensor:
    return changes.diagonal(dim1=1, dim2=2)


def _most_of_others(changes: Tensor) -> Tensor:
    edited = torch.eye(changes.shape[1], dtype=torch.bool, device=changes.device)
    return changes.abs().masked_fill(edited, 0).amax(dim=2)
