"""A StyleGAN2 from its checkpoint: what it is made of, read off the weights' shapes; and its weights, gains folded in.

    training keeps weights at unit variance and scales them when it uses them; here the scale goes into the weights:
    mapping:   weight lr / sqrt(in), bias lr          styles:  weight / sqrt(w_dim)
    rgb:       its style / sqrt(in)                   skip:    weight / sqrt(2 in)

Names are those of stylegan2-ada-pytorch; readers of other formats rename to them.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from itertools import count
from typing import Any

import torch
from torch import Tensor

from .. import rng
from ..errors import DataError, WeightsError
from ..generators.stylegan2 import Config, StyleGAN2
from .mobilestylegan import mean_of_w
from .tensors import Stored

__all__ = ["Found", "config_of", "noise_name", "own_weights", "weights_of"]

LAYERS = {"up": "conv0", "conv": "conv1", "rgb": "torgb", "skip": "skip"}
KINDS = {
    "strength": "noise_strength",
    "noise": "noise_const",
    "style.weight": "affine.weight",
    "style.bias": "affine.bias",
}
SLOPES = {"lrelu": 0.2, "relu": 0.0, "linear": 1.0}


@dataclass(frozen=True)
class Found:
    """A generator in a checkpoint: tensors by name, and what their shapes do not show."""

    kind: str
    state: dict[str, Stored]
    lr_multiplier: float | None = 0.01
    activation: Any = "lrelu"
    mapping_activation: Any = "lrelu"
    clamp: float | None = None
    half: int = 0
    taps: Any = None
    training_set: str = ""

    def shape(self, name: str, rank: int) -> tuple[int, ...]:
        """The shape of a tensor that every StyleGAN2 has."""
        if name not in self.state:
            raise WeightsError(f"its generator has no {name}: it is no StyleGAN2")
        if len(self.state[name].shape) != rank:
            raise WeightsError(f"its {name} has an impossible shape")
        return self.state[name].shape


def noise_name(n: int) -> str:
    """The noise map of the n-th layer, counted from 4x4 upwards: the very first block has only its second layer."""
    return f"synthesis.b{2 ** ((n + 5) // 2)}.conv{0 if n % 2 else 1}.noise_const"


def config_of(found: Found) -> Config:
    """What a generator is made of."""
    state = found.state
    depth = next(k for k in count() if f"mapping.fc{k}.weight" not in state)
    widths = [found.shape(f"mapping.fc{k}.weight", 2)[0] for k in range(depth)]
    embedding, classes = found.shape("mapping.embed.weight", 2) if "mapping.embed.weight" in state else (0, 0)
    sizes = [4]
    while f"synthesis.b{2 * sizes[-1]}.conv1.weight" in state:
        sizes.append(2 * sizes[-1])
    for name in (found.activation, found.mapping_activation):
        if not isinstance(name, str) or name not in SLOPES:
            raise WeightsError(f"its activation is {str(name)[:40]!r}; LACE draws lrelu, relu and linear")
    if not found.lr_multiplier:
        raise WeightsError("its mapping does not say how its weights are scaled")
    try:
        return Config(
            channels=tuple(found.shape(f"synthesis.b{size}.conv1.weight", 4)[0] for size in sizes),
            mapping=(found.shape("mapping.fc0.weight", 2)[1] - embedding, *widths),
            classes=classes,
            embedding=embedding,
            architecture=architecture(state),
            kernel=found.shape("synthesis.b4.conv1.weight", 4)[2],
            filter=taps_of(found),
            slope=SLOPES[found.activation],
            mapping_slope=SLOPES[found.mapping_activation],
            clamp=found.clamp,
            half=found.half,
            picture_channels=found.shape(f"synthesis.b{sizes[-1]}.torgb.weight", 4)[0],
            noise="synthesis.b4.conv1.noise_strength" in state,
        )
    except DataError as error:
        raise WeightsError(str(error).rstrip(".")) from error


def architecture(state: dict[str, Stored]) -> str:
    if any(name.endswith(".skip.weight") for name in state):
        return "resnet"
    return "skip" if "synthesis.b4.torgb.weight" in state else "orig"


def taps_of(found: Found) -> tuple[float, ...]:
    """The low-pass filter; files keep a copy for every layer that doubles its size."""
    copies = [value for name, value in found.state.items() if re.search(r"(?<!conv1)\.resample_filter$", name)]
    if copies:
        lines = [line_of(copy) for copy in copies]
        if any(len(line) != len(lines[0]) or not torch.allclose(line, lines[0], atol=1e-4) for line in lines):
            raise WeightsError("its low-pass filters differ, which LACE does not draw")
        return tuple(round(float(tap), 9) for tap in lines[0])
    if found.taps is None:
        return (1.0, 3.0, 3.0, 1.0)
    if not found.taps or None in found.taps:
        raise WeightsError("its low-pass filter is no list of numbers")
    return tuple(found.taps)


def line_of(filter: Stored) -> Tensor:
    """The taps of a filter that is kept as a line, or as a matrix: their products with one another."""
    if len(filter.shape) not in (1, 2) or max(filter.shape) > 64:
        raise WeightsError("its low-pass filter has an impossible shape")
    matrix = filter.read().double()
    line = matrix.sum(dim=1) if matrix.dim() == 2 else matrix
    line = line / line.sum()
    if matrix.dim() == 2 and (
        matrix.shape[0] != matrix.shape[1] or not torch.allclose(line[:, None] * line, matrix / matrix.sum(), atol=1e-4)
    ):
        raise WeightsError("its low-pass filter is not the same in both directions, which LACE does not draw")
    return line


def weights_of(found: Found, config: Config) -> dict[str, Tensor]:
    """The state dict of :class:`lace.generators.stylegan2.StyleGAN2`, in full precision."""
    shapes = shapes_of(config)
    sources = {name: source_of(name, shape, found, config) for name, shape in shapes.items()}
    known = {theirs for theirs, _ in sources.values()}
    strange = [name for name in found.state if name not in known and not name.endswith("resample_filter")]
    if strange:
        raise WeightsError(f"its generator has {strange[0][:80]}, which no StyleGAN2 has that LACE can draw")
    missing = sum(math.prod(shapes[name]) for name, (theirs, _) in sources.items() if theirs not in found.state)
    if missing > sum(math.prod(value.shape) for value in found.state.values()):
        raise WeightsError("its generator lacks more than it has")
    state = {}
    for name, (theirs, factor) in sources.items():
        value = found.state.get(theirs) or substitute(theirs, theirs_shape(name, shapes[name]))
        expected = theirs_shape(name, shapes[name])
        if value.shape != expected:
            raise WeightsError(f"its {theirs} has the shape {list(value.shape)} where {list(expected)} belongs")
        state[name] = (factor * value.read()).reshape(shapes[name])
        if not state[name].isfinite().all():
            raise WeightsError(f"its {theirs} holds numbers that are not finite")
    if "mapping.w_avg" not in found.state:
        state["w_mean"] = mean_of_w(mapper(config, state))
    return state


def shapes_of(config: Config) -> dict[str, tuple[int, ...]]:
    """The shapes of a generator's weights; nothing is set aside for them."""
    with torch.device("meta"):
        return {name: tuple(value.shape) for name, value in StyleGAN2(config).state_dict().items()}


def own_weights(tensors: dict[str, Stored], config: Config) -> dict[str, Tensor]:
    """Weights that LACE wrote."""
    shapes = shapes_of(config)
    if {name: value.shape for name, value in tensors.items()} != shapes:
        raise WeightsError("its weights are not those that its card describes")
    return {name: value.read() for name, value in tensors.items()}


def source_of(name: str, shape: tuple[int, ...], found: Found, config: Config) -> tuple[str, float]:
    """The name of theirs that a weight of ours is made from, and its factor."""
    if name == "w_mean":
        return "mapping.w_avg", 1.0
    if name == "synthesis.constant":
        return "synthesis.b4.const", 1.0
    area, part, *rest = name.split(".")
    kind = ".".join(rest[1:] if part in ("layers", "blocks") else rest)
    if area == "mapping":
        rate = 1.0 if part == "embed" or found.lr_multiplier is None else found.lr_multiplier
        theirs = "embed" if part == "embed" else f"fc{rest[0]}"
        return f"mapping.{theirs}.{kind}", rate * (shape[-1] ** -0.5 if kind == "weight" else 1.0)
    layer, _, kind = kind.partition(".")
    block = f"synthesis.b{4 * 2 ** int(rest[0])}.{LAYERS[layer]}"
    factor = config.w_dim**-0.5 if kind == "style.weight" else 1.0
    if layer == "rgb" and kind.startswith("style"):
        factor *= shape[0] ** -0.5
    if layer == "skip":
        factor = (2 * shape[1]) ** -0.5
    return f"{block}.{KINDS.get(kind, kind)}", factor


def theirs_shape(name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that a weight of ours has with them."""
    if name == "synthesis.constant":
        return shape[1:]
    return (*shape, 1, 1) if name.endswith(".rgb.weight") else shape


def substitute(name: str, shape: tuple[int, ...]) -> Stored:
    """What a file may lack: the mean of w, worked out later, and the maps of its noise, which are then drawn."""
    if name == "mapping.w_avg":
        return Stored(shape, lambda: torch.zeros(shape))
    if not name.endswith(".noise_const"):
        raise WeightsError(f"its generator has no {name}: it is no StyleGAN2 that LACE can draw")
    layer = 2 * shape[0] + ("conv1" in name)
    return Stored(shape, lambda: rng.normal(0, torch.tensor([layer]), shape[0] * shape[1]).reshape(shape))


def mapper(config: Config, state: dict[str, Tensor]) -> StyleGAN2:
    """A generator that can only map; the rest of it takes no room until it is used."""
    generator = StyleGAN2(config)
    names = {name: value for name, value in state.items() if name.startswith("mapping.")}
    generator.load_state_dict(names, strict=False)
    return generator
