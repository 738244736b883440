"""Checkpoints as others write them, made here: random weights under NVIDIA's names, written in every form.

Classes that stand in for NVIDIA's pickle to the same instructions and names; of their programs there is only a line
that must never run.
"""

from __future__ import annotations

import contextlib
import io
import pickle
import sys
import types
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

NOTE = "raise SystemExit('a line of the file was run')"


def weights(
    channels: tuple[int, ...] = (12, 10, 8, 6),
    mapping: tuple[int, ...] = (16, 14, 12),
    classes: int = 0,
    embedding: int = 0,
    architecture: str = "skip",
    taps: tuple[float, ...] = (1, 3, 3, 1),
    kernel: int = 3,
    seed: int = 0,
) -> dict[str, Tensor]:
    """Random weights of a small generator under the names of stylegan2-ada-pytorch."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int, mean: float = 0.0, scale: float = 1.0) -> Tensor:
        return mean + scale * torch.randn(shape, generator=generator)

    line = torch.tensor(taps) / sum(taps)
    w_dim, state = mapping[-1], {"mapping.w_avg": normal(mapping[-1])}
    if classes:
        state |= {"mapping.embed.weight": normal(embedding, classes), "mapping.embed.bias": normal(embedding)}
    inputs = [mapping[0] + embedding, *mapping[1:]]
    for k in range(len(mapping) - 1):
        state[f"mapping.fc{k}.weight"] = normal(inputs[k + 1], inputs[k], scale=100)
        state[f"mapping.fc{k}.bias"] = normal(inputs[k + 1], scale=20)
    state["synthesis.b4.const"] = normal(channels[0], 4, 4)
    for k, width in enumerate(channels):
        size, before = 4 * 2**k, channels[max(k - 1, 0)]
        block = f"synthesis.b{size}"
        state[f"{block}.resample_filter"] = line[:, None] * line
        for layer, wide in (("conv0", before), ("conv1", width))[0 if k else 1 :]:
            state |= {
                f"{block}.{layer}.weight": normal(width, wide, kernel, kernel),
                f"{block}.{layer}.bias": normal(width, scale=0.3),
                f"{block}.{layer}.noise_const": normal(size, size),
                f"{block}.{layer}.noise_strength": normal(scale=0.3),
                f"{block}.{layer}.affine.weight": normal(wide, w_dim),
                f"{block}.{layer}.affine.bias": normal(wide, mean=1.0, scale=0.3),
            }
        if architecture == "resnet" and k:
            state[f"{block}.skip.weight"] = normal(width, before, 1, 1)
        if architecture == "skip" or k == len(channels) - 1:
            state |= {
                f"{block}.torgb.weight": normal(3, width, 1, 1),
                f"{block}.torgb.bias": normal(3, scale=0.3),
                f"{block}.torgb.affine.weight": normal(width, w_dim),
                f"{block}.torgb.affine.bias": normal(width, mean=1.0, scale=0.3),
            }
    return state


def _reconstruct_persistent_obj(meta: Any) -> Any:
    raise AssertionError("this is only a name")


class EasyDict(dict[str, Any]):
    """Stands in for dnnlib's."""


class Network:
    """Stands in for a network of TensorFlow's."""


@contextlib.contextmanager
def others() -> Iterator[None]:
    """Let pickle find the stand-ins where the others' code has them."""
    names = {
        "torch_utils.persistence": [_reconstruct_persistent_obj],
        "dnnlib.util": [EasyDict],
        "dnnlib.tflib.network": [Network],
    }
    kept = dict(sys.modules)
    try:
        for path, things in names.items():
            for part in (path.rsplit(".", k)[0] for k in range(path.count(".") + 1)):
                sys.modules.setdefault(part, types.ModuleType(part))
            for thing in things:
                setattr(sys.modules[path], thing.__name__, thing)
                thing.__module__ = path
        yield
    finally:
        for path in set(sys.modules) - set(kept):
            if path.split(".")[0] in ("torch_utils", "dnnlib"):
                del sys.modules[path]


class Persistent(nn.Module):
    """A module that pickles as NVIDIA's persistent classes do."""

    def __reduce__(self) -> Any:
        meta = {"type": "class", "version": 6, "module_src": NOTE, "class_name": self.kind, "state": self.__dict__}
        return _reconstruct_persistent_obj, (meta,), None

    kind = "Module"


def module(state: dict[str, Tensor], settings: dict[str, Any]) -> Persistent:
    """A tree of modules that holds a state, buffers and parameters as NVIDIA has them."""
    root = Persistent()
    for name, value in state.items():
        *path, leaf = name.split(".")
        place: nn.Module = root
        for part in path:
            if part not in place._modules:
                place.add_module(part, Persistent())
            place = place._modules[part]  # type: ignore[assignment]
            for prefix, attributes in settings.items():
                if part.startswith(prefix):
                    place.__dict__.update(attributes)
        if leaf in ("w_avg", "noise_const", "resample_filter"):
            place.register_buffer(leaf, value)
        else:
            place.register_parameter(leaf, nn.Parameter(value, requires_grad=False))
    return root


def nvidia(
    path: Path,
    state: dict[str, Tensor],
    protocol: int = 4,
    rate: float | None = 0.01,
    clamp: float | None = None,
    half: tuple[int, ...] = (),
) -> Path:
    """NVIDIA's PyTorch pickle."""
    gain = np.float64(0.1)
    settings = {
        "fc": {"activation": "lrelu", "bias_gain": rate, "weight_gain": gain},
        "conv": {"activation": "lrelu", "conv_clamp": clamp, "act_gain": gain},
        "torgb": {"conv_clamp": clamp},
        **{f"b{size}": {"use_fp16": True} for size in half},
    }
    generator = module(state, settings)
    with others():
        training = EasyDict(class_name="training.dataset.ImageFolderDataset", path="/data/cats.zip", resolution=32)
        whole = {"G": None, "D": None, "G_ema": generator, "augment_pipe": None, "training_set_kwargs": training}
        path.write_bytes(pickle.dumps(whole, protocol=protocol))
    return path


def rosinality_state(state: dict[str, Tensor]) -> OrderedDict[str, Tensor]:
    """The state dict that rosinality's generator has for the same weights."""
    theirs: OrderedDict[str, Tensor] = OrderedDict()
    for name, value in state.items():
        part, *rest = name.split(".")[1:]
        if part.startswith("fc"):
            theirs[f"style.{int(part[2:]) + 1}.{rest[0]}"] = value
        elif name.endswith(".const"):
            theirs["input.input"] = value[None]
        elif part.startswith("b") and len(rest) > 1:
            theirs |= _rosinality_layer(int(part[1:]).bit_length() - 3, rest[0], ".".join(rest[1:]), value)
    return theirs


def _rosinality_layer(k: int, layer: str, kind: str, value: Tensor) -> dict[str, Tensor]:
    if layer == "torgb":
        place = f"to_rgbs.{k - 1}" if k else "to_rgb1"
    else:
        place = f"convs.{2 * k - (2 if layer == 'conv0' else 1)}" if k else "conv1"
    if kind == "noise_const":
        return {f"noises.noise_{max(2 * k - (layer == 'conv0'), 0)}": value[None, None]}
    if layer == "torgb" and kind == "bias":
        return {f"{place}.bias": value[None, :, None, None]}
    named = {
        "weight": "conv.weight",
        "affine.weight": "conv.modulation.weight",
        "affine.bias": "conv.modulation.bias",
        "noise_strength": "noise.weight",
        "bias": "activate.bias",
    }
    return {f"{place}.{named[kind]}": value[None] if kind in ("weight", "noise_strength") else value}


def rosinality(path: Path, state: dict[str, Tensor], legacy: bool = False) -> Path:
    """rosinality's checkpoint, with the optimizer and arguments that training leaves in it."""
    import argparse

    with torch.inference_mode(False):
        net = nn.Linear(2, 2)
        optimiser = torch.optim.Adam(net.parameters())
        net(torch.ones(1, 2)).sum().backward()
        optimiser.step()
    whole = {
        "g_ema": rosinality_state(state),
        "latent_avg": state["mapping.w_avg"],
        "g_optim": optimiser.state_dict(),
        "args": argparse.Namespace(size=32, path="lmdb"),
        "ada_aug_p": 0.1,
    }
    torch.save(whole, path, _use_new_zipfile_serialization=not legacy)
    return path


def tensorflow(path: Path, state: dict[str, Tensor], protocol: int = 4, **settings: Any) -> Path:
    """NVIDIA's TensorFlow pickle: three networks of named arrays."""
    arrays: dict[str, list[tuple[str, Any]]] = {"": [("lod", np.float32(0))], "mapping": [], "synthesis": []}
    for name, tensor in state.items():
        value = tensor.numpy()
        area, *rest = name.split(".")
        if name == "mapping.w_avg":
            arrays[""].append(("dlatent_avg", value))
        elif area == "mapping":
            layer = "LabelEmbed" if rest[0] == "embed" else f"Dense{rest[0][2:]}"
            arrays["mapping"].append((f"{layer}/{rest[1]}", value.T if rest[1] == "weight" else value))
        elif rest[-1] != "resample_filter":
            arrays["synthesis"].append(_tensorflow_array(int(rest[0][1:]), rest[1:], value))
    with others():
        nets = {name: network(rows) for name, rows in arrays.items()}
        nets[""].__dict__ |= {"components": EasyDict({k: nets[k] for k in ("mapping", "synthesis")})}
        nets[""].__dict__ |= {"static_kwargs": EasyDict(resolution=32, fmap_base=64, truncation_psi=0.5, **settings)}
        path.write_bytes(pickle.dumps((nets[""],) * 3, protocol=protocol))
    return path


def network(rows: list[tuple[str, Any]]) -> Network:
    net = Network()
    net.__dict__ |= {"version": 4, "name": "G", "static_kwargs": EasyDict(), "components": EasyDict()}
    net.__dict__ |= {"build_module_src": NOTE, "build_func_name": "G_main", "variables": rows}
    return net


def _tensorflow_array(size: int, rest: list[str], value: Any) -> tuple[str, Any]:
    layer, kind = rest[0], ".".join(rest[1:])
    if layer == "const":
        return "4x4/Const/const", value[None]
    if kind == "noise_const":
        return f"noise{max(2 * size.bit_length() - 6 - (layer == 'conv0'), 0)}", value[None, None]
    up = layer in ("conv0", "skip")
    place = {"conv0": "Conv0_up", "conv1": "Conv1" if size > 4 else "Conv", "torgb": "ToRGB", "skip": "Skip"}[layer]
    if kind == "weight":
        turned = value.transpose(2, 3, 1, 0)
        return f"{size}x{size}/{place}/weight", np.ascontiguousarray(turned[::-1, ::-1] if up else turned)
    if kind.startswith("affine"):
        return f"{size}x{size}/{place}/mod_{kind[7:]}", value.T if kind.endswith("weight") else value - 1
    return f"{size}x{size}/{place}/{kind}", value


def saved(value: Any, legacy: bool = False) -> bytes:
    """The bytes that torch.save writes."""
    out = io.BytesIO()
    torch.save(value, out, _use_new_zipfile_serialization=not legacy)
    return out.getvalue()
