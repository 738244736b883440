"""How long things take: the median of many runs after some that do not count, and what the chip could do at best.

    floor = max(operations / rate of a large matrix product, bytes / rate of a large copy)

Both rates are measured in the same run, so that a floor is one of this machine as it is now.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

__all__ = ["Cost", "Peak", "cost", "median_seconds", "peak"]

WARM_UP = 3
# Operations that cannot be folded into another: at best all others ride along with these.
HEAVY = ("mm", "addmm", "bmm", "baddbmm", "linear", "convolution", "conv2d")


def median_seconds(work: Callable[[], object], device: torch.device, repeats: int, budget: float) -> float:
    """The median time of ``work``, the GPU's work included; slow work is not repeated beyond the budget's seconds."""
    spent, found = 0.0, [once(work, device)]
    while spent < budget and len(found) < WARM_UP + repeats:
        found.append(once(work, device))
        spent += found[-1]
    # What little there is counts whole.
    return statistics.median(found[WARM_UP:] or found[-1:])


def once(work: Callable[[], object], device: torch.device) -> float:
    wait(device)
    start = time.perf_counter()
    work()
    wait(device)
    return time.perf_counter() - start


def wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


@dataclass(frozen=True)
class Cost:
    """Multiplications and additions, and bytes that must move to and from memory."""

    operations: float
    moved: float


class Traffic(TorchDispatchMode):
    """Adds up what the heavy operations read and write."""

    def __init__(self) -> None:
        super().__init__()
        self.moved = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if func.overloadpacket.__name__ in HEAVY:
            tensors = [part for part in (*args, out) if isinstance(part, Tensor)]
            self.moved += sum(part.numel() * part.element_size() for part in tensors)
        return out


def cost(work: Callable[[], object]) -> Cost:
    """What ``work`` must at least compute and move."""
    with FlopCounterMode(display=False) as operations, Traffic() as traffic:
        work()
    return Cost(float(operations.get_total_flops()), float(traffic.moved))


@dataclass(frozen=True)
class Peak:
    """Operations a second of a large matrix product, and bytes a second of a large copy."""

    operations: float
    moved: float

    def floor(self, cost: Cost) -> float:
        """The least seconds that this cost can take."""
        return max(cost.operations / self.operations, cost.moved / self.moved)


def peak(device: torch.device, dtype: torch.dtype, repeats: int = 10, budget: float = 5.0) -> Peak:
    """What this machine does at its best, now."""
    size = 8192 if device.type == "cuda" else 2048
    a, b = torch.rand(2, size, size, device=device, dtype=dtype)
    product = median_seconds(lambda: a @ b, device, repeats, budget)
    long = torch.empty(16 * size**2, device=device, dtype=torch.uint8)
    other = torch.empty_like(long)
    copy = median_seconds(lambda: other.copy_(long), device, repeats, budget)
    return Peak(2 * size**3 / product, 2 * len(long) / copy)
