"""The models that LACE knows by name: those that it ships, and those that were imported; listing loads no tensors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .attributes.card import read_card
from .attributes.schema import nearest
from .errors import UnknownNameError, WeightsError
from .weights import imported

if TYPE_CHECKING:
    from .generators.base import Generator

__all__ = ["CATALOG", "FFHQ_HEADS", "FFHQ_LIKENESS", "SHIPPED", "Entry", "entries", "find", "import_model", "shipped"]

FFHQ_HEADS = Path(__file__).parent / "attributes" / "ffhq" / "heads.safetensors"
FFHQ_LIKENESS = FFHQ_HEADS.with_name("likeness.safetensors")
# Models of our own training: a folder each, with a generator in the safe form and its heads, whose name is the model's.
SHIPPED = Path(__file__).parent / "shipped"
# What makes those of them that may not be there.
RECIPES = {"cifar10": "recipes/cifar10/all.sh"}


@dataclass(frozen=True)
class Entry:
    """A named model: a generator that can be made from psi (and a class, where it has ``classes``), and its heads.

    A model without heads has no words of its own yet. ``likeness`` tells whom its pictures show.
    """

    name: str
    about: str
    resolution: int
    psi: float
    heads: Path | None
    licence: str
    load_generator: Callable[..., Generator]
    classes: int = 0
    likeness: Path | None = None


def _mobilestylegan(psi: float) -> Generator:
    from .weights.mobilestylegan import load

    return load(psi)


def _dcgan(psi: float) -> Generator:
    from .weights.dcgan import load

    return load(psi)


def shipped(folder: Path) -> list[Entry]:
    """The models that lie in a folder, whole, as their cards describe them."""
    places = (path.parent for path in sorted(folder.glob("*/generator.safetensors")))
    return [_shipped(place) for place in places if (place / "heads.safetensors").exists()]


def _shipped(place: Path) -> Entry:
    card = read_card(place / "generator.safetensors")
    return Entry(
        name=place.name,
        about=card["about"],
        resolution=2 ** (len(card["config"]["channels"]) + 1),
        psi=1.0,
        heads=place / "heads.safetensors",
        licence=card["licence"],
        load_generator=partial(_own, place / "generator.safetensors"),
    )


def _own(place: Path, psi: float) -> Generator:
    return imported.load_file_of(place, psi, None, "install LACE again")


CATALOG = {
    entry.name: entry
    for entry in (
        Entry(
            name="ffhq",
            about="photorealistic faces (MobileStyleGAN, trained on FFHQ)",
            resolution=1024,
            psi=0.7,
            heads=FFHQ_HEADS,
            licence="weights Apache-2.0 as packaged; the FFHQ pictures behind them are for non-commercial use",
            load_generator=_mobilestylegan,
            likeness=FFHQ_LIKENESS,
        ),
        Entry(
            name="dcgan",
            about="rough small faces (DCGAN, trained on DigiFace-1M)",
            resolution=64,
            psi=1.0,
            heads=None,
            licence="weights MIT as packaged; the DigiFace-1M pictures behind them are for non-commercial research",
            load_generator=_dcgan,
        ),
        *shipped(SHIPPED),
    )
}


def entries() -> dict[str, Entry]:
    """All models by their names."""
    return CATALOG | {name: _imported(name, card) for name, card in imported.cards().items() if name not in CATALOG}


def find(name: str | Path) -> Entry:
    """The model of that name; a path to a checkpoint is imported under the file's name, if it was not before."""
    known = entries()
    if isinstance(name, str) and name in known:
        return known[name]
    if name in RECIPES:
        raise UnknownNameError(
            f"There is no model '{name}' yet; in a checkout, {RECIPES[str(name)]} trains it on a GPU."
        )
    path = Path(name)
    if path.is_file():
        model = default_name(path)
        imported.bring(path, model)
        return entries()[model]
    if isinstance(name, Path) or len(path.parts) > 1:
        raise WeightsError(f"There is no checkpoint {path}.")
    raise UnknownNameError(f"No model is called '{name}'{nearest(name, known)}")


def import_model(path: Path, name: str | None) -> Entry:
    """Make a checkpoint the model of a name, by default of its file's."""
    model = default_name(path) if name is None else name
    if model in CATALOG:
        raise WeightsError(f"'{model}' is a model of LACE's own; give yours another name.")
    imported.import_checkpoint(path, model)
    return entries()[model]


def default_name(path: Path) -> str:
    """A model's name from its file's; the names of shipped models are theirs."""
    name = imported.default_name(path)
    return f"{name}-imported" if name in CATALOG else name


def _imported(name: str, card: dict[str, Any]) -> Entry:
    config = card["config"]
    return Entry(
        name=name,
        about=f"{card['kind']}, from {card['source']}",
        resolution=2 ** (len(config["channels"]) + 1),
        psi=1.0,
        heads=None,
        licence="whatever its makers and its training pictures ask for",
        load_generator=partial(_stylegan2, name),
        classes=config["classes"],
    )


def _stylegan2(name: str, psi: float, label: int | None = None) -> Generator:
    return imported.load(name, psi, label)
