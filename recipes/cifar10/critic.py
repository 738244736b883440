"""The discriminator: residual blocks that halve the size, and how much a group of pictures differs within itself.

    block:  x <- (act(conv(act(conv x))) + 1x1 x) / sqrt 2,   filtered before every second pixel is dropped
    group:  one more channel: the standard deviation over a group of pictures, averaged over channels and pixels

A group is pictures that follow one another. Where real pictures come first, as many as whole groups hold, and drawn
ones behind them, no group holds both: one pass judges all of them as two would.
"""

from __future__ import annotations

from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fir import smoothed
from lace.errors import ValueRangeError
from trainee import Dense, leaky

__all__ = ["Critic", "deviation"]


def deviation(x: Tensor, group: int) -> Tensor:
    """x [N, C, H, W] with the channel of its groups."""
    if len(x) % group:
        raise ValueRangeError(f"{len(x)} pictures are no whole groups of {group}; choose a batch that is.")
    spread = x.unflatten(0, (-1, group)).var(dim=1, correction=0).add(1e-8).sqrt().mean(dim=(1, 2, 3))
    channel = spread[:, None].expand(-1, group).reshape(-1, 1, 1, 1).expand(-1, -1, *x.shape[2:])
    return torch.cat([x, channel], dim=1)


class Conv(nn.Module):
    """A convolution, after the filter and on every second pixel where it is ``down``."""

    def __init__(self, inputs: int, outputs: int, kernel: int, down: bool = False, bias: bool = True) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outputs, inputs, kernel, kernel))
        self.bias = nn.Parameter(torch.zeros(outputs)) if bias else None
        self.gain, self.edge, self.down = (inputs * kernel**2) ** -0.5, kernel // 2, down

    def forward(self, x: Tensor) -> Tensor:
        weight = (self.gain * self.weight).to(x.dtype)
        bias = None if self.bias is None else self.bias.to(x.dtype)
        if not self.down:
            return F.conv2d(x, weight, bias, padding=self.edge)
        if not self.edge:
            return F.conv2d(smoothed(x, 1, step=2), weight, bias)
        return F.conv2d(smoothed(x, self.edge + 1), weight, bias, stride=2)


class Block(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.first, self.second = Conv(inputs, inputs, 3), Conv(inputs, outputs, 3, down=True)
        self.skip = Conv(inputs, outputs, 1, down=True, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return (leaky(self.second(leaky(self.first(x)))) + self.skip(x)) * 0.5**0.5


class Critic(nn.Module):
    """Pictures [N, 3, S, S] -> how real each looks [N]; ``channels`` are those at 4, 8, ... pixels."""

    def __init__(self, channels: tuple[int, ...], group: int, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        self.group, self.dtype = group, dtype
        widest = channels[0]
        self.enter = Conv(3, channels[-1], 1)
        self.blocks = nn.Sequential(*(Block(a, b) for a, b in pairwise(channels[::-1])))
        self.last = Conv(widest + 1, widest, 3)
        self.dense, self.verdict = Dense(16 * widest, widest), Dense(widest, 1)

    def forward(self, pictures: Tensor) -> Tensor:
        x = pictures.to(self.dtype, memory_format=torch.channels_last)
        x = self.blocks(leaky(self.enter(x))).float()
        x = leaky(self.last(deviation(x, self.group)))
        return self.verdict(leaky(self.dense(x.flatten(1))))[:, 0]
