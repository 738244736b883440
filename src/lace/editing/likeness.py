"""Whom a latent shows: ArcFace's embedding of the picture, guessed from w alone.

    e(w) = MLP(w) / |MLP(w)|,   512 -> 640 -> 640 -> 512, leaky ReLU 0.2, learned by the mean of 1 - cos(e(w), e)

e is what lace.metrics.identity says of the picture. A guess costs no picture, and has a slope: an edit can ask for the
same person while it looks for its way.
"""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..attributes.card import read_with_card, write_with_card
from ..errors import DataError
from ..metrics.identity import EMBEDDING, identity_loss

__all__ = ["Likeness", "fit"]

HIDDEN = 640
SLOPE = 0.2


class Likeness(nn.Module):
    """w [N, dim] -> unit vectors [N, 512]; ``mean`` and ``std`` are those of the w that it learned from."""

    mean: Tensor
    std: Tensor

    def __init__(self, dim: int) -> None:
        super().__init__()
        sizes = (dim, HIDDEN, HIDDEN, EMBEDDING)
        self.weights = nn.ParameterList(torch.empty(b, a) for a, b in pairwise(sizes))
        self.biases = nn.ParameterList(torch.zeros(b) for b in sizes[1:])
        self.register_buffer("mean", torch.zeros(dim))
        self.register_buffer("std", torch.ones(dim))

    def forward(self, w: Tensor) -> Tensor:
        x = (w - self.mean) / self.std
        for k, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            x = F.linear(F.leaky_relu(x, SLOPE) if k else x, weight, bias)
        return F.normalize(x, dim=1)

    def initialise(self, generator: torch.Generator) -> Likeness:
        """A start from which to train: what goes through keeps its size."""
        for weight in self.weights:
            weight.data.normal_(0, weight.shape[1] ** -0.5, generator=generator)
        return self

    def save(self, path: Path, card: dict[str, Any]) -> None:
        """Write the network in half precision with a card."""
        write_with_card(path, self.state_dict(), card)

    @classmethod
    def load(cls, path: Path) -> Likeness:
        """Read what :meth:`save` wrote."""
        _, state = read_with_card(path)
        try:
            network = cls(len(state["mean"]))
            network.load_state_dict(state)
        except (KeyError, RuntimeError) as error:
            raise DataError(f"{path} does not hold a likeness of this version ({error}).") from error
        return network.requires_grad_(False).eval()


def fit(network: Likeness, w: Tensor, embeddings: Tensor, epochs: int, batch: int, lr: float, seed: int = 0) -> None:
    """Train in place with AdamW while the learning rate falls to nothing."""
    rng = torch.Generator().manual_seed(seed)
    network.mean.copy_(w.mean(dim=0))
    network.std.copy_(w.std(dim=0).clamp_min(1e-6))
    optimiser = torch.optim.AdamW(network.parameters(), lr, weight_decay=0.1, fused=w.is_cuda)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, epochs * math.ceil(len(w) / batch))
    network.train().requires_grad_(True)
    for _ in range(epochs):
        for rows in torch.randperm(len(w), generator=rng).to(w.device).split(batch):
            optimiser.zero_grad(set_to_none=True)
            identity_loss(network(w[rows]), embeddings[rows]).mean().backward()
            optimiser.step()
            schedule.step()
    network.eval().requires_grad_(False)
