"""The card that travels inside a file of networks: schema, what they were trained on, how well they do.

A safetensors file begins with eight bytes of length and a JSON header; the card is read from there without any tensor
library, so that words can be listed at once.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import DataError
from ..files import written_whole

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["read_card", "read_with_card", "write_with_card"]

# Headers hold names and shapes: a longer one is no head file of ours.
LARGEST = 1 << 24


def read_card(path: Path) -> dict[str, Any]:
    """The card of a file of ours, read without loading a tensor library."""
    try:
        with path.open("rb") as file:
            (size,) = struct.unpack("<Q", file.read(8))
            header = json.loads(file.read(min(size, LARGEST)))
        card = json.loads(header["__metadata__"]["card"])
    except (OSError, struct.error, ValueError, KeyError) as error:
        raise DataError(f"{path} is no file of LACE's ({error}).") from error
    if not isinstance(card, dict):
        raise DataError(f"{path} is no file of LACE's (its card is no object).")
    return card


def read_with_card(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The card and the tensors that :func:`write_with_card` wrote."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    card = read_card(path)
    try:
        return card, load_file(path)
    except SafetensorError as error:
        raise DataError(f"{path} is damaged ({error}); make or fetch it again.") from error


def write_with_card(path: Path, state: dict[str, Tensor], card: dict[str, Any]) -> None:
    """Write tensors in half precision with a card."""
    from safetensors.torch import save_file

    tensors = {name: value.half().contiguous() for name, value in state.items()}
    with written_whole(path) as beside:
        save_file(tensors, beside, metadata={"card": json.dumps(card)})
