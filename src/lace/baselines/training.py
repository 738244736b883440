"""How baselines are trained: until steps or seconds are spent, while the learning rate falls to nothing.

lr(step) = lr min(1, step / warmup) (1 + cos(pi spent)) / 2,   spent = max(step / steps, elapsed / seconds)
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from torch import Tensor
from torch.optim import Optimizer

from ..errors import ValueRangeError

__all__ = ["Report", "Settings", "descend", "steps"]

# Called after every step with its number and its loss.
Report = Callable[[int, float], None]


@dataclass(frozen=True)
class Settings:
    """A training that ends by whichever limit it meets first."""

    batch: int
    lr: float
    warmup: int = 1
    steps: int = 10**6
    seconds: float = math.inf
    seed: int = 0


def steps(settings: Settings, optimiser: Optimizer) -> Iterator[int]:
    """The numbers of the steps to take, with the learning rate set for each."""
    start = time.perf_counter()
    for step in range(settings.steps):
        spent = max(step / settings.steps, (time.perf_counter() - start) / settings.seconds)
        if spent >= 1:
            return
        for group in optimiser.param_groups:
            group["lr"] = settings.lr * min(1.0, (step + 1) / settings.warmup) * (1 + math.cos(math.pi * spent)) / 2
        yield step


def descend(loss: Tensor, optimiser: Optimizer) -> float:
    """One step down the slope of a loss, and what the loss was."""
    value = float(loss.detach())
    if not math.isfinite(value):
        raise ValueRangeError("The training has run away; take a smaller learning rate.")
    optimiser.zero_grad(set_to_none=True)
    loss.backward()
    optimiser.step()
    return value
