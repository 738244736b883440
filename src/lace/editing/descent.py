"""Downhill by Adam (Kingma and Ba, 2015), in steps that shrink to nothing: the way to a place, not a walk around it."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

__all__ = ["descend"]

STRIDE = 0.1


def descend(cost: Callable[[Tensor], Tensor], z: Tensor, steps: int) -> Tensor:
    """Where ``steps`` steps from z lead; ``cost`` gives a number for each row, and rows do not feel each other."""
    z = z.clone().requires_grad_()
    adam = torch.optim.Adam([z], STRIDE)
    fading = torch.optim.lr_scheduler.LambdaLR(adam, lambda step: 1 - step / steps)
    for _ in range(steps):
        adam.zero_grad()
        cost(z).sum().backward()
        adam.step()
        fading.step()
    return z.detach()
