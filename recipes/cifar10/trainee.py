"""The StyleGAN2 that is trained: what :mod:`lace.generators.stylegan2` draws with, before its gains are folded in.

    a weight is kept at unit variance and scaled when it is used: by 1 / sqrt(in), in the mapping also by its rate, 0.01

Names are NVIDIA's, so that the reader of their checkpoints makes LACE's generator of it. Two things differ from that
generator: noise comes in as an argument, fresh for every picture, and the low-pass filter is a sum that compiles well.
Convolutions work in the number type of ``dtype``; w, styles and the picture are in single precision.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fir import doubled, smoothed
from lace.generators.mapping import unit
from lace.generators.stylegan2 import Config
from lace.weights.stylegan2 import Found, config_of, weights_of
from lace.weights.tensors import Stored

__all__ = ["Dense", "Trainee", "leaky"]

DIM, DEPTH, RATE = 512, 2, 0.01


def leaky(x: Tensor) -> Tensor:
    """Leaky ReLU with StyleGAN2's gain."""
    return F.leaky_relu(x, 0.2) * 2**0.5


class Dense(nn.Module):
    """A linear layer; what its optimiser moves is ``rate`` times as large in effect."""

    def __init__(self, inputs: int, outputs: int, bias: float = 0.0, rate: float = 1.0) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outputs, inputs) / rate)
        self.bias = nn.Parameter(torch.full((outputs,), bias))
        self.gain, self.rate = rate * inputs**-0.5, rate

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.gain * self.weight, self.rate * self.bias)


class Layer(nn.Module):
    """A styled 3x3 convolution with noise, at twice the size where it is ``up``."""

    def __init__(self, inputs: int, outputs: int, size: int, up: bool) -> None:
        super().__init__()
        self.affine = Dense(DIM, inputs, bias=1.0)
        self.weight = nn.Parameter(torch.randn(outputs, inputs, 3, 3))
        self.bias = nn.Parameter(torch.zeros(outputs))
        self.noise_strength = nn.Parameter(torch.zeros(()))
        self.size, self.up = size, up

    def forward(self, x: Tensor, w: Tensor, noise: Tensor | None) -> Tensor:
        style = self.affine(w)
        scale = (style.square() @ self.weight.square().sum(dim=(2, 3)).T + 1e-8).rsqrt()
        x = x * style.to(x.dtype)[:, :, None, None]
        y = self.convolve(x, self.weight.to(x.dtype)) * scale.to(x.dtype)[:, :, None, None]
        if noise is not None:
            y = y + (self.noise_strength * noise).to(y.dtype)
        return leaky(y + self.bias.to(y.dtype)[:, None, None])

    def convolve(self, x: Tensor, weight: Tensor) -> Tensor:
        if not self.up:
            return F.conv2d(x, weight, padding=1)
        return smoothed(F.conv_transpose2d(x, weight.transpose(0, 1), stride=2), 1, gain=4)


class Rgb(nn.Module):
    """What a block adds to the picture."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.affine = Dense(DIM, inputs, bias=1.0)
        self.weight = nn.Parameter(torch.randn(3, inputs, 1, 1))
        self.bias = nn.Parameter(torch.zeros(3))

    def forward(self, x: Tensor, w: Tensor) -> Tensor:
        weight = self.weight[:, :, 0, 0] * (self.affine(w) * x.shape[1] ** -0.5)[:, None]
        rgb = x.permute(0, 2, 3, 1).flatten(1, 2) @ weight.to(x.dtype).mT
        return rgb.unflatten(1, x.shape[2:]).permute(0, 3, 1, 2).float() + self.bias[:, None, None]


class Block(nn.Module):
    """One size: an enlarging layer, but for the first block, a layer, and what they add to the picture."""

    def __init__(self, inputs: int, outputs: int, size: int) -> None:
        super().__init__()
        self.conv0 = Layer(inputs, outputs, size, up=True) if size > 4 else None
        self.conv1 = Layer(outputs, outputs, size, up=False)
        self.torgb = Rgb(outputs)
        if size == 4:
            self.const = nn.Parameter(torch.randn(outputs, 4, 4))

    @property
    def layers(self) -> list[Layer]:
        return [layer for layer in (self.conv0, self.conv1) if layer is not None]


class Trainee(nn.Module):
    """z [N, 512] -> pictures [N, 3, S, S]; ``channels`` are those at 4, 8, ... pixels."""

    def __init__(self, channels: tuple[int, ...], dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        self.channels, self.dtype = channels, dtype
        self.mapping = nn.ModuleDict({f"fc{k}": Dense(DIM, DIM, rate=RATE) for k in range(DEPTH)})
        wide = zip((channels[0], *channels), channels, strict=False)
        self.synthesis = nn.ModuleDict({f"b{4 * 2**k}": Block(a, b, 4 * 2**k) for k, (a, b) in enumerate(wide)})

    @property
    def layers(self) -> list[Layer]:
        return [layer for block in self.synthesis.values() for layer in block.layers]  # type: ignore[union-attr]

    @property
    def noises(self) -> int:
        """How many numbers of noise a picture takes."""
        return sum(layer.size**2 for layer in self.layers)

    def forward(self, z: Tensor, noise: Tensor | None = None) -> Tensor:
        """Pictures; ``noise`` [N, noises] is normal numbers, or None for none."""
        w = unit(z)
        for layer in self.mapping.values():
            w = leaky(layer(w))
        maps = iter(self.maps(noise))
        x = self.synthesis["b4"].const.to(self.dtype).expand(len(z), -1, -1, -1)  # type: ignore[operator]
        x = x.contiguous(memory_format=torch.channels_last)
        picture = None
        for block in self.synthesis.values():
            for layer in block.layers:  # type: ignore[union-attr]
                x = layer(x, w, next(maps))
            rgb = block.torgb(x, w)  # type: ignore[operator]
            picture = rgb if picture is None else doubled(picture) + rgb
        assert picture is not None
        return picture

    def maps(self, noise: Tensor | None) -> list[Tensor | None]:
        """The noise of each layer."""
        if noise is None:
            return [None] * len(self.layers)
        parts = noise.split([layer.size**2 for layer in self.layers], dim=1)
        return [part.unflatten(1, (1, layer.size, -1)) for part, layer in zip(parts, self.layers, strict=True)]

    def finished(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """What LACE's own generator is made of, and its weights, gains folded in; fixed noise is drawn for it."""
        state = {name: value.detach().float().cpu() for name, value in self.state_dict().items()}
        stored = {name: Stored(tuple(value.shape), value.clone) for name, value in state.items()}
        found = Found("StyleGAN2 (LACE's own training)", stored, lr_multiplier=RATE)
        config = config_of(found)
        return asdict(config), weights_of(found, Config(**asdict(config)))
