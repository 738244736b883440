"""NVIDIA's checkpoints of StyleGAN2-ADA for PyTorch: pickles that carry the program that made them.

A module in such a pickle is a call of ``_reconstruct_persistent_obj`` with the module's source text and its state.
NVIDIA's loader runs that text; here it is passed over, and the weights and settings are taken from the state.
"""

from __future__ import annotations

from typing import Any

from ..errors import WeightsError
from .pickles import Made
from .stylegan2 import Found
from .tensors import Hoard, Stored, number

__all__ = ["read"]

# A generator of 1024 pixels has about a hundred modules, three deep.
MODULES, DEPTH = 2000, 8


def read(root: dict[str, Any], hoard: Hoard) -> Found:
    """The averaged generator of a checkpoint."""
    modules = modules_of(root["G_ema"])
    state = {
        f"{path}.{name}".lstrip("."): hoard.stored(value)
        for path, module in modules.items()
        for kind in ("_parameters", "_buffers")
        for name, value in table(module, kind).items()
        if value is not None
    }
    training = root.get("training_set_kwargs")
    where = training.get("path") if isinstance(training, dict) else None
    return Found(
        kind="StyleGAN2-ADA, NVIDIA's PyTorch pickle",
        state=state,
        training_set=where if isinstance(where, str) else "",
        **settings(modules, state),
    )


def modules_of(net: Any) -> dict[str, dict[str, Any]]:
    """The attributes of every module by its path; "" is the whole."""
    found: dict[str, dict[str, Any]] = {}
    waiting = [("", net)]
    while waiting:
        path, module = waiting.pop()
        if len(found) >= MODULES or path.count(".") >= DEPTH or path in found:
            raise WeightsError("its modules are nested without end")
        found[path] = attributes_of(module)
        children = table(found[path], "_modules").items()
        if len(children) > MODULES or any(len(name) > 80 or "." in name for name, _ in children):
            raise WeightsError("its modules have impossible names")
        waiting += [(f"{path}.{name}".lstrip("."), child) for name, child in children if child is not None]
    return found


def attributes_of(module: Any) -> dict[str, Any]:
    """What a module's ``__dict__`` was."""
    if isinstance(module, Made) and module.maker == "torch_utils.persistence._reconstruct_persistent_obj":
        meta = module.arguments[0] if module.arguments else None
        state = meta.get("state") if isinstance(meta, dict) else None
        if isinstance(state, dict):
            return state
    raise WeightsError("it has something else where a module of NVIDIA's belongs")


def table(module: dict[str, Any], kind: str) -> dict[str, Any]:
    """A module's parameters, buffers or children."""
    named = module.get(kind, {})
    if not isinstance(named, dict):
        raise WeightsError(f"it has a module whose {kind} are no table")
    return named


def settings(modules: dict[str, dict[str, Any]], state: dict[str, Stored]) -> dict[str, Any]:
    """What weights do not show. Modules keep it as attributes, which are what NVIDIA's code computes with."""
    layers = {
        path: module for path, module in modules.items() if path.rpartition(".")[2] in ("conv0", "conv1", "torgb")
    }
    dense = [module for path, module in modules.items() if path.startswith("mapping.fc")]
    blocks = [path for path in modules if path.startswith("synthesis.b") and path.count(".") == 1]
    halves = [bool(modules[path].get("use_fp16")) for path in sorted(blocks, key=lambda path: (len(path), path))]
    if halves != sorted(halves):
        raise WeightsError("it runs small blocks in half precision and larger ones not, which LACE does not draw")
    return {
        "lr_multiplier": number(same("bias_gain", dense)),
        "mapping_activation": same("activation", dense),
        "activation": same("activation", [module for path, module in layers.items() if "conv" in path]),
        "clamp": number(same("conv_clamp", list(layers.values()))),
        "half": sum(halves),
    }


def same(name: str, modules: list[dict[str, Any]]) -> Any:
    """An attribute that all of some modules share."""
    values = [module.get(name) for module in modules]
    plain = [value if isinstance(value, str | None) else number(value) for value in values]
    if not plain or any(value != plain[0] for value in plain):
        raise WeightsError(f"its layers differ in {name}, which LACE does not draw")
    return plain[0]
