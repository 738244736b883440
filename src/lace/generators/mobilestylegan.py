"""MobileStyleGAN: StyleGAN2's mapping, and a synthesis small enough for a phone (Belousov, arXiv:2104.04767).

    mapping:    z / rms(z) -> 8 x [linear, leaky ReLU, sqrt 2] -> w
    truncation: w <- mean + psi (w - mean)
    synthesis:  constant 4x4x512 -> styled 3x3 convolution -> 7 blocks, 8x8 to 512x512 -> 1x1 -> inverse Haar
    block:      scale by a style -> inverse Haar (4C channels -> C, twice the size) -> 2 styled separable convolutions

A styled convolution scales its input channels by a linear function of w, convolves (depthwise 3x3, then pointwise 1x1),
adds a fixed noise map and a bias, and applies a leaky ReLU. There is no random noise: a picture is a function of w.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..gpu.recorded import Recorded
from .mapping import Mapping, StyleGenerator

__all__ = ["MobileStyleGAN"]

STYLE_DIM = 512
DEPTH = 8
# Pictures that a GPU makes in one recording.
TOGETHER = 16
# Channels of the blocks at 4, 8, 16, ... 512 pixels.
CHANNELS = (512, 512, 512, 512, 512, 256, 128, 64)
SLOPE = 0.2


def inverse_haar(bands: Tensor) -> Tensor:
    """Undo one level of a Haar wavelet: [N, 4C, H, W] -> [N, C, 2H, 2W], without its factor 1/2.

    x[2i+a, 2j+b] = ll + (-1)^a lh + (-1)^b hl + (-1)^(a+b) hh,   bands in the order ll_1..ll_C, lh_1, hl_1, hh_1, ...
    """
    n, c, h, w = bands.shape[0], bands.shape[1] // 4, bands.shape[2], bands.shape[3]
    ll, lh, hl, hh = bands[:, :c], bands[:, c::3], bands[:, c + 1 :: 3], bands[:, c + 2 :: 3]
    top, bottom, top_detail, bottom_detail = ll + lh, ll - lh, hl + hh, hl - hh
    x = torch.empty((n, c, 2 * h, 2 * w), dtype=bands.dtype, device=bands.device, memory_format=torch.channels_last)
    x[:, :, 0::2, 0::2] = top + top_detail
    x[:, :, 0::2, 1::2] = top - top_detail
    x[:, :, 1::2, 0::2] = bottom + bottom_detail
    x[:, :, 1::2, 1::2] = bottom - bottom_detail
    return x


class Style(nn.Linear):
    """The scale of each channel, a linear function of w: [N, 512] -> [N, C, 1, 1]."""

    def __init__(self, channels: int) -> None:
        super().__init__(STYLE_DIM, channels)

    def forward(self, w: Tensor) -> Tensor:
        return super().forward(w)[:, :, None, None]


class StyledConv(nn.Module):
    """y = leaky(K * (s(w) x) + noise + bias); subclasses say what K is."""

    kernel: nn.Conv2d

    def __init__(self, in_channels: int, out_channels: int, size: int) -> None:
        super().__init__()
        self.style = Style(in_channels)
        self.noise = nn.Parameter(torch.empty(size, size))
        self.bias = nn.Parameter(torch.empty(out_channels))

    def forward(self, x: Tensor, w: Tensor) -> Tensor:
        x = self.convolve(x, self.style(w))
        return F.leaky_relu_(x.add_(self.noise), SLOPE)

    def convolve(self, x: Tensor, style: Tensor) -> Tensor:
        raise NotImplementedError


class DenseStyledConv(StyledConv):
    """K is an ordinary 3x3 convolution (the first layer alone)."""

    def __init__(self, in_channels: int, out_channels: int, size: int) -> None:
        super().__init__(in_channels, out_channels, size)
        self.weight = nn.Parameter(torch.empty(out_channels, in_channels, 3, 3))

    def convolve(self, x: Tensor, style: Tensor) -> Tensor:
        return F.conv2d(x * style, self.weight, self.bias, padding=1)


class SeparableStyledConv(StyledConv):
    """K is a depthwise 3x3 convolution followed by a pointwise one."""

    def __init__(self, in_channels: int, out_channels: int, size: int) -> None:
        super().__init__(in_channels, out_channels, size)
        self.depthwise = nn.Parameter(torch.empty(in_channels, 1, 3, 3))
        self.pointwise = nn.Parameter(torch.empty(out_channels, in_channels, 1, 1))

    def convolve(self, x: Tensor, style: Tensor) -> Tensor:
        if len(x) == 1:
            # Scaling nine weights a channel is cheaper than scaling the picture.
            x = F.conv2d(x, self.depthwise * style[0][:, None], padding=1, groups=x.shape[1])
        else:
            x = F.conv2d(x * style, self.depthwise, padding=1, groups=x.shape[1])
        return F.conv2d(x, self.pointwise, self.bias)


class Block(nn.Module):
    """Twice the size, then two styled convolutions; takes the three styles of its part of w."""

    def __init__(self, in_channels: int, out_channels: int, size: int) -> None:
        super().__init__()
        self.rise = Style(in_channels)
        self.first = SeparableStyledConv(in_channels // 4, out_channels, size)
        self.second = SeparableStyledConv(out_channels, out_channels, size)

    def forward(self, x: Tensor, w: Tensor) -> Tensor:
        x = inverse_haar(x * (0.5 * self.rise(w[:, 0])))
        return self.second(self.first(x, w[:, 1]), w[:, 2])


class Synthesis(nn.Module):
    """w -> x; w is [N, 512], or [N, 23, 512] with one row for each style."""

    def __init__(self) -> None:
        super().__init__()
        self.constant = nn.Parameter(torch.empty(1, CHANNELS[0], 4, 4))
        self.first = DenseStyledConv(CHANNELS[0], CHANNELS[0], 4)
        sizes = [(CHANNELS[k], CHANNELS[k + 1], 8 * 2**k) for k in range(len(CHANNELS) - 1)]
        self.blocks = nn.ModuleList(Block(*size) for size in sizes)
        self.last_style = Style(CHANNELS[-1])
        self.last = nn.Conv2d(CHANNELS[-1], 12, 1)

    @property
    def styles(self) -> int:
        return 3 * len(self.blocks) + 2

    def forward(self, w: Tensor) -> Tensor:
        if w.dim() == 2:
            w = w[:, None].expand(-1, self.styles, -1)
        x = self.constant.expand(len(w), -1, -1, -1).contiguous(memory_format=torch.channels_last)
        x = self.first(x, w[:, 0])
        for k, block in enumerate(self.blocks):
            x = block(x, w[:, 1 + 3 * k : 4 + 3 * k])
        return inverse_haar(0.5 * self.last(x * self.last_style(w[:, -1])))


class MobileStyleGAN(StyleGenerator):
    """Faces of 1024x1024 pixels from 512 numbers."""

    synthesis: Synthesis
    latent_dim = STYLE_DIM
    # A block rises to its size, then convolves twice; the last style colours all that a StyleGAN2 does above.
    style_layers = (0, *(layer for k in range(1, len(CHANNELS)) for layer in (2 * k - 1, 2 * k - 1, 2 * k)), 15)

    def __init__(self, psi: float = 0.7, identity: str = "mobilestylegan") -> None:
        super().__init__(STYLE_DIM, psi, identity)
        self.mapping = Mapping([STYLE_DIM] * (DEPTH + 1))
        self.synthesis = Synthesis()
        self.requires_grad_(False).eval()
        self._quick: Callable[..., tuple[Tensor, ...]] | None = None

    def to_picture(self, w: Tensor) -> Tensor:
        """Pictures; on a GPU in half precision, unless gradients are asked for."""
        if not w.is_cuda or torch.is_grad_enabled():
            return self.draw(w)
        if self._quick is None:
            self._quick = self._quickly()
        return self._quick(w.to(self.w_mean.dtype))[0]

    def _quickly(self) -> Callable[..., tuple[Tensor, ...]]:
        try:
            from ..gpu.faces import Faces
        except ImportError:
            # Without Triton there are no kernels.
            return lambda w: (self.draw(w),)
        return Recorded(Faces(self.synthesis), TOGETHER, is_padded=False)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Any:
        """Weights that move leave what was made of them behind."""
        self._quick = None
        return super()._apply(fn, recurse)
