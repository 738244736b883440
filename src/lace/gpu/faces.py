"""MobileStyleGAN's pictures on a GPU: half precision, a pass over memory for each convolution, one recording for all.

The equations are those of lace.generators.mobilestylegan; weights are laid out once as lace.gpu.separable wants them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

from ..generators.mobilestylegan import SLOPE, inverse_haar
from .separable import rise, separable

if TYPE_CHECKING:
    from ..generators.mobilestylegan import Block, SeparableStyledConv, Style, Synthesis

__all__ = ["Faces"]


class Faces:
    """w [N, 512] or [N, styles, 512] -> pictures [N, 3, 1024, 1024], as floats."""

    def __init__(self, synthesis: Synthesis) -> None:
        self._styles = synthesis.styles
        first = synthesis.first
        self._constant, self._style = synthesis.constant.half(), first.style
        self._weight, self._bias = first.weight.half(), first.bias.half()
        self._noise = first.noise.half()
        self._blocks = [Doubling(block) for block in synthesis.blocks]  # type: ignore[arg-type]
        self._last_style = synthesis.last_style
        # The factor of the inverse Haar wavelet is taken in.
        self._last = 0.5 * synthesis.last.weight[:, :, 0, 0].T
        assert synthesis.last.bias is not None
        self._last_bias = (0.5 * synthesis.last.bias).half()

    def __call__(self, w: Tensor) -> tuple[Tensor]:
        w = w if w.dim() == 3 else w[:, None].expand(-1, self._styles, -1)
        x = self._start(w[:, 0])
        for k, block in enumerate(self._blocks):
            x = block(x, w[:, 1 + 3 * k : 4 + 3 * k])
        return (self._end(x, self._last_style(w[:, -1])),)

    def _start(self, w: Tensor) -> Tensor:
        x = (self._constant * self._style(w)).half()
        x = F.leaky_relu_(F.conv2d(x, self._weight, self._bias, padding=1).add_(self._noise), SLOPE)
        return x.permute(0, 2, 3, 1).contiguous()

    def _end(self, x: Tensor, style: Tensor) -> Tensor:
        """The 1x1 convolution as a product for each picture, and the inverse wavelet: see rise."""
        n, height, width, channels = x.shape
        weight = (style[:, :, 0] * self._last).half()
        bands = torch.baddbmm(self._last_bias, x.view(n, height * width, channels), weight)
        return inverse_haar(bands.view(n, height, width, -1).permute(0, 3, 1, 2)).float()


class Doubling:
    """A block: twice the size, two convolutions."""

    def __init__(self, block: Block) -> None:
        self._rise: Style = block.rise
        self._convolutions = [Convolution(block.first), Convolution(block.second)]

    def __call__(self, x: Tensor, w: Tensor) -> Tensor:
        x = rise(x, 0.5 * self._rise(w[:, 0])[:, :, 0, 0])
        for k, convolution in enumerate(self._convolutions):
            x = convolution(x, w[:, 1 + k])
        return x


class Convolution:
    """A styled separable convolution."""

    def __init__(self, convolution: SeparableStyledConv) -> None:
        self._style = convolution.style
        self._depthwise = convolution.depthwise.detach().flatten(1).T.contiguous()
        self._pointwise = convolution.pointwise.detach()[:, :, 0, 0].T.half().contiguous()
        self._noise, self._bias = convolution.noise.detach().contiguous(), convolution.bias.detach()

    def __call__(self, x: Tensor, w: Tensor) -> Tensor:
        return separable(x, self._style(w)[:, :, 0, 0], self._depthwise, self._pointwise, self._noise, self._bias)
