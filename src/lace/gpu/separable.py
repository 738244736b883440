"""The two operations of MobileStyleGAN's blocks, each in one pass over memory; pictures are [N, H, W, C], in halves.

    rise:       x[2i+a, 2j+b, c] = sum_k sign_k(a, b) s[k] y[i, j, k-th band of c],          twice the size
    separable:  y[p, o] = leaky(sum_c P[o, c] sum_t D[c, t] s[c] x[p + t, c] + noise[p] + bias[o]),   t over 3 x 3

A GPU spends its time on these bringing pictures from memory and back: operation by operation they make the way ten
times. Here the depthwise product is made in registers where the pointwise one, a matrix product, takes it up.
"""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from ..generators.mobilestylegan import SLOPE

__all__ = ["rise", "separable"]

# Pixels of a tile, and channels at a time in the sum over c: tall tiles read their neighbours' pixels less often.
TALL, WIDE, DEPTH = 4, 16, 16


@triton.jit
def _band(y, scale, c, inside):
    """The channels c of y, scaled."""
    return tl.load(y + c[None, :], mask=inside, other=0.0).to(tl.float32) * tl.load(scale + c)[None, :]


@triton.jit
def _rise_kernel(x, y, scale, height, width, C: tl.constexpr, BLOCK: tl.constexpr):
    """BLOCK places of one row of y, all channels: each becomes a square of four."""
    row, sample = tl.program_id(0), tl.program_id(1)
    places = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    c = tl.arange(0, C)
    inside = (places < width)[:, None]
    bands = y + ((sample.to(tl.int64) * height + row) * width + places[:, None]) * (4 * C)
    factor = scale + sample * (4 * C)
    # Channel c of the first band is the c-th; the other bands of c lie side by side.
    rest = C + 3 * c
    a, b = _band(bands, factor, c, inside), _band(bands, factor, rest, inside)
    d, e = _band(bands, factor, rest + 1, inside), _band(bands, factor, rest + 2, inside)
    top, bottom, right, cross = a + b, a - b, d + e, d - e
    out = x + ((sample.to(tl.int64) * 2 * height + 2 * row) * 2 * width + 2 * places[:, None]) * C + c[None, :]
    below = 2 * width * C
    tl.store(out, (top + right).to(tl.float16), mask=inside)
    tl.store(out + C, (top - right).to(tl.float16), mask=inside)
    tl.store(out + below, (bottom + cross).to(tl.float16), mask=inside)
    tl.store(out + below + C, (bottom - cross).to(tl.float16), mask=inside)


@triton.jit
def _separable_kernel(
    y, x, scale, depthwise, pointwise, noise, bias, height, width,
    INPUTS: tl.constexpr, OUTPUTS: tl.constexpr, DEPTH: tl.constexpr, TALL: tl.constexpr, WIDE: tl.constexpr,
    COLUMNS: tl.constexpr, SLOPE: tl.constexpr,
):  # fmt: skip
    """A tile of one picture, COLUMNS output channels."""
    sample, across = tl.program_id(1).to(tl.int64), tl.cdiv(width, WIDE)
    place = tl.arange(0, TALL * WIDE)
    row = tl.program_id(0) // across * TALL + place // WIDE
    column = tl.program_id(0) % across * WIDE + place % WIDE
    outputs = tl.program_id(2) * COLUMNS + tl.arange(0, COLUMNS)
    picture = x + sample * height * width * INPUTS
    total = tl.zeros((TALL * WIDE, COLUMNS), tl.float32)
    for first in range(0, INPUTS, DEPTH):
        c = first + tl.arange(0, DEPTH)
        deep = tl.zeros((TALL * WIDE, DEPTH), tl.float32)
        for tap in tl.static_range(9):
            i, j = row + (tap // 3 - 1), column + (tap % 3 - 1)
            inside = (i >= 0) & (i < height) & (j >= 0) & (j < width)
            near = tl.load(picture + (i * width + j)[:, None] * INPUTS + c[None, :], mask=inside[:, None], other=0.0)
            deep += near.to(tl.float32) * tl.load(depthwise + tap * INPUTS + c)[None, :]
        deep *= tl.load(scale + sample * INPUTS + c)[None, :]
        total = tl.dot(deep.to(tl.float16), tl.load(pointwise + c[:, None] * OUTPUTS + outputs[None, :]), total)
    inside, places = (row < height) & (column < width), row * width + column
    total += tl.load(noise + places, mask=inside, other=0.0)[:, None]
    total += tl.load(bias + outputs)[None, :]
    total = tl.where(total > 0, total, SLOPE * total).to(tl.float16)
    out = y + (sample * height * width + places)[:, None] * OUTPUTS + outputs[None, :]
    tl.store(out, total, mask=inside[:, None])


def rise(y: Tensor, scale: Tensor) -> Tensor:
    """y [N, H, W, 4C] with a float factor for each channel [N, 4C], to [N, 2H, 2W, C]."""
    n, height, width, bands = y.shape
    x = y.new_empty(n, 2 * height, 2 * width, bands // 4)
    block = min(triton.next_power_of_2(width), max(1, 2048 // (bands // 4)))
    grid = (height, n, triton.cdiv(width, block))
    _rise_kernel[grid](x, y, scale.contiguous(), height, width, bands // 4, block)
    return x


def separable(x: Tensor, scale: Tensor, depthwise: Tensor, pointwise: Tensor, noise: Tensor, bias: Tensor) -> Tensor:
    """x [N, H, W, C] to [N, H, W, O].

    Factors [N, C], depthwise [9, C], noise [H, W] and bias [O] are floats; pointwise [C, O] is in half precision.
    """
    n, height, width, inputs = x.shape
    outputs = pointwise.shape[1]
    y = x.new_empty(n, height, width, outputs)
    columns = min(outputs, 256)
    grid = (triton.cdiv(height, TALL) * triton.cdiv(width, WIDE), n, outputs // columns)
    _separable_kernel[grid](
        y, x, scale.contiguous(), depthwise, pointwise, noise, bias, height, width,
        inputs, outputs, DEPTH, TALL, WIDE, columns, SLOPE, num_warps=8 if columns > 128 else 4,
    )  # fmt: skip
    return y
