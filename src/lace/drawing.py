"""What a model draws: latents, what the heads say of them, and the pictures once they are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
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
    uint8 [n, H, W, 3], or None until the pictures are made.
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

    def __len__(self) -> int:
        return len(self.z)

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
