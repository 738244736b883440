"""Safetensors: eight bytes of length, a JSON header that says where every tensor lies, and the numbers."""

from __future__ import annotations

import json
import struct
from typing import Any

from ..errors import WeightsError
from .tensors import Hoard, Stored

__all__ = ["card_of", "header_of", "tensors_of"]

# A StyleGAN2's header has some 60 kB; JSON grows tenfold when it is read.
HEADER = 1 << 20
TYPES = {"F64": "Double", "F32": "Float", "F16": "Half", "BF16": "BFloat16"}


def header_of(data: memoryview) -> tuple[dict[str, Any], memoryview]:
    """The header, and the numbers behind it."""
    (size,) = struct.unpack_from("<Q", data)
    if size > min(HEADER, len(data) - 8):
        raise WeightsError("it is no safetensors file, or ends too early")
    try:
        header = json.loads(bytes(data[8 : 8 + size]))
    except (ValueError, RecursionError) as error:
        raise WeightsError("its safetensors header is damaged") from error
    return header, data[8 + size :]


def card_of(header: dict[str, Any]) -> dict[str, Any]:
    """The card that LACE puts into its own files; of others it is empty."""
    metadata = header.get("__metadata__")
    try:
        card = json.loads(metadata["card"]) if isinstance(metadata, dict) and "card" in metadata else {}
    except (TypeError, ValueError, RecursionError) as error:
        raise WeightsError("its card is damaged") from error
    return card if isinstance(card, dict) else {}


def tensors_of(header: dict[str, Any], data: memoryview, hoard: Hoard) -> dict[str, Stored]:
    """The tensors by their names."""
    return {name: _stored(row, data, hoard) for name, row in header.items() if name != "__metadata__"}


def _stored(row: Any, data: memoryview, hoard: Hoard) -> Stored:
    try:
        begin, end = row["data_offsets"]
        return hoard.plain(TYPES[row["dtype"]], data[int(begin) : int(end)], tuple(row["shape"]))
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise WeightsError("its safetensors header does not say plainly where tensors lie") from error
