"""How baselines are trained: until steps or seconds are spent, while the learning rate falls to nothing.

lr(step) = lr min(1, step / warmup) (1 + cos(pi spent)) / 2,   spent = max(step / steps, elapsed / seconds)

Both baselines go through hundreds of small products for each step of learning. A GPU is done with each of them before
its host has named the next, so they are recorded as one graph, which then runs by itself.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.optim import Optimizer

from ..errors import ValueRangeError

__all__ = ["Report", "Settings", "descend", "recorded", "sound", "steps"]

# Runs before a recording, in which libraries set themselves up.
WARMUP = 3

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


def sound(loss: Tensor) -> float:
    """What a loss is; a training that has run away is stopped."""
    value = float(loss.detach())
    if not math.isfinite(value):
        raise ValueRangeError("The training has run away; take a smaller learning rate.")
    return value


def descend(loss: Tensor, optimiser: Optimizer) -> float:
    """One step down the slope of a loss, and what the loss was."""
    value = sound(loss)
    optimiser.zero_grad(set_to_none=True)
    loss.backward()
    optimiser.step()
    return value


def recorded(function: Callable[..., Tensor], *examples: Tensor) -> Callable[..., Tensor]:
    """A function of tensors as one CUDA graph, recorded on examples; on a CPU the function itself.

    Inputs keep the examples' shapes. It may leave gradients behind, which each run overwrites; it must not look at what
    it computes, and what it gives is overwritten by the next run. Products are rounded to ten bits: chance makes the
    slopes of a training far coarser than that.
    """
    if not examples[0].is_cuda:
        return function
    inputs, aside, graph = [example.clone() for example in examples], torch.cuda.Stream(), torch.cuda.CUDAGraph()
    exactness = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(WARMUP):
            function(*inputs)
    torch.cuda.current_stream().wait_stream(aside)
    with torch.cuda.graph(graph):
        result = function(*inputs)
    torch.set_float32_matmul_precision(exactness)

    def run(*values: Tensor) -> Tensor:
        for held, value in zip(inputs, values, strict=True):
            held.copy_(value)
        graph.replay()
        return result

    return run
