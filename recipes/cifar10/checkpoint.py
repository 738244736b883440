"""A training that can go on: three files of half precision, none above 16 MB, that say how far they are.

The optimiser is not kept. With a first moment of 0 it remembers only how large gradients were, over some seventy steps:
a warm-up finds that out again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import nn

from lace.attributes.card import read_card, read_with_card, write_with_card
from lace.errors import DataError

__all__ = ["PARTS", "load", "save"]

PARTS = ("average", "critic", "trainee")


def save(folder: Path, networks: dict[str, nn.Module], card: dict[str, Any]) -> None:
    """Write the networks by their names with a card."""
    for name, network in networks.items():
        write_with_card(folder / f"{name}.safetensors", network.state_dict(), card)


def load(folder: Path, networks: dict[str, nn.Module]) -> dict[str, Any]:
    """Fill the networks in, and give the card; files of different moments are refused."""
    cards = [read_card(folder / f"{name}.safetensors") for name in networks]
    if any(card != cards[0] for card in cards):
        raise DataError(f"The files in {folder} are of different moments; copy all of {', '.join(networks)} together.")
    for name, network in networks.items():
        _, state = read_with_card(folder / f"{name}.safetensors")
        try:
            network.load_state_dict(state)
        except RuntimeError as error:
            raise DataError(f"{folder} does not hold networks of this size ({error}).") from error
    return cards[0]
