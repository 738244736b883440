"""LACE: words for a frozen image generator.

import lace
model = lace.load("ffhq")
out = model.sample("glasses & smile & age in 50..60", n=16, seed=0)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .errors import (
    AddressError,
    ConditionError,
    DataError,
    LaceError,
    MissingExtraError,
    OutputError,
    SentenceError,
    UnknownNameError,
    UnreadableWord,
    UnsatisfiableCondition,
    ValueRangeError,
    WeightsError,
)

if TYPE_CHECKING:
    from .attributes.heads import Heads as Heads
    from .attributes.heads import MlpHeads as MlpHeads
    from .attributes.schema import Continuous as Continuous
    from .attributes.schema import Discrete as Discrete
    from .conditions.formula import Formula as Formula
    from .drawing import Drawing as Drawing
    from .editing.album import Album as Album
    from .editing.neighbourhood import Neighbourhood as Neighbourhood
    from .generators.base import Generator as Generator
    from .generators.function import FunctionGenerator as FunctionGenerator
    from .model import Model as Model
    from .model import load as load
    from .rng import Address as Address
    from .samplers.base import Filter as Filter
    from .samplers.base import Info as Info
    from .samplers.base import Sampler as Sampler
    from .samplers.base import Samples as Samples
    from .samplers.base import Target as Target
    from .samplers.base import Walk as Walk
    from .samplers.elliptical import Elliptical as Elliptical
    from .samplers.euler import Euler as Euler
    from .samplers.langevin import Langevin as Langevin
    from .samplers.level_set import LevelSet as LevelSet
    from .samplers.ode import Ode as Ode
    from .samplers.pc import PredictorCorrector as PredictorCorrector
    from .samplers.pcnl import Pcnl as Pcnl
    from .samplers.rejection import Rejection as Rejection
    from .samplers.schedule import Schedule as Schedule
    from .samplers.smc import Smc as Smc

__version__ = "0.1.0"

# Loaded when first used: they import torch, which takes a second that `lace --help` does not have.
_LAZY = {
    "Address": "rng",
    "Album": "editing.album",
    "Continuous": "attributes.schema",
    "Discrete": "attributes.schema",
    "Drawing": "drawing",
    "Elliptical": "samplers.elliptical",
    "Euler": "samplers.euler",
    "Filter": "samplers.base",
    "Formula": "conditions.formula",
    "FunctionGenerator": "generators.function",
    "Generator": "generators.base",
    "Heads": "attributes.heads",
    "Info": "samplers.base",
    "Langevin": "samplers.langevin",
    "LevelSet": "samplers.level_set",
    "MlpHeads": "attributes.heads",
    "Model": "model",
    "Neighbourhood": "editing.neighbourhood",
    "Ode": "samplers.ode",
    "Pcnl": "samplers.pcnl",
    "PredictorCorrector": "samplers.pc",
    "Rejection": "samplers.rejection",
    "Sampler": "samplers.base",
    "Samples": "samplers.base",
    "Schedule": "samplers.schedule",
    "Smc": "samplers.smc",
    "Target": "samplers.base",
    "Walk": "samplers.base",
    "load": "model",
}

__all__ = [
    "Address",
    "AddressError",
    "Album",
    "ConditionError",
    "Continuous",
    "DataError",
    "Discrete",
    "Drawing",
    "Elliptical",
    "Euler",
    "Filter",
    "Formula",
    "FunctionGenerator",
    "Generator",
    "Heads",
    "Info",
    "LaceError",
    "Langevin",
    "LevelSet",
    "MissingExtraError",
    "MlpHeads",
    "Model",
    "Neighbourhood",
    "Ode",
    "OutputError",
    "Pcnl",
    "PredictorCorrector",
    "Rejection",
    "Sampler",
    "Samples",
    "Schedule",
    "SentenceError",
    "Smc",
    "Target",
    "UnknownNameError",
    "UnreadableWord",
    "UnsatisfiableCondition",
    "ValueRangeError",
    "Walk",
    "WeightsError",
    "__version__",
    "load",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'lace' has no attribute '{name}'")
    return getattr(import_module(f".{_LAZY[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
