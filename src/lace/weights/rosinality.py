"""The checkpoints of rosinality's stylegan2-pytorch: the same generator under other names.

    style.{i+1}                   mapping.fc{i}
    input.input                   synthesis.b4.const
    conv1, to_rgb1                synthesis.b4.conv1, .torgb
    convs.{2i}, convs.{2i+1}      synthesis.b{8 * 2^i}.conv0, .conv1
    to_rgbs.{i}                   synthesis.b{8 * 2^i}.torgb
    noises.noise_{n}              the noise of the n-th layer, from 4x4 upwards

Nothing is turned round: up-convolutions are stored alike. Only kernels are scaled before they are demodulated.
"""

from __future__ import annotations

import re
from typing import Any

from .stylegan2 import Found, noise_name
from .tensors import Hoard, Stored

__all__ = ["is_state", "read"]

LAYER = {
    "conv.weight": "weight",
    "conv.modulation.weight": "affine.weight",
    "conv.modulation.bias": "affine.bias",
    "noise.weight": "noise_strength",
    "activate.bias": "bias",
    "bias": "bias",
}


def is_state(value: Any) -> bool:
    return isinstance(value, dict) and "input.input" in value


def read(state: dict[str, Any], mean: Any, hoard: Hoard) -> Found:
    """A generator's state dict, and the mean of w where the file has one."""
    stored = {name: hoard.stored(value) for name, value in state.items()}
    theirs = dict(pair for name, value in stored.items() for pair in renamed(name, value))
    if mean is not None:
        theirs["mapping.w_avg"] = flat(hoard.stored(mean))
    return Found(kind="StyleGAN2, rosinality's checkpoint", state=theirs)


def renamed(name: str, value: Stored) -> list[tuple[str, Stored]]:
    """A tensor under the name, and in the shape, of stylegan2-ada-pytorch."""
    part, _, rest = name.partition(".")
    number, _, kind = rest.partition(".")
    if name == "input.input":
        return [("synthesis.b4.const", value.changed(value.shape[1:], lambda x: x[0]))]
    if part == "noises" and re.fullmatch(r"noise_\d{1,2}", rest):
        return [(noise_name(int(rest[6:])), value.changed(value.shape[2:], lambda x: x[0, 0]))]
    if part == "style" and re.fullmatch(r"[1-9]\d?", number):
        return [(f"mapping.fc{int(number) - 1}.{kind}", value)]
    if part in ("convs", "to_rgbs") and re.fullmatch(r"\d{1,2}", number):
        n = int(number)
        place = f"b{2 ** (n // 2 + 3)}.conv{n % 2}" if part == "convs" else f"b{2 ** (n + 3)}.torgb"
        return layer(f"synthesis.{place}", kind, value)
    if part in ("conv1", "to_rgb1"):
        return layer("synthesis.b4." + ("conv1" if part == "conv1" else "torgb"), rest, value)
    return [(name, value)]


def layer(place: str, kind: str, value: Stored) -> list[tuple[str, Stored]]:
    """A tensor of a styled layer."""
    if kind in ("conv.blur.kernel", "upsample.kernel"):
        return [(f"{place}.resample_filter", value)]
    if kind == "conv.weight":
        scale = 1 if "torgb" in place else (value.shape[2:3] or (1,))[0] ** -0.5 / (value.shape[3:4] or (1,))[0]
        return [(f"{place}.weight", value.changed(value.shape[1:], lambda x: scale * x[0]))]
    if kind in ("noise.weight", "bias"):
        return [(f"{place}.{LAYER[kind]}", flat(value, () if kind == "noise.weight" else None))]
    return [(f"{place}.{LAYER.get(kind, kind)}", value)]


def flat(value: Stored, shape: tuple[int, ...] | None = None) -> Stored:
    """Without dimensions of size 1."""
    sizes = tuple(size for size in value.shape if size != 1) if shape is None else shape
    return value.changed(sizes, lambda x: x.reshape(sizes))
