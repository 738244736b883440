"""The weights of an ONNX file, in the order in which its graph uses them.

An ONNX file is a protocol buffer: fields one after another, each a tag, number << 3 | wire type, and a value. We read
the names that the nodes of the graph take, and the arrays under those names; nothing is run.

    model   7: graph          graph   1: node, 5: array
    node    1: name taken     array   1: dimension, 2: type (1 is float32), 8: name, 9: the numbers, little-endian
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ..errors import WeightsError

__all__ = ["weights_in_order"]

FLOAT32 = 1
VARINT, EIGHT_BYTES, SIZED, FOUR_BYTES = 0, 1, 2, 5

Value = int | memoryview


def weights_in_order(path: Path) -> list[Tensor]:
    """The float32 arrays that nodes take, node by node."""
    try:
        return _weights(memoryview(path.read_bytes()))
    except (OSError, ValueError, OverflowError) as error:
        raise WeightsError(f"{path.name} is not a readable ONNX file ({error}).") from error


def _weights(data: memoryview) -> list[Tensor]:
    graph = [part for number, part in _fields(data) if number == 7]
    if len(graph) != 1:
        raise ValueError("it holds no graph")
    parts = list(_fields(_sized(graph[0])))
    named = dict(array for number, part in parts if number == 5 and (array := _array(_sized(part))))
    taken = [name for number, part in parts if number == 1 for name in _taken(_sized(part))]
    return [named[name] for name in taken if name in named]


def _taken(node: memoryview) -> list[bytes]:
    return [bytes(_sized(value)) for number, value in _fields(node) if number == 1]


def _array(data: memoryview) -> tuple[bytes, Tensor] | None:
    """The name and the numbers of an array; none of one that is not float32."""
    shape: list[int] = []
    kind, name, numbers = 0, memoryview(b""), memoryview(b"")
    for number, value in _fields(data):
        if number == 1:
            shape += [value] if isinstance(value, int) else _varints(value)
        elif number == 2 and isinstance(value, int):
            kind = value
        elif number == 8:
            name = _sized(value)
        elif number == 9:
            numbers = _sized(value)
    if kind != FLOAT32:
        return None
    if len(numbers) != 4 * math.prod(shape):
        raise ValueError("an array is not as long as its shape says")
    return bytes(name), torch.from_numpy(np.frombuffer(numbers, "<f4").astype(np.float32).reshape(shape))


def _fields(data: memoryview) -> Iterator[tuple[int, Value]]:
    """Numbers and values of the fields of a message."""
    place = 0
    while place < len(data):
        tag, place = _varint(data, place)
        kind, value = tag & 7, 0
        if kind == VARINT:
            value, place = _varint(data, place)
            yield tag >> 3, value
            continue
        if kind == SIZED:
            size, place = _varint(data, place)
        elif kind in (EIGHT_BYTES, FOUR_BYTES):
            size = 8 if kind == EIGHT_BYTES else 4
        else:
            raise ValueError(f"there is no wire type {kind}")
        if size > len(data) - place:
            raise ValueError("it ends in the middle of a field")
        yield tag >> 3, data[place : place + size]
        place += size


def _sized(value: Value) -> memoryview:
    if isinstance(value, int):
        raise ValueError("a number stands where bytes belong")
    return value


def _varints(data: memoryview) -> list[int]:
    place, found = 0, []
    while place < len(data):
        value, place = _varint(data, place)
        found.append(value)
    return found


def _varint(data: memoryview, place: int) -> tuple[int, int]:
    """A number of 7 bits a byte, lowest first, while the byte's top bit is set; and the place after it."""
    value = 0
    for k, byte in enumerate(data[place : place + 10]):
        value |= (byte & 127) << 7 * k
        if byte < 128:
            return value, place + k + 1
    raise ValueError("a number does not end")
