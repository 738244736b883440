"""The bank: what the heads say of the first 2^16 draws of seed 0, computed once for a model and kept on disk.

    P(c) ~ mean_i p(c | z_i),   with Wilson's interval: as p(c | z) lies in [0, 1], its variance is at most P (1 - P)

From the bank the probability of any sentence, of its terms, and the first matches come in milliseconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from tqdm import tqdm

from .errors import WeightsError
from .weights.store import cached

__all__ = ["Bank", "Estimate"]

SEED = 0
SIZE = 2**16
CHUNK = 2**12
# Two-sided 95 %.
QUANTILE = 1.959964


@dataclass(frozen=True)
class Estimate:
    """A probability and its 95 % interval."""

    probability: float
    low: float
    high: float

    @classmethod
    def of(cls, probabilities: Tensor) -> Estimate:
        """The mean of independent numbers in [0, 1]."""
        n, p = len(probabilities), float(probabilities.double().mean())
        spread = QUANTILE**2 / n
        centre = (p + spread / 2) / (1 + spread)
        half = QUANTILE / (1 + spread) * math.sqrt(p * (1 - p) / n + spread / (4 * n))
        return cls(p, max(centre - half, 0.0), min(centre + half, 1.0))


@dataclass(frozen=True)
class Bank:
    """Readings [size, columns] of the draws 0:0, 0:1, ..."""

    readings: Tensor

    @classmethod
    def of(cls, identity: str, read: Callable[[Tensor], Tensor], device: torch.device, size: int = SIZE) -> Bank:
        """The bank of a model; ``read`` gives the readings of the draws at indices of seed 0.

        It is kept on disk under ``identity``; a model without identity keeps it in memory alone.
        """

        @torch.inference_mode()
        def compute() -> Tensor:
            chunks = torch.arange(size, device=device).split(CHUNK)
            return torch.cat(
                [read(index) for index in tqdm(chunks, desc="Reading the bank", disable=None, leave=False)]
            )

        def make(path: Path) -> None:
            save_file({"readings": compute().cpu().contiguous()}, path)

        if not identity:
            return cls(compute())
        return cls(_read(cached(f"banks/{identity}-{size}.safetensors", make), size).to(device))

    @classmethod
    def joined(cls, banks: Iterable[Bank]) -> Bank:
        """The readings of several banks side by side."""
        readings = [bank.readings for bank in banks]
        return cls(readings[0] if len(readings) == 1 else torch.cat(readings, dim=1))

    def knows(self, seed: int, index: Tensor) -> bool:
        """Whether all of these addresses lie in the bank."""
        return seed == SEED and len(index) > 0 and int(index.max()) < len(self.readings)


def _read(path: Path, size: int) -> Tensor:
    """The readings in a bank's file."""
    try:
        readings = load_file(path)["readings"]
        if len(readings) != size:
            raise ValueError(f"{len(readings):,} draws in place of {size:,}")
    except Exception as error:
        raise WeightsError(f"{path} is damaged ({error}); delete it and it will be made again.") from error
    return readings
