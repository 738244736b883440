"""EfficientNet-Lite0 (Tan and Le, arXiv:1905.11946; the Lite variant has ReLU6 and no squeeze-and-excitation).

stem 3x3/2 -> 16 inverted residual blocks [expand 1x1, depthwise kxk, project 1x1] -> 1x1 to 1280 -> mean over space
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

__all__ = ["EfficientNetLite0", "imagenet_state"]

FEATURES = 1280
# Each stage: expansion, channels, blocks, stride of the first, kernel.
STAGES = (
    (1, 16, 1, 1, 3),
    (6, 24, 2, 2, 3),
    (6, 40, 2, 2, 5),
    (6, 80, 3, 2, 3),
    (6, 112, 3, 1, 5),
    (6, 192, 4, 2, 5),
    (6, 320, 1, 1, 3),
)


class Conv(nn.Conv2d):
    """A convolution without bias that pads as TensorFlow's SAME does: the odd pixel goes to the right and bottom."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> None:
        super().__init__(inputs, outputs, kernel, stride, groups=groups, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        kernel, stride = self.kernel_size[0], self.stride[0]
        extra = [max((-(-size // stride) - 1) * stride + kernel - size, 0) for size in x.shape[-2:]]
        pad = [extra[1] // 2, extra[1] - extra[1] // 2, extra[0] // 2, extra[0] - extra[0] // 2]
        return super().forward(F.pad(x, pad) if any(pad) else x)


def norm(channels: int) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(channels, eps=1e-3, momentum=0.01)


class Block(nn.Module):
    """Expand, filter each channel, project; with a shortcut where shapes allow."""

    def __init__(self, inputs: int, outputs: int, expansion: int, kernel: int, stride: int) -> None:
        super().__init__()
        inner = inputs * expansion
        if expansion > 1:
            self.expand_conv, self.bn0 = Conv(inputs, inner, 1), norm(inner)
        self.depthwise_conv, self.bn1 = Conv(inner, inner, kernel, stride, groups=inner), norm(inner)
        self.project_conv, self.bn2 = Conv(inner, outputs, 1), norm(outputs)
        self.expands, self.shortcut = expansion > 1, stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu6(self.bn0(self.expand_conv(x))) if self.expands else x
        y = F.relu6(self.bn1(self.depthwise_conv(y)))
        y = self.bn2(self.project_conv(y))
        return x + y if self.shortcut else y


class EfficientNetLite0(nn.Module):
    """Pictures [N, 3, H, W] in [-1, 1] -> features [N, 1280]."""

    def __init__(self) -> None:
        super().__init__()
        self.conv_stem, self.bn0 = Conv(3, 32, 3, 2), norm(32)
        blocks, inputs = [], 32
        for expansion, outputs, repeats, stride, kernel in STAGES:
            for k in range(repeats):
                blocks.append(Block(inputs, outputs, expansion, kernel, stride if k == 0 else 1))
                inputs = outputs
        self.blocks = nn.ModuleList(blocks)
        self.conv_head, self.bn1 = Conv(inputs, FEATURES, 1), norm(FEATURES)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu6(self.bn0(self.conv_stem(x)))
        for block in self.blocks:
            x = block(x)
        return F.relu6(self.bn1(self.conv_head(x))).mean(dim=(2, 3))


def imagenet_state(file: str) -> dict[str, Tensor]:
    """The published ImageNet weights under our names, without the classifier."""
    state = torch.load(file, map_location="cpu", weights_only=True)
    renamed = {name.replace("._", ".").lstrip("_"): value for name, value in state.items()}
    return {name: value for name, value in renamed.items() if not name.startswith("fc.")}
