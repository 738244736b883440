"""MobileStyleGAN: StyleGAN2's mapping, and a synthesis small enough for a phone (Belousov, arXiv:2104.04767).

    mapping:    z / rms(z) -> 8 x [linear, leaky ReLU, sqrt 2] -> w
    truncation: w <- mean + psi (w - mean)
    synthesis:  constant 4x4x512 -> styled 3x3 convolution -> 7 blocks, 8x8 to 512x512 -> 1x1 -> inverse Haar
    block:      scale by a style -> inverse Haar (4C channels -> C, twice the size) -> 2 styled separable convolutions

A styled convolution scales its input channels by a linear function of w, convolves (depthwise 3x3, then pointwise 1x1),
adds a fixed noise map and a bias, and applies a leaky ReLU. There is no random noise: a picture is a function of w.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .base import Generator

__all__ = ["MobileStyleGAN"]

STYLE_DIM = 512
# Channels of the blocks at 4, 8, 16, ... 512 pixels.
CHANNELS = (512, 512, 512, 512, 512, 256, 128, 64)
SLOPE = 0.2


class Mapping(nn.Module):
    """z -> w."""

    def __init__(self, depth: int = 8) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(STYLE_DIM, STYLE_DIM) for _ in range(depth))

    def forward(self, z: Tensor) -> Tensor:
        x = z * (z.square().mean(dim=1, keepdim=True) + 1e-8).rsqrt()
        for layer in self.layers:
            x = F.leaky_relu(layer(x), SLOPE) * 2**0.5
        return x


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


class MobileStyleGAN(Generator):
    """Faces of 1024x1024 pixels from 512 numbers.

    ``psi`` is the truncation: below 1 it draws w towards its mean, for better and more alike pictures.
    """

    latent_dim = STYLE_DIM

    psi: float

    def __init__(self, psi: float = 0.7, identity: str = "mobilestylegan") -> None:
        super().__init__()
        self.mapping = Mapping()
        self.synthesis = Synthesis()
        self.register_buffer("w_mean", torch.zeros(STYLE_DIM))
        self.psi = psi
        self._weights_identity = identity
        self.requires_grad_(False).eval()

    w_mean: Tensor

    @property
    def identity(self) -> str:  # type: ignore[override]
        return f"{self._weights_identity}-psi{self.psi:g}"

    @property
    def weights_identity(self) -> str:
        return self._weights_identity

    def to_w(self, z: Tensor) -> Tensor:
        return self.truncate(self.mapping(z.to(self.w_mean.dtype)), self.psi)

    def truncated(self, z: Tensor, psi: Tensor) -> Tensor:
        return self.truncate(self.mapping(z.to(self.w_mean.dtype)), psi[:, None])

    def truncate(self, w: Tensor, psi: float | Tensor) -> Tensor:
        """w drawn towards its mean; psi is a number, or one for each row as [N, 1]."""
        return self.w_mean + psi * (w - self.w_mean)

    def to_picture(self, w: Tensor) -> Tensor:
        w = w.to(self.synthesis.constant.dtype)
        if w.device.type == "cpu":
            # One at a time a picture's layers fit the cache and styles fold into kernels.
            return torch.cat([self.synthesis(one) for one in w.split(1)]).float()
        return self.synthesis(w).float()
