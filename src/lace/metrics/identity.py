"""Whether two pictures show the same person, by ArcFace (Deng et al., 2019).

    loss(a, b) = 1 - cos(e(a), e(b)),   e a face's embedding of 512 numbers

e is MobileFaceNet (Chen et al., 2018), trained by others on WebFace600K to tell people apart; its weights come from a
package. It looks at 112 x 112 pixels with eyes, nose and mouth in fixed places. FFHQ's faces are aligned, so one square
of the picture brings them there.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

__all__ = ["Identity", "MobileFaceNet", "identity_loss"]

EMBEDDING = 512
PIXELS = 112
# Left, top and side of the square, as fractions of an FFHQ picture; recipes/ffhq/identity_crop.py finds it.
CROP = (0.1243, 0.1236, 0.7525)


def layer(inputs: int, outputs: int, kernel: int = 1, stride: int = 1, groups: int = 1) -> nn.Sequential:
    """A convolution (batch normalisation is folded into it) and a learned slope for each channel's negative side."""
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, groups=groups), nn.PReLU(outputs)
    )


class Bottleneck(nn.Sequential):
    """Expand, filter each channel, project."""

    def __init__(self, inputs: int, inner: int, outputs: int, stride: int = 1) -> None:
        filtered = layer(inner, inner, 3, stride, groups=inner)
        super().__init__(layer(inputs, inner), filtered, nn.Conv2d(inner, outputs, 1))


class Residual(Bottleneck):
    """A bottleneck beside a shortcut."""

    def __init__(self, channels: int) -> None:
        super().__init__(channels, channels, channels)

    def forward(self, x: Tensor) -> Tensor:
        return x + super().forward(x)


class MobileFaceNet(nn.Sequential):
    """Crops [N, 3, 112, 112] in [-1, 1] -> embeddings [N, 512] of any length."""

    def __init__(self) -> None:
        super().__init__(
            layer(3, 128, 3, stride=2),
            layer(128, 128, 3, groups=64),
            Bottleneck(128, 128, 128, stride=2),
            *(Residual(128) for _ in range(4)),
            Bottleneck(128, 256, 256, stride=2),
            *(Residual(256) for _ in range(6)),
            Bottleneck(256, 512, 256, stride=2),
            *(Residual(256) for _ in range(2)),
            layer(256, 512),
            layer(512, 64),
            nn.Flatten(),
            nn.Linear(64 * 7 * 7, EMBEDDING),
        )


class Identity(nn.Module):
    """ArcFace on FFHQ-framed pictures."""

    def __init__(self, network: MobileFaceNet) -> None:
        super().__init__()
        self.network = network.requires_grad_(False).eval()

    @classmethod
    def load(cls) -> Identity:
        """With the published weights, downloaded (20 MB) and converted if this is the first time."""
        from ..weights.arcface import load

        return cls(load())

    def embed(self, pictures: Tensor) -> Tensor:
        """Unit vectors [N, 512] of pictures [N, 3, S, S] in [-1, 1]."""
        return F.normalize(self.network(arcface_framing(pictures)), dim=1)

    def forward(self, before: Tensor, after: Tensor) -> Tensor:
        """The identity loss [N] between pictures."""
        return identity_loss(self.embed(before), self.embed(after))


def identity_loss(a: Tensor, b: Tensor) -> Tensor:
    """1 - cosine [N] of unit vectors [N, 512]: 0 for the same face, about 1 for strangers."""
    return 1 - (a * b).sum(dim=-1)


def arcface_framing(pictures: Tensor) -> Tensor:
    """FFHQ-framed pictures cropped as ArcFace's training faces are."""
    size = pictures.shape[-1]
    left, top, side = (round(part * size) for part in CROP)
    crop = pictures[:, :, top : top + side, left : left + side]
    return F.interpolate(crop, size=(PIXELS, PIXELS), mode="bilinear", antialias=True)
