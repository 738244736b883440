"""The models that LACE knows by name; listing them loads no tensor library."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .attributes.schema import nearest
from .errors import UnknownNameError

if TYPE_CHECKING:
    from .generators.base import Generator

__all__ = ["CATALOG", "Entry", "find"]


@dataclass(frozen=True)
class Entry:
    """A named model: a generator that can be made, and the heads that came with it, if any did."""

    name: str
    about: str
    resolution: int
    psi: float
    heads: Path | None
    licence: str
    load_generator: Callable[[float], Generator]


def _mobilestylegan(psi: float) -> Generator:
    from .weights.mobilestylegan import load

    return load(psi)


CATALOG = {
    entry.name: entry
    for entry in (
        Entry(
            name="ffhq",
            about="photorealistic faces (MobileStyleGAN, trained on FFHQ)",
            resolution=1024,
            psi=0.7,
            heads=Path(__file__).parent / "attributes" / "ffhq" / "heads.safetensors",
            licence="weights Apache-2.0 as packaged; the FFHQ pictures behind them are for non-commercial use",
            load_generator=_mobilestylegan,
        ),
    )
}


def find(name: str) -> Entry:
    """The model of that name."""
    if name not in CATALOG:
        raise UnknownNameError(f"No model is called '{name}'{nearest(name, CATALOG)}")
    return CATALOG[name]
