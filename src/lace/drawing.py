"""What a model draws: latents, what the heads say of them, and the pictures once they are made."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .attributes.schema import Attribute, Continuous, Schema
from .planning import Plan
from .rng import Address
from .samplers.base import Info

__all__ = ["Drawing"]


@dataclass(frozen=True)
class Drawing:
    """n latents and what is known of them.

    ``z`` and ``w`` are latents, ``readings`` what the heads say (see :meth:`values`), ``addresses`` where single prior
    draws come from, ``log_prob`` is log p(sentence | z), ``info`` and ``plan`` say how they were found. ``images`` is
    uint8 [n, H, W, 3], or None until the pictures are made. Where a latent ``is_edited``, w is not what z alone gives.
    """

    z: Tensor
    w: Tensor
    readings: Tensor
    schema: Schema
    addresses: list[Address]
    log_prob: Tensor | None = None
    info: Info | None = None
    plan: Plan | None = None
    images: NDArray[np.uint8] | None = None
    is_edited: bool = False

    def __len__(self) -> int:
        return len(self.z)

    def joined(self, others: Iterable[Drawing]) -> Drawing:
        """This and others as one, without what only single ones have: addresses, and how they were found."""
        parts = [self, *others]
        styles = max((part.w.shape[1] for part in parts if part.w.dim() == 3), default=0)
        every = [part.w[:, None].expand(-1, styles, -1) if styles and part.w.dim() == 2 else part.w for part in parts]
        z, readings = torch.cat([part.z for part in parts]), torch.cat([part.readings for part in parts])
        is_edited = any(part.is_edited for part in parts)
        return Drawing(z, torch.cat(every), readings, self.schema, [], is_edited=is_edited)

    def values(self, k: int) -> dict[str, Any]:
        """What the heads say of the k-th: p(yes), a table of class probabilities, or a number in natural units."""
        row = self.readings[k : k + 1].float().cpu()
        return {attribute.name: _value(row, attribute, self.schema) for attribute in self.schema}


def _value(row: Tensor, attribute: Attribute, schema: Schema) -> Any:
    if isinstance(attribute, Continuous):
        return round(float(schema.natural(row, attribute)[0]), 3)
    probabilities = row[0, schema.slice(attribute.name)].exp()
    named = {name: round(float(p), 4) for name, p in zip(attribute.classes, probabilities, strict=True)}
    return named["yes"] if attribute.is_yes_no else named
