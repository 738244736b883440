"""The TensorFlow checkpoints of StyleGAN2 and StyleGAN2-ADA: three networks as lists of named arrays.

TensorFlow                        here (the names of stylegan2-ada-pytorch)
mapping/Dense{i}/weight           mapping.fc{i}.weight, transposed
synthesis/{r}x{r}/Conv0_up/weight synthesis.b{r}.conv0.weight, both sides turned round, then [out, in, k, k]
synthesis/{r}x{r}/Conv1/weight    synthesis.b{r}.conv1.weight, [out, in, k, k]
.../mod_weight, .../mod_bias      ....affine.weight, transposed; ....affine.bias, plus 1
synthesis/noise{n}                the noise of the n-th layer
"""

from __future__ import annotations

import re
from typing import Any

from torch import Tensor

from ..errors import WeightsError
from .pickles import Made
from .stylegan2 import Found, noise_name
from .tensors import Hoard, Stored, number

__all__ = ["is_network", "read"]

# Settings that change nothing when pictures are drawn, and those that are read off the weights' shapes.
IDLE = {"truncation_psi", "truncation_cutoff", "style_mixing_prob", "structure", "w_avg_beta", "dlatent_avg_beta"}
SHAPES = {"latent_size", "label_size", "dlatent_size", "resolution", "num_channels", "mapping_layers", "mapping_fmaps"}
SHAPES |= {"fmap_base", "fmap_max", "label_fmaps", "architecture", "use_noise"}
READ = {"mapping_lrmul", "mapping_nonlinearity", "nonlinearity", "conv_clamp", "num_fp16_res", "resample_kernel"}


def is_network(value: Any) -> bool:
    return isinstance(value, Made) and value.maker == "dnnlib.tflib.network.Network"


def read(networks: tuple[Any, ...], hoard: Hoard) -> Found:
    """The averaged generator: the last of the three."""
    state = state_of(networks[-1])
    kwargs = state.get("static_kwargs")
    version = number(state.get("version"))
    if not isinstance(kwargs, dict) or version is None or version < 4:
        raise WeightsError("it is an older TensorFlow checkpoint than StyleGAN2's")
    unknown = sorted(set(kwargs) - IDLE - SHAPES - READ)
    if unknown:
        raise WeightsError(f"its TensorFlow network has the setting {unknown[0][:80]}, which LACE does not know")
    taps = kwargs.get("resample_kernel")
    return Found(
        kind="StyleGAN2, NVIDIA's TensorFlow pickle",
        state=renamed({name: hoard.stored(value) for name, value in variables(state)}),
        lr_multiplier=number(kwargs.get("mapping_lrmul", 0.01)),
        activation=kwargs.get("nonlinearity", "lrelu"),
        mapping_activation=kwargs.get("mapping_nonlinearity", "lrelu"),
        clamp=number(kwargs.get("conv_clamp")),
        half=int(number(kwargs.get("num_fp16_res")) or 0),
        taps=None if taps is None else [number(tap) for tap in taps if isinstance(taps, list)],
    )


def state_of(network: Any) -> dict[str, Any]:
    if not is_network(network) or not isinstance(network.state, dict):
        raise WeightsError("it has something else where a TensorFlow network belongs")
    return network.state


def variables(state: dict[str, Any]) -> list[tuple[str, Any]]:
    """The arrays of a network and of its components, mapping and synthesis."""
    found = []
    components = state.get("components")
    nets = {"": state} | {
        f"{name}/": state_of(net) for name, net in (components if isinstance(components, dict) else {}).items()
    }
    for prefix, net in nets.items():
        rows = net.get("variables")
        for row in rows if isinstance(rows, list) else []:
            if not isinstance(row, tuple | list) or len(row) != 2 or not isinstance(row[0], str):
                raise WeightsError("its variables are no list of names and arrays")
            found.append((prefix + row[0], row[1]))
    return found


def renamed(theirs: dict[str, Stored]) -> dict[str, Stored]:
    """The arrays under the names, and in the layout, of stylegan2-ada-pytorch."""
    state = {}
    for name, value in theirs.items():
        area, _, rest = name.partition("/")
        if name == "dlatent_avg":
            state["mapping.w_avg"] = value
        elif area == "mapping":
            state |= dense(rest, value)
        elif area == "synthesis":
            state |= layer(rest, value)
    return state


def dense(name: str, value: Stored) -> dict[str, Stored]:
    layer, _, kind = name.partition("/")
    if layer == "LabelEmbed":
        target = "mapping.embed"
    elif layer.startswith("Dense"):
        target = f"mapping.fc{layer.removeprefix('Dense')}"
    else:
        raise WeightsError(f"its mapping has {layer[:80]}, which LACE does not know")
    return {f"{target}.{kind}": transposed(value) if kind == "weight" else value}


def layer(name: str, value: Stored) -> dict[str, Stored]:
    """An array of the synthesis."""
    place, _, rest = name.partition("/")
    part, _, kind = rest.partition("/")
    if not rest and re.fullmatch(r"noise\d{1,2}", place):
        return {noise_name(int(place[5:])): corner(value)}
    block = f"synthesis.b{place.partition('x')[0]}"
    if part == "Const":
        return {f"{block}.const": value.changed(value.shape[1:], lambda x: x[0])}
    targets = {"Conv": "conv1", "Conv0_up": "conv0", "Conv1": "conv1", "ToRGB": "torgb", "Skip": "skip"}
    if part not in targets:
        return {}
    target = f"{block}.{targets[part]}"
    if kind == "weight":
        return {f"{target}.weight": kernel(value, turned=part in ("Conv0_up", "Skip"))}
    if kind == "mod_weight":
        return {f"{target}.affine.weight": transposed(value)}
    if kind == "mod_bias":
        return {f"{target}.affine.bias": value.changed(value.shape, lambda x: x + 1)}
    return {f"{target}.{kind}": value}


def transposed(value: Stored) -> Stored:
    return value.changed(value.shape[::-1], lambda x: x.T)


def corner(value: Stored) -> Stored:
    """[1, 1, r, r] -> [r, r]."""
    return value.changed(value.shape[2:], lambda x: x[0, 0])


def kernel(value: Stored, turned: bool) -> Stored:
    """[k, k, in, out] -> [out, in, k, k]."""

    def change(x: Tensor) -> Tensor:
        return (x.flip(0, 1) if turned else x).permute(3, 2, 0, 1)

    return value.changed(tuple(value.shape[k] for k in (3, 2, 0, 1)) if len(value.shape) == 4 else (), change)
