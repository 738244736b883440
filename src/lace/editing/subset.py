"""Edit-specific subsets: which styles of the generator an edit may change (Abdal et al., 2021; the paper's appendix).

A StyleGAN2 has two style inputs a resolution: layer 0 draws 4x4 pixels, layers 2k - 1 and 2k draw 4 * 2^k. How a head
is turned is decided by the coarse ones, colours by the fine ones. The table is the paper's, found on StyleGAN2; words
that it does not name change all styles. Other generators say which of these layers each of their style inputs draws.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..conditions.formula import Formula, leaves
from ..generators.base import Generator

__all__ = ["LAYERS", "layers_of", "selected"]

LAYERS = {
    "smile": frozenset({4, 5}),
    "yaw": frozenset(range(4)),
    "pitch": frozenset(range(4)),
    "age": frozenset(range(4, 8)),
    "gender": frozenset(range(8)),
    "glasses": frozenset(range(6)),
    "bald": frozenset(range(6)),
    "beard": frozenset({5, 6, 7, 10}),
}


def layers_of(formula: Formula) -> frozenset[int] | None:
    """The layers that a sentence is about; None for all of them."""
    own = [LAYERS.get(leaf.attribute.name) for leaf in leaves(formula)]
    known = [layers for layers in own if layers is not None]
    return frozenset().union(*known) if len(known) == len(own) else None


def selected(generator: Generator, before: Tensor, after: Tensor, layers: frozenset[int] | None) -> Tensor:
    """What is drawn when only some layers change: [n, styles, dim], or ``after`` where all do."""
    if layers is None or generator.style_layers is None:
        return after
    taken = torch.tensor([layer in layers for layer in generator.style_layers], device=after.device)
    return torch.where(taken[:, None], by_style(after, len(taken)), by_style(before, len(taken)))


def by_style(w: Tensor, styles: int) -> Tensor:
    """One row for each style."""
    return w if w.dim() == 3 else w[:, None].expand(-1, styles, -1)
