"""The card that travels inside a head file: schema, what it was trained on, how well it does.

A safetensors file begins with eight bytes of length and a JSON header; the card is read from there without any tensor
library, so that words can be listed at once.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

from ..errors import DataError

__all__ = ["read_card"]

# Headers hold names and shapes: a longer one is no head file of ours.
LARGEST = 1 << 24


def read_card(path: Path) -> dict[str, Any]:
    """The card of a head file, read without loading a tensor library."""
    try:
        with path.open("rb") as file:
            (size,) = struct.unpack("<Q", file.read(8))
            header = json.loads(file.read(min(size, LARGEST)))
        card = json.loads(header["__metadata__"]["card"])
    except (OSError, struct.error, ValueError, KeyError) as error:
        raise DataError(f"{path} is not a head file of LACE ({error}).") from error
    if not isinstance(card, dict):
        raise DataError(f"{path} is not a head file of LACE (its card is no object).")
    return card
