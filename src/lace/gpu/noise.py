"""Philox and Box-Muller in one pass: the numbers of lace.rng, made where they are used (the equations are there).

In tensor operations ten rounds read and write some hundred times what they make; here each thread keeps its four words.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

__all__ = ["normals", "units"]

BLOCK = 512


@triton.jit
def _units(low, high, index, stream, rows, blocks, BLOCK: tl.constexpr):
    """Four uniform numbers for each of BLOCK (row, block)."""
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    address = tl.load(index + place // blocks, mask=place < rows.to(tl.int64) * blocks, other=0)
    near, far = (address & 0xFFFFFFFF).to(tl.uint32), (address >> 32).to(tl.uint32)
    same = tl.full(place.shape, 0, tl.uint32) + stream.to(tl.uint32, bitcast=True)
    seed = (high.to(tl.uint32, bitcast=True).to(tl.uint64) << 32) | low.to(tl.uint32, bitcast=True).to(tl.uint64)
    a, b, c, d = tl.philox(seed, near, far, (place % blocks).to(tl.uint32), same)
    return _unit(a), _unit(b), _unit(c), _unit(d)


@triton.jit
def _unit(word):
    return (word.to(tl.float32) + 0.5) * 2.3283064365386963e-10


@triton.jit
def _write(out, a, b, c, d, rows, blocks, BLOCK: tl.constexpr):
    """Rows of four side by side."""
    spread = 4 * (tl.program_id(0).to(tl.int64) * BLOCK) + tl.arange(0, 4 * BLOCK)
    four = tl.interleave(tl.interleave(a, c), tl.interleave(b, d))
    tl.store(out + spread, four, mask=spread < 4 * rows.to(tl.int64) * blocks)


@triton.jit(do_not_specialize=["low", "high", "stream", "rows"])
def _uniform_kernel(out, low, high, index, stream, rows, blocks, BLOCK: tl.constexpr):
    a, b, c, d = _units(low, high, index, stream, rows, blocks, BLOCK)
    _write(out, a, b, c, d, rows, blocks, BLOCK)


@triton.jit(do_not_specialize=["low", "high", "stream", "rows"])
def _normal_kernel(out, low, high, index, stream, rows, blocks, BLOCK: tl.constexpr):
    a, b, c, d = _units(low, high, index, stream, rows, blocks, BLOCK)
    near, far = tl.sqrt(-2 * tl.log(a)), tl.sqrt(-2 * tl.log(c))
    turn, other = 6.283185307179586 * b, 6.283185307179586 * d
    first, second = near * tl.cos(turn), near * tl.sin(turn)
    third, fourth = far * tl.cos(other), far * tl.sin(other)
    _write(out, first, second, third, fourth, rows, blocks, BLOCK)


def normals(seed: int, index: Tensor, dim: int, stream: int) -> Tensor:
    """Standard normals [len(index), dim]."""
    return _run(_normal_kernel, seed, index, dim, stream)


def units(seed: int, index: Tensor, count: int, stream: int) -> Tensor:
    """Uniform numbers in (0, 1], [len(index), count]."""
    return _run(_uniform_kernel, seed, index, count, stream)


def _run(kernel: Any, seed: int, index: Tensor, count: int, stream: int) -> Tensor:
    rows, blocks = len(index), -(-count // 4)
    out = torch.empty(rows, 4 * blocks, device=index.device)
    if rows:
        grid = (triton.cdiv(rows * blocks, BLOCK),)
        kernel[grid](out, _word(seed), _word(seed >> 32), index.contiguous(), _word(stream), rows, blocks, BLOCK)
    return out[:, :count]


def _word(number: int) -> int:
    """The low 32 bits, as a number with a sign: whatever it is, a kernel's argument is then of one kind."""
    return (number + 2**31) % 2**32 - 2**31
