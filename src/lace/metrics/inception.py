"""The network of FID (Heusel et al., 2017): Inception v3 as TensorFlow published it on 2015-12-05.

    FID(a, b) = Frechet distance of a's and b's 2,048 pooled features

A distance is FID only on exactly these weights, and they are in no package: put torch-fidelity's file (WEIGHTS below)
into the cache folder, or let torch-fidelity download it once. The end of its name is the beginning of its SHA-256, by
which it is known. We have not had it: the network was compared with torch-fidelity's on other weights only.

As in TensorFlow's graph, averages leave padding out, the last block pools by maximum, and pictures are resized by
linear interpolation from the upper left corner, without antialiasing.
"""

from __future__ import annotations

import hashlib
from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..errors import WeightsError
from ..weights.store import home

__all__ = ["WEIGHTS", "Inception", "standard_weights"]

WEIGHTS = "weights-inception-2015-12-05-6726825d.pth"
FEATURES, CLASSES, PIXELS = 2048, 1008, 299

# What stands side by side at one step of a chain, mostly one convolution: channels, kernel (high, wide), stride.
Step = tuple[tuple[int, tuple[int, int], int], ...]


def step(outputs: int, high: int, wide: int = 0, stride: int = 1) -> Step:
    return ((outputs, (high, wide or high), stride),)


class Conv(nn.Module):
    """A convolution, batch normalisation and a ramp; padded unless it strides or is told not to."""

    def __init__(self, inputs: int, outputs: int, kernel: tuple[int, int], stride: int = 1, pad: bool = True) -> None:
        super().__init__()
        padding = (kernel[0] // 2, kernel[1] // 2) if pad and stride == 1 else 0
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride, padding, bias=False)
        self.bn = nn.BatchNorm2d(outputs, eps=1e-3)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.bn(self.conv(x)))


mean_around = partial(F.avg_pool2d, kernel_size=3, stride=1, padding=1, count_include_pad=False)
most_around = partial(F.max_pool2d, kernel_size=3, stride=1, padding=1)
most_of_three = partial(F.max_pool2d, kernel_size=3, stride=2)


class Mixed(nn.Module):
    """Chains of convolutions side by side, and a pooling, by itself or with a convolution; under the file's names."""

    def __init__(self, inputs: int, pool: partial[Tensor], pooled: int = 0, **chains: list[Step]) -> None:
        super().__init__()
        self.pool, self.projects = pool, pooled > 0
        self.chains = [self._add(name, inputs, chain) for name, chain in chains.items()]
        if pooled:
            self.branch_pool = Conv(inputs, pooled, (1, 1))

    def _add(self, name: str, inputs: int, chain: list[Step]) -> list[list[str]]:
        """Make the convolutions of a chain; their names, step by step."""
        names = []
        for k, side_by_side in enumerate(chain, start=1):
            letters = "ab" if len(side_by_side) > 1 else [""]
            own = [name] if len(chain) == 1 else [f"{name}_{k}{letter}" for letter in letters]
            for each, (outputs, kernel, stride) in zip(own, side_by_side, strict=True):
                self.add_module(each, Conv(inputs, outputs, kernel, stride))
            inputs = sum(outputs for outputs, _, _ in side_by_side)
            names.append(own)
        return names

    def forward(self, x: Tensor) -> Tensor:
        ends = []
        for chain in self.chains:
            y = x
            for own in chain:
                y = torch.cat([self.get_submodule(name)(y) for name in own], dim=1)
            ends.append(y)
        pooled = self.pool(x)
        return torch.cat([*ends, self.branch_pool(pooled) if self.projects else pooled], dim=1)


def mixed_5(inputs: int, pooled: int) -> Mixed:
    """35 x 35 places."""
    return Mixed(
        *(inputs, mean_around, pooled),
        branch1x1=[step(64, 1)],
        branch5x5=[step(48, 1), step(64, 5)],
        branch3x3dbl=[step(64, 1), step(96, 3), step(96, 3)],
    )


def mixed_6(inner: int) -> Mixed:
    """17 x 17 places, whose neighbours are seen row by row and column by column."""
    row, column = step(inner, 1, 7), step(inner, 7, 1)
    return Mixed(
        *(768, mean_around, 192),
        branch1x1=[step(192, 1)],
        branch7x7=[step(inner, 1), row, step(192, 7, 1)],
        branch7x7dbl=[step(inner, 1), column, row, column, step(192, 1, 7)],
    )


def mixed_7(inputs: int, pool: partial[Tensor]) -> Mixed:
    """8 x 8 places."""
    cross = step(384, 1, 3) + step(384, 3, 1)
    return Mixed(
        *(inputs, pool, 192),
        branch1x1=[step(320, 1)],
        branch3x3=[step(384, 1), cross],
        branch3x3dbl=[step(448, 1), step(384, 3), cross],
    )


class Inception(nn.Module):
    """Pictures [N, 3, H, W] in [-1, 1] -> features [N, 2048]."""

    def __init__(self) -> None:
        super().__init__()
        self.Conv2d_1a_3x3 = Conv(3, 32, (3, 3), stride=2)
        self.Conv2d_2a_3x3 = Conv(32, 32, (3, 3), pad=False)
        self.Conv2d_2b_3x3 = Conv(32, 64, (3, 3))
        self.Conv2d_3b_1x1 = Conv(64, 80, (1, 1))
        self.Conv2d_4a_3x3 = Conv(80, 192, (3, 3), pad=False)
        self.Mixed_5b, self.Mixed_5c, self.Mixed_5d = mixed_5(192, 32), mixed_5(256, 64), mixed_5(288, 64)
        self.Mixed_6a = Mixed(
            *(288, most_of_three),
            branch3x3=[step(384, 3, stride=2)],
            branch3x3dbl=[step(64, 1), step(96, 3), step(96, 3, stride=2)],
        )
        self.Mixed_6b, self.Mixed_6c = mixed_6(128), mixed_6(160)
        self.Mixed_6d, self.Mixed_6e = mixed_6(160), mixed_6(192)
        self.Mixed_7a = Mixed(
            *(768, most_of_three),
            branch3x3=[step(192, 1), step(320, 3, stride=2)],
            branch7x7x3=[step(192, 1), step(192, 1, 7), step(192, 7, 1), step(192, 3, stride=2)],
        )
        self.Mixed_7b, self.Mixed_7c = mixed_7(1280, mean_around), mixed_7(2048, most_around)
        # In the file, but not on the way to features.
        self.fc = nn.Linear(FEATURES, CLASSES)

    def forward(self, pictures: Tensor) -> Tensor:
        """Features of pictures as a PNG would hold them."""
        x = (resized((pictures * 127.5 + 127.5).round().clamp(0, 255)) - 128) / 128
        x = self.Conv2d_2b_3x3(self.Conv2d_2a_3x3(self.Conv2d_1a_3x3(x)))
        x = self.Conv2d_4a_3x3(self.Conv2d_3b_1x1(most_of_three(x)))
        x = self.Mixed_5d(self.Mixed_5c(self.Mixed_5b(most_of_three(x))))
        x = self.Mixed_6e(self.Mixed_6d(self.Mixed_6c(self.Mixed_6b(self.Mixed_6a(x)))))
        return self.Mixed_7c(self.Mixed_7b(self.Mixed_7a(x))).mean(dim=(2, 3))

    @classmethod
    def load(cls, path: Path) -> Inception:
        """The standard weights, which :func:`standard_weights` finds; a file that is not they is refused."""
        try:
            digest, known = hashlib.sha256(path.read_bytes()).hexdigest(), digest_in(WEIGHTS)
            if not digest.startswith(known):
                raise WeightsError(
                    f"{path} has SHA-256 {digest[:8]}... where {known}... makes FID comparable; delete it, and fetch "
                    "torch-fidelity's file again."
                )
            network = cls()
            network.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
        except OSError as error:
            raise WeightsError(f"{path} cannot be read ({error.strerror or error}).") from error
        return network.requires_grad_(False).eval()


def standard_weights() -> Path | None:
    """The file with the standard weights, in our cache folder or where torch-fidelity leaves it; None without one."""
    places = (home(), Path(torch.hub.get_dir()) / "checkpoints")
    return next((place / WEIGHTS for place in places if (place / WEIGHTS).is_file()), None)


def digest_in(name: str) -> str:
    """The beginning of a file's SHA-256, which ends its name."""
    return name.removesuffix(".pth").rsplit("-", 1)[1]


def resized(pictures: Tensor) -> Tensor:
    """299 x 299 pixels as TensorFlow 1 makes them: pixel k is read at k size / 299, between the two nearest."""
    for dim in (2, 3):
        size = pictures.shape[dim]
        place = torch.arange(PIXELS, device=pictures.device) * (size / PIXELS)
        before = place.long()
        part = (place - before)[:, None] if dim == 2 else place - before
        low, high = (pictures.index_select(dim, k) for k in (before, (before + 1).clamp_max(size - 1)))
        pictures = low + (high - low) * part
    return pictures
