"""Models of one's own: a checkpoint is imported once, into the safe form, and is from then on a model by its name.

The safe form is one safetensors file, ``models/NAME/generator.safetensors`` in the cache folder, whose card says what
the generator is made of and where it came from. It can be imported itself, on another machine.
"""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..attributes.card import read_card
from ..errors import DataError, ValueRangeError, WeightsError
from ..files import sha256
from .store import cached, home

if TYPE_CHECKING:
    from ..generators.stylegan2 import StyleGAN2

__all__ = ["bring", "cards", "default_name", "import_checkpoint", "load", "load_file_of", "place_of"]

FILE = "generator.safetensors"
NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")


def place_of(name: str) -> Path:
    return home() / "models" / name / FILE


def default_name(path: Path) -> str:
    """A model's name from its file's."""
    return re.sub(r"[^a-z0-9_.-]+", "-", path.stem.lower()).strip("-_.")[:64] or "model"


def cards() -> dict[str, dict[str, Any]]:
    """The cards of all imported models by their names; what is no model is passed over."""
    found = {}
    for path in sorted((home() / "models").glob(f"*/{FILE}")):
        with contextlib.suppress(DataError):
            card = read_card(path)
            if card.get("generator") == "stylegan2" and NAME.fullmatch(path.parent.name):
                found[path.parent.name] = card
    return found


def import_checkpoint(path: Path, name: str) -> dict[str, Any]:
    """Write a checkpoint's generator as the model ``name``, whole or not at all; returns its card."""
    if not NAME.fullmatch(name):
        raise ValueRangeError(f"'{name}' cannot be a model's name; use small letters, digits, - _ and ., up to 64.")
    place, made = place_of(name), list[Path]()
    if place.exists():
        raise WeightsError(taken(name))

    def make(target: Path) -> None:
        write(path, target)
        made.append(target)

    cached(str(place.relative_to(home())), make)
    if not made:
        raise WeightsError(taken(name))
    return read_card(place)


def taken(name: str) -> str:
    return (
        f"A model is called '{name}' already; give another name with --name, or delete {place_of(name).parent} first."
    )


def bring(path: Path, name: str) -> None:
    """Import a checkpoint unless this very file already is the model of that name."""
    place = place_of(name)
    if not place.exists():
        import_checkpoint(path, name)
    elif read_card(place).get("source_sha256") != sha256(path):
        raise WeightsError(taken(name))


def write(path: Path, target: Path) -> None:
    """A checkpoint in the safe form, with a card of what it is."""
    from safetensors.torch import save_file

    from .checkpoints import plain, read

    card, state = read(path)
    source = sha256(path)
    parameters = sum(value.numel() for name, value in state.items() if not name.endswith((".noise", "w_mean")))
    texts = {name: plain(card.get(name, "")) for name in ("kind", "training_set")}
    facts = {"parameters": parameters, "source": plain(path.name), "source_sha256": source}
    named = {"generator": "stylegan2", "identity": f"stylegan2-{source[:16]}", "config": card["config"]}
    save_file(state, target, metadata={"card": json.dumps({**named, **texts, **facts})})


def load(name: str, psi: float, label: int | None = None) -> StyleGAN2:
    """An imported model's generator."""
    return load_file_of(place_of(name), psi, label, f"delete {place_of(name).parent} and import it again")


def load_file_of(place: Path, psi: float, label: int | None, remedy: str) -> StyleGAN2:
    """The generator in a file of the safe form; ``remedy`` is what to do where it is damaged."""
    from safetensors.torch import load_file

    from ..generators.stylegan2 import Config, StyleGAN2

    card = read_card(place)
    generator = StyleGAN2(Config.from_json(card.get("config")), psi, str(card.get("identity", "")), label)
    try:
        generator.load_state_dict(load_file(place))
    except Exception as error:
        raise WeightsError(f"{place} is damaged ({error}); {remedy}.") from error
    return generator
