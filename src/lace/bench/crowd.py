"""Walks for several combinations at once: each has a combination of its own, and all share every evaluation.

log p(c_i | z_i) = sum over words of log p(class of i | z_i)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ..samplers.base import Target
from .gallery import Asked

if TYPE_CHECKING:
    from ..model import Model

__all__ = ["Crowd"]


class Crowd(Target):
    """So many walks of each combination, one combination after the other."""

    def __init__(self, model: Model, asked: Asked, counts: list[int]) -> None:
        self._model = model
        super().__init__(model.generator.latent_dim, self.unknown, self.unknown, model.device)
        starts = [model.schema.slice(word.name).start for word in asked.words]
        columns = [
            [start + word.classes.index(name) for start, word, name in zip(starts, asked.words, names, strict=True)]
            for names in asked.combinations
        ]
        self._columns = torch.tensor(columns).repeat_interleave(torch.tensor(counts), dim=0).to(model.device)

    def log_prob_of(self, z: Tensor, index: Tensor | None) -> Tensor:
        columns = self._columns if index is None else self._columns[index]
        return self._model.read(z).gather(1, columns).sum(dim=1)

    def unknown(self, z: Tensor) -> Tensor:
        """A place alone does not say whose it is."""
        raise NotImplementedError("Only walks know their combination.")
