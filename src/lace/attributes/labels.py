"""The labels of the face model's latents, as recipes/ffhq/merge.py keeps them: a byte a class, half a number."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from ..errors import DataError
from .schema import Continuous, Discrete, Schema

__all__ = ["read_labels"]


def read_labels(path: Path, schema: Schema) -> tuple[Tensor, Tensor]:
    """Labels [N, columns] in the schema's layout, and the classes that the independent judge names of the last of them.

    The first class of a word is what the others leave.
    """
    try:
        tensors = load_file(path)
    except (OSError, SafetensorError) as error:
        raise DataError(f"{path} holds no labels ({error}); run this from the root of a checkout of LACE.") from error
    words = [attribute for attribute in schema if isinstance(attribute, Discrete)]
    later = (tensors["classes"].float() / 255).split([word.columns - 1 for word in words], dim=1)
    shares = [torch.cat([1 - share.sum(dim=1, keepdim=True), share], dim=1).clamp_min(0) for share in later]
    parts = {word.name: share / share.sum(dim=1, keepdim=True) for word, share in zip(words, shares, strict=True)}
    numbers = [attribute for attribute in schema if isinstance(attribute, Continuous)]
    for attribute, values in zip(numbers, tensors["numbers"].float().unbind(dim=1), strict=True):
        parts[attribute.name] = ((values - attribute.low) / attribute.span)[:, None]
    return torch.cat([parts[attribute.name] for attribute in schema], dim=1), tensors["independent"].long()
