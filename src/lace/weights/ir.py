"""MobileStyleGAN's weights, read out of OpenVINO IR files.

An IR is an XML graph whose constants lie in a .bin file at byte offsets. Nothing of it is executed: the constants are
taken as arrays, named by the layers that use them, and handed to a module of ours.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ..errors import WeightsError

__all__ = ["IR", "mapping_state", "synthesis_state"]

DTYPES = {"f32": np.float32, "i64": np.int64, "i32": np.int32}


@dataclass(frozen=True)
class IR:
    """The constants of a graph by name, and those that feed each kind of operation, in graph order."""

    named: dict[str, Tensor]
    inputs: dict[str, list[Tensor]]

    @classmethod
    def read(cls, xml: Path) -> IR:
        """Read ``xml`` and the .bin beside it."""
        try:
            # The file comes from an archive whose hash was checked.
            return cls._of(ET.parse(xml).getroot(), xml.with_suffix(".bin").read_bytes())  # noqa: S314
        except (OSError, ET.ParseError, AttributeError, KeyError, ValueError) as error:
            raise WeightsError(f"{xml.name} is not a readable OpenVINO IR ({error}).") from error

    @classmethod
    def _of(cls, net: ET.Element, data: bytes) -> IR:
        layers = {layer.attrib["id"]: layer for layer in net.iterfind("layers/layer")}
        edges = [(edge.attrib["from-layer"], edge.attrib["to-layer"]) for edge in net.iterfind("edges/edge")]
        constants = {key: _constant(layer, data) for key, layer in layers.items() if layer.get("type") == "Const"}
        inputs: dict[str, list[Tensor]] = {}
        for source, target in sorted(edges, key=lambda edge: int(edge[1])):
            if source in constants:
                inputs.setdefault(layers[target].attrib["type"], []).append(constants[source])
        return cls({layers[key].attrib["name"]: value for key, value in constants.items()}, inputs)


def _constant(layer: ET.Element, data: bytes) -> Tensor:
    """One constant, checked to lie inside the file."""
    attributes = layer.find("data").attrib  # type: ignore[union-attr]
    shape = [int(size) for size in attributes["shape"].split(",") if size.strip()]
    dtype = np.dtype(DTYPES[attributes["element_type"]])
    array = np.frombuffer(data, dtype, math.prod(shape), int(attributes["offset"]))
    return torch.from_numpy(array.reshape(shape).copy())


def mapping_state(ir: IR) -> dict[str, Tensor]:
    """The state dict of :class:`lace.generators.mobilestylegan.Mapping`."""
    weights = [weight for weight in ir.inputs["MatMul"] if weight.dim() == 2]
    biases = [bias for bias in ir.inputs["Reshape"] if bias.is_floating_point()]
    layers = enumerate(zip(weights, biases, strict=True))
    return {
        f"layers.{k}.{name}": value for k, pair in layers for name, value in zip(("weight", "bias"), pair, strict=True)
    }


def synthesis_state(ir: IR) -> dict[str, Tensor]:
    """The state dict of :class:`lace.generators.mobilestylegan.Synthesis`."""
    noises = iter([value for value in ir.inputs["Add"] if value.shape[:2] == (1, 1) and value.dim() == 4])
    dense, *kernels = ir.inputs["Convolution"]
    pointwise = iter(kernels)
    state = {"constant": ir.named["m.input.input"], "first.weight": dense}
    state |= _styled("first", "m.conv1", ir, next(noises))
    for k in range(7):
        state |= _style(f"blocks.{k}.rise", f"m.layers.{k}.up", ir)
        for ours, theirs in (("first", "conv1"), ("second", "conv2")):
            name, source = f"blocks.{k}.{ours}", f"m.layers.{k}.{theirs}"
            state |= _styled(name, source, ir, next(noises))
            state[f"{name}.depthwise"] = ir.named[f"{source}.conv.weight_dw"].squeeze(1)
            state[f"{name}.pointwise"] = next(pointwise)
    state |= _style("last_style", "m.layers.6.to_img.conv", ir, gain=64**-0.5)
    state["last.weight"] = ir.named["m.layers.6.to_img.conv.weight"]
    state["last.bias"] = ir.named["m.layers.6.to_img.bias"].flatten()
    return state


def _style(name: str, source: str, ir: IR, gain: float = 1.0) -> dict[str, Tensor]:
    weight, bias = ir.named[f"{source}.modulation.weight"], ir.named[f"{source}.modulation.bias"]
    return {f"{name}.weight": gain * weight, f"{name}.bias": gain * bias.flatten()}


def _styled(name: str, source: str, ir: IR, noise: Tensor) -> dict[str, Tensor]:
    """A styled convolution's style, noise and bias; its kernel's equalised gain 1/sqrt(9 C) goes into the style."""
    fan_in = 9 * len(ir.named[f"{source}.conv.modulation.weight"])
    state = _style(f"{name}.style", f"{source}.conv", ir, gain=fan_in**-0.5)
    return state | {f"{name}.noise": noise[0, 0], f"{name}.bias": ir.named[f"{source}.bias"].flatten()}
