"""Safetensors: eight bytes of length, a JSON header that says where every tensor lies, and the numbers."""

from __future__ import annotations

import json
import struct

from ..errors import WeightsError
from .tensors import Hoard, Stored

__all__ = ["read_safetensors"]

# A StyleGAN2's header has some 60 kB; JSON grows tenfold when it is read.
HEADER = 1 << 20
TYPES = {"F64": "Double", "F32": "Float", "F16": "Half", "BF16": "BFloat16"}


def read_safetensors(data: memoryview, hoard: Hoard) -> dict[str, Stored]:
    """The tensors of a file by their names."""
    (size,) = struct.unpack_from("<Q", data)
    if size > min(HEADER, len(data) - 8):
        raise WeightsError("it is no safetensors file, or ends too early")
    try:
        header = json.loads(bytes(data[8 : 8 + size]))
    except (ValueError, RecursionError) as error:
        raise WeightsError("its safetensors header is damaged") from error
    header.pop("__metadata__", None)
    return {name: _stored(row, data[8 + size :], hoard) for name, row in header.items()}


def _stored(row: object, data: memoryview, hoard: Hoard) -> Stored:
    try:
        kind, shape, (begin, end) = row["dtype"], tuple(row["shape"]), row["data_offsets"]  # type: ignore[index]
        return hoard.plain(TYPES[kind], data[int(begin) : int(end)], shape)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise WeightsError("its safetensors header does not say plainly where tensors lie") from error
