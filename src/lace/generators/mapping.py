"""What StyleGAN2 and its kin share: the way from noise to w, and truncation.

mapping:    z / rms(z) -> L x [linear, leaky ReLU, sqrt 2] -> w
classes:    e = linear(one-hot c), and [z / rms(z), e / rms(e)] goes in
truncation: w <- mean + psi (w - mean)
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .base import Generator

__all__ = ["Mapping", "StyleGenerator", "activation_gain"]


def activation_gain(slope: float) -> float:
    """What keeps the variance through a leaky ReLU, as StyleGAN2 counts it; a slope of 1 leaves everything as it is."""
    return 1.0 if slope == 1 else 2**0.5


def unit(x: Tensor) -> Tensor:
    """Rows scaled to a root mean square of 1."""
    return x * (x.square().mean(dim=1, keepdim=True) + 1e-8).rsqrt()


class Mapping(nn.Module):
    """z -> w; ``widths`` are those of z, of every layer between, and of w. Classes come in by an embedding."""

    def __init__(self, widths: Sequence[int], slope: float = 0.2, classes: int = 0, embedding: int = 0) -> None:
        super().__init__()
        inputs = [widths[0] + (embedding if classes else 0), *widths[1:]]
        self.slope = slope
        self.embed = nn.Linear(classes, embedding) if classes else None
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(inputs))

    def forward(self, z: Tensor, label: Tensor | None = None) -> Tensor:
        x = unit(z)
        if self.embed is not None and label is not None:
            x = torch.cat([x, unit(self.embed(label))], dim=1)
        for layer in self.layers:
            x = F.leaky_relu(layer(x), self.slope) * activation_gain(self.slope)
        return x


class Folded:
    """A mapping and its truncation in two calls a layer.

    A leaky ReLU passes positive factors on, so that the gain g of every layer can wait for the end:

        h_k = leaky(W_k h_(k-1) + b_k / g^(k-1)),   w = (1 - psi) mean + psi g^L h_L
    """

    def __init__(self, mapping: Mapping, mean: Tensor, psi: float, dtype: torch.dtype) -> None:
        gain = activation_gain(mapping.slope)
        layers = [layer for layer in mapping.layers if isinstance(layer, nn.Linear)]
        self._slope, self._dtype = mapping.slope, dtype
        self._layers = [
            (layer.weight.detach().to(dtype), (layer.bias.detach() / gain**k).to(dtype))
            for k, layer in enumerate(layers)
        ]
        self._mean, self._scale = ((1 - psi) * mean).to(dtype), psi * gain ** len(layers)

    def __call__(self, z: Tensor) -> Tensor:
        x = F.rms_norm(z.float(), z.shape[1:], eps=1e-8).to(self._dtype)
        for weight, bias in self._layers:
            x = F.leaky_relu_(F.linear(x, weight, bias), self._slope)
        return torch.add(self._mean, x, alpha=self._scale)


class StyleGenerator(Generator):
    """A generator whose pictures are made from w, the output of a mapping.

    ``psi`` is the truncation: below 1 it draws w towards its mean, for better and more alike pictures.
    """

    mapping: Mapping
    synthesis: nn.Module
    psi: float
    w_mean: Tensor

    def __init__(self, w_dim: int, psi: float, identity: str) -> None:
        super().__init__()
        self.register_buffer("w_mean", torch.zeros(w_dim))
        self.psi = psi
        self._weights_identity = identity

    @property
    def identity(self) -> str:  # type: ignore[override]
        return f"{self._weights_identity}-psi{self.psi:g}"

    @property
    def weights_identity(self) -> str:
        return self._weights_identity

    def to_w(self, z: Tensor) -> Tensor:
        return self.truncate(self.map(z.to(self.w_mean.dtype)), self.psi)

    @property
    def is_pure(self) -> bool:  # type: ignore[override]
        return self.mapping.embed is None

    def swift(self, dtype: torch.dtype) -> Folded:
        return Folded(self.mapping, self.w_mean, self.psi, dtype)

    def truncated(self, z: Tensor, psi: Tensor) -> Tensor:
        return self.truncate(self.map(z.to(self.w_mean.dtype)), psi[:, None])

    def map(self, z: Tensor) -> Tensor:
        """w as it is before truncation."""
        return self.mapping(z)

    def truncate(self, w: Tensor, psi: float | Tensor) -> Tensor:
        """w drawn towards its mean; psi is a number, or one for each row as [N, 1]."""
        return self.w_mean + psi * (w - self.w_mean)

    def to_picture(self, w: Tensor) -> Tensor:
        return self.draw(w)

    def draw(self, w: Tensor, **how: Any) -> Tensor:
        """Pictures of w; keywords go to the synthesis."""
        w = w.to(self.w_mean.dtype)
        if w.device.type == "cpu":
            # One at a time a picture's layers fit the cache and styles fold into kernels.
            return torch.cat([self.synthesis(one, **how) for one in w.split(1)]).float()
        return self.synthesis(w, **how).float()
