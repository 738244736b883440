"""Tensors that lie in a file: their shapes are known at once, their numbers are read when they are wanted.

Reading copies numbers out of the file, and every byte that is copied is taken off a budget of the file's own length: a
file whose tensors share storages, repeat or overlap cannot grow into more than it is.
"""

from __future__ import annotations

import math
import mmap
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..errors import WeightsError
from .archives import item_size, read_legacy, storage_of
from .pickles import Made, raw

__all__ = ["Hoard", "Stored", "number"]

DTYPES = {
    "Double": torch.float64,
    "Float": torch.float32,
    "Half": torch.float16,
    "BFloat16": torch.bfloat16,
    "f8": torch.float64,
    "f4": torch.float32,
    "f2": torch.float16,
}
# A nested pickle holds one storage: some thirty instructions.
NESTED = 1000
DIMENSIONS = 8


@dataclass(frozen=True)
class Stored:
    """A tensor in a file: its shape, and how to read its numbers, which come in single precision."""

    shape: tuple[int, ...]
    read: Callable[[], Tensor]

    def changed(self, shape: tuple[int, ...], change: Callable[[Tensor], Tensor]) -> Stored:
        """The same after a change that gives it that shape."""
        return Stored(shape, lambda: change(self.read()))


class Hoard:
    """What a file holds: ``storages`` by their keys, and a budget of bytes to be read."""

    def __init__(self, budget: int, storages: Mapping[str, memoryview] | None = None) -> None:
        self.budget = budget
        self.storages = storages or {}

    def stored(self, value: Any) -> Stored:
        """A tensor or array that a pickle asks for."""
        if isinstance(value, Stored):
            return value
        if isinstance(value, Made) and value.maker == "torch._utils._rebuild_parameter" and value.arguments:
            value = value.arguments[0]
        if isinstance(value, Made) and value.maker == "torch._utils._rebuild_tensor_v2" and len(value.arguments) >= 4:
            storage, offset, shape, stride = value.arguments[:4]
            return self._view(lambda: self._storage(storage), offset, whole(shape), whole(stride))
        if isinstance(value, Made) and value.maker == "numpy.core.multiarray._reconstruct":
            return self._array(value.state)
        if isinstance(value, Made) and value.maker == "numpy.core.numeric._frombuffer" and len(value.arguments) == 4:
            data, dtype, shape, order = value.arguments
            return self._array((1, shape, dtype, order == "F", data))
        if isinstance(value, Made) and value.maker == "numpy.core.multiarray.scalar" and len(value.arguments) == 2:
            return self._array((1, (), value.arguments[0], False, value.arguments[1]))
        raise WeightsError("it has something else where a tensor belongs")

    def plain(self, kind: str, data: memoryview, shape: Any) -> Stored:
        """A tensor whose numbers lie one after the other."""
        return self._view(lambda: (DTYPES[kind], data), 0, whole(shape), None)

    def _array(self, state: Any) -> Stored:
        """A NumPy array from its state: version, shape, type, Fortran's order or not, bytes."""
        if not isinstance(state, tuple) or len(state) != 5:
            raise WeightsError("it has an array without a state")
        _, shape, dtype, fortran, data = state
        sizes = whole(shape)
        if fortran:
            return self._view(lambda: (numpy_type(dtype), raw(data)), 0, sizes[::-1], None).changed(sizes, reverse)
        return self._view(lambda: (numpy_type(dtype), raw(data)), 0, sizes, None)

    def _view(
        self,
        storage: Callable[[], tuple[torch.dtype, memoryview]],
        offset: Any,
        shape: tuple[int, ...],
        stride: tuple[int, ...] | None,
    ) -> Stored:
        if stride is None:
            stride = tuple(math.prod(shape[k + 1 :]) for k in range(len(shape)))
        if not isinstance(offset, int) or offset < 0 or len(stride) != len(shape) or overlaps(shape, stride):
            raise WeightsError("it has a tensor whose parts overlap")
        return Stored(shape, lambda: self._read(*storage(), offset, shape, stride))

    def _read(
        self, dtype: torch.dtype, data: memoryview, offset: int, shape: tuple[int, ...], stride: tuple[int, ...]
    ) -> Tensor:
        """Copy a view's own span out of its storage."""
        if 0 in shape:
            return torch.empty(shape)
        span = 1 + sum((size - 1) * step for size, step in zip(shape, stride, strict=True))
        part = data[offset * dtype.itemsize : (offset + span) * dtype.itemsize]
        if len(part) < span * dtype.itemsize:
            raise WeightsError("it has a tensor that reaches beyond its storage")
        self.budget -= len(part)
        if self.budget < 0:
            raise WeightsError("its tensors share so much that they would take more room than the file")
        # Copied as bytes, because numbers in a file lie at any address.
        numbers = torch.frombuffer(bytearray(part), dtype=torch.uint8).view(dtype)
        give_back(part)
        return numbers.as_strided(shape, stride).contiguous().float()

    def _storage(self, value: Any) -> tuple[torch.dtype, memoryview]:
        """The type and bytes of a storage: one of this file's, or one in a pickle of its own."""
        if isinstance(value, Made) and value.maker == "torch.storage._load_from_bytes" and len(value.arguments) == 1:
            inner = read_legacy(raw(value.arguments[0]), NESTED)
            return Hoard(0, inner.storages)._storage(inner.root)
        if not isinstance(value, Made) or value.maker != "persistent":
            raise WeightsError("it has something else where a storage belongs")
        kind, key = storage_of(value.arguments[0])
        item_size(kind)
        name = kind.name.removeprefix("torch.").removesuffix("Storage")
        if name not in DTYPES:
            raise WeightsError(f"it has weights of type {name}, which are no weights")
        if key not in self.storages:
            raise WeightsError(f"its storage {key[:40]} is missing")
        return DTYPES[name], self.storages[key]


def give_back(part: memoryview) -> None:
    """Let go of the pages of a mapped file: what was copied need not be in memory twice."""
    if isinstance(part.obj, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        part.obj.madvise(mmap.MADV_DONTNEED)


def whole(sizes: Any) -> tuple[int, ...]:
    """Sizes or strides as a file gives them."""
    if not isinstance(sizes, tuple) or len(sizes) > DIMENSIONS:
        raise WeightsError("it has a tensor without a plain shape")
    if not all(isinstance(size, int) and 0 <= size < 2**48 for size in sizes):
        raise WeightsError("it has a tensor of impossible size")
    return sizes


def overlaps(shape: tuple[int, ...], stride: tuple[int, ...]) -> bool:
    """Whether two places of a tensor may be the same number: then it is larger than what it is made of."""
    reach = 1
    for step, size in sorted((step, size) for size, step in zip(shape, stride, strict=True) if size > 1):
        if step < reach:
            return True
        reach = step * size
    return False


def reverse(x: Tensor) -> Tensor:
    return x.permute(*reversed(range(x.dim()))).contiguous()


def numpy_type(value: Any) -> torch.dtype:
    """The type of an array's numbers."""
    if isinstance(value, Made) and value.maker == "numpy.dtype" and value.arguments:
        name, order = (
            value.arguments[0],
            value.state[1] if isinstance(value.state, tuple) and len(value.state) > 1 else "<",
        )
        if isinstance(name, str) and name in DTYPES and order in ("<", "=", "|"):
            return DTYPES[name]
    raise WeightsError("it has an array of other things than ordinary numbers")


def number(value: Any) -> float | None:
    """A plain number, or NumPy's kind of one; None for all else."""
    if isinstance(value, Made) and value.maker == "numpy.core.multiarray.scalar" and len(value.arguments) == 2:
        form = {torch.float64: "<d", torch.float32: "<f", torch.float16: "<e"}[numpy_type(value.arguments[0])]
        data = raw(value.arguments[1])
        value = struct.unpack(form, data)[0] if len(data) == struct.calcsize(form) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e12:
        return None
    return float(value)
