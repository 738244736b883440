"""The words that a model was taught: one file each, in a folder of the cache under the model's name.

A file holds heads of one word and a card (what labelled it, how many, how well it is read); it may be given away, and
is taken in again where it fits the model and shadows no word that is there. No tensor library is loaded for this.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..errors import ConditionError, DataError, OutputError, UnknownNameError
from ..files import disk_sentence, written_whole
from ..weights.store import home
from .card import read_card
from .schema import Attribute, Discrete, Schema, nearest

__all__ = ["add", "attribute_of", "check_new", "files_of", "remove", "shelf_of", "taught"]


def shelf_of(model: str) -> Path:
    """The folder of a model's taught words."""
    return home() / "words" / model


def taught(model: str) -> list[Path]:
    """The files of a model's taught words, in the order of their names."""
    return sorted(shelf_of(model).glob("*.safetensors"))


def files_of(heads: Path | None, model: str) -> list[Path]:
    """Every file of a model's heads: what ships with it first, then what it was taught."""
    return [*([heads] if heads else []), *taught(model)]


def attribute_of(card: dict[str, Any], path: Path) -> Attribute:
    """The one word of a file."""
    rows = card.get("schema")
    schema = Schema.from_json(rows) if isinstance(rows, list) else Schema([])
    if len(schema) != 1:
        raise DataError(f"{path} holds {len(schema)} words; a taught word is a file of one.")
    return schema.attributes[0]


def check_new(attribute: Attribute, known: Iterable[Attribute]) -> None:
    """Refuse a word, or a class, that would change what sentences mean today."""
    # Its own spelling, and that of its classes, is checked by being made part of a schema.
    Schema([attribute])
    known = Schema(known)
    own = attribute.classes if isinstance(attribute, Discrete) and not attribute.is_yes_no else ()
    if attribute.name in own:
        raise DataError(f"'{attribute.name}' cannot also be the name of one of its classes.")
    for name in (attribute.name, *own):
        if name in known:
            raise DataError(
                f"'{name}' is a word of this model already; choose another name. (lace attributes --remove {name} "
                "forgets it, if it was taught.)"
            )
        if owners := known.owners(name):
            raise DataError(f"'{name}' is a class of '{owners[0].name}' already; choose another name for it.")


def add(path: Path, model: str, weights: str, known: Iterable[Attribute]) -> Attribute:
    """Take in a file that somebody gave; it must have been made for the same generator."""
    card = read_card(path)
    attribute = attribute_of(card, path)
    if card.get("model") != weights:
        raise DataError(f"{path} was made for '{card.get('model')}'; the model '{model}' is '{weights}'.")
    check_new(attribute, known)
    shelf = shelf_of(model)
    with written_whole(shelf / f"{attribute.name}.safetensors") as beside:
        shutil.copyfile(path, beside)
    return attribute


def remove(name: str, model: str, known: Iterable[str]) -> None:
    """Forget a taught word; its labels stay, so that it can be learned again."""
    path = shelf_of(model) / f"{name}.safetensors"
    if path not in taught(model):
        if name in known:
            raise ConditionError(f"'{name}' came with the model and cannot be removed; taught words can.")
        raise UnknownNameError(
            f"'{name}' was never taught to '{model}'"
            f"{nearest(name, [one.stem for one in taught(model)]) if taught(model) else '; nothing was.'}"
        )
    try:
        path.unlink()
    except OSError as error:
        raise OutputError(disk_sentence(error, path)) from error
