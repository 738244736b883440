"""Noise with an address: the number at (seed, index) never depends on who asks.

    words(seed, index, block, stream) = Philox4x32-10(counter=(index_lo, index_hi, block, stream),
                                                      key=(seed_lo, seed_hi))

A counter-based generator (Salmon et al., 2011, "Parallel random numbers: as easy as 1, 2, 3") is a pure function, so a
draw is the same alone and in a batch, in any order, on a CPU and on a GPU. Normals come in pairs by Box and Muller:

    r = sqrt(-2 ln u1),  (x, y) = (r cos 2 pi u2, r sin 2 pi u2).
"""

from __future__ import annotations

import functools
import math
import re
from dataclasses import dataclass
from types import ModuleType

import torch
from torch import Tensor

from .errors import AddressError

__all__ = [
    "ACCEPT",
    "CHOICE",
    "LATENT",
    "SCOUT",
    "TRUNCATION",
    "WALK",
    "Address",
    "normal",
    "philox",
    "uniform",
    "uniforms",
]

# Streams: independent uses of one address. Walks and their scouts number theirs from these on, two for each step.
LATENT, ACCEPT, TRUNCATION, CHOICE, WALK, SCOUT = 0, 1, 2, 3, 2**8, 2**31

WORD = 0xFFFFFFFF
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)
ROUNDS = 10
# Rows of noise made at once on a CPU: ten rounds then stay in the cache.
CPU_ROWS = 512


@dataclass(frozen=True, order=True)
class Address:
    """Where a picture's noise comes from, written ``seed:index``."""

    seed: int
    index: int

    def __str__(self) -> str:
        return f"{self.seed}:{self.index}"

    @classmethod
    def parse(cls, text: str) -> Address:
        """Read ``seed:index``; refuse anything else with a sentence."""
        match = re.fullmatch(r"\s*(\d{1,20}):(\d{1,19})\s*", text, re.ASCII)
        if match is None:
            raise AddressError(f"'{text}' is not an address; an address is seed:index, for example 0:48213.")
        address = cls(int(match[1]), int(match[2]))
        if address.seed >= 2**64 or address.index >= 2**63:
            raise AddressError(f"'{text}' is too large; a seed is below 2^64 and an index below 2^63.")
        return address


def philox(counter: list[Tensor], key: tuple[int, int]) -> list[Tensor]:
    """Ten Philox rounds on four int64 tensors that hold 32-bit words."""
    x0, x1, x2, x3 = counter
    k0, k1 = key
    for _ in range(ROUNDS):
        # int64 products wrap modulo 2^64, which leaves all 64 bits right.
        left, right = x0 * MULTIPLIERS[0], x2 * MULTIPLIERS[1]
        x0, x1 = (right >> 32).bitwise_and_(WORD).bitwise_xor_(x1).bitwise_xor_(k0), right.bitwise_and_(WORD)
        x2, x3 = (left >> 32).bitwise_and_(WORD).bitwise_xor_(x3).bitwise_xor_(k1), left.bitwise_and_(WORD)
        k0, k1 = (k0 + WEYL[0]) & WORD, (k1 + WEYL[1]) & WORD
    return [x0, x1, x2, x3]


def _words(seed: int, index: Tensor, blocks: int, stream: int) -> list[Tensor]:
    """Four words for every (index, block): each of shape [len(index), blocks]."""
    shape = (len(index), blocks)
    low, high = (index & WORD)[:, None].expand(shape), (index >> 32)[:, None].expand(shape)
    block = torch.arange(blocks, device=index.device).expand(shape)
    counter = [low, high, block, torch.full_like(block, stream)]
    return philox(counter, (seed & WORD, seed >> 32 & WORD))


def _unit(word: Tensor) -> Tensor:
    """32-bit words as float32 in (0, 1]."""
    return (word.to(torch.float32) + 0.5) * 2.0**-32


def _box_muller(first: Tensor, second: Tensor) -> Tensor:
    radius, angle = (-2 * _unit(first).log()).sqrt(), 2 * math.pi * _unit(second)
    return torch.stack([radius * angle.cos(), radius * angle.sin()], dim=-1)


def _normal(seed: int, index: Tensor, dim: int, stream: int) -> Tensor:
    words = _words(seed, index, -(-dim // 4), stream)
    pairs = torch.cat([_box_muller(words[0], words[1]), _box_muller(words[2], words[3])], dim=-1)
    return pairs.flatten(1)[:, :dim]


def normal(seed: int, index: Tensor, dim: int, stream: int = LATENT) -> Tensor:
    """Standard normal noise of shape [len(index), dim]; row k depends on (seed, index[k]) alone."""
    if index.is_cuda and (kernels := _kernels()):
        return kernels.normals(seed, index, dim, stream)
    if index.device.type != "cpu" or len(index) <= CPU_ROWS:
        return _normal(seed, index, dim, stream)
    return torch.cat([_normal(seed, rows, dim, stream) for rows in index.split(CPU_ROWS)])


def uniform(seed: int, index: Tensor, stream: int = ACCEPT) -> Tensor:
    """One uniform number in (0, 1] for every index."""
    return uniforms(seed, index, 1, stream)[:, 0]


def uniforms(seed: int, index: Tensor, count: int, stream: int) -> Tensor:
    """Uniform numbers in (0, 1] of shape [len(index), count]."""
    if index.is_cuda and (kernels := _kernels()):
        return kernels.units(seed, index, count, stream)
    words = torch.stack(_words(seed, index, -(-count // 4), stream), dim=-1)
    return _unit(words.flatten(1)[:, :count])


@functools.cache
def _kernels() -> ModuleType | None:
    """The same numbers as one GPU kernel each, where Triton is there to build it."""
    try:
        from .gpu import noise
    except ImportError:
        return None
    return noise
