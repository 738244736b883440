"""Where tensors lie in a file that ``torch.save`` wrote, read by the book and by hand: no size is believed unchecked.

    today:   a zip of stored members, NAME/data.pkl and NAME/data/KEY; the pickle refers to storages by their key
    legacy:  pickles end to end (magic number, version, system, the object, the keys), then each key's count and bytes

Both come down to one :class:`Archive`: the object, and the bytes of every storage as slices of the file. Zips are not
unpacked, so nothing in them can grow, and the names in them become no paths.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import WeightsError
from .pickles import LIMIT, Global, load

__all__ = ["Archive", "item_size", "read_legacy", "read_zip", "storage_of"]

MAGIC = 0x1950A86A20F9469CFC6C
VERSION = 1001
ITEM_SIZES = {
    "Double": 8,
    "Long": 8,
    "Float": 4,
    "Int": 4,
    "Half": 2,
    "BFloat16": 2,
    "Short": 2,
    "Char": 1,
    "Byte": 1,
    "Bool": 1,
}
# Members of a zip: a checkpoint with optimizers has some thousands.
MEMBERS = 2**16
LOCAL, CENTRAL, END, END64, LOCATOR = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x07"
FULL = 0xFFFFFFFF


@dataclass(frozen=True)
class Archive:
    """An object read as data, and the storages that it refers to by their keys."""

    root: Any
    storages: Mapping[str, memoryview]


def item_size(kind: Any) -> int:
    """Bytes of an item of a storage type."""
    if not isinstance(kind, Global) or not kind.name.endswith("Storage"):
        raise WeightsError("it has a storage of no known type")
    return ITEM_SIZES[kind.name.removeprefix("torch.").removesuffix("Storage")]


def storage_of(reference: Any) -> tuple[Any, str]:
    """The type and key of a storage that a pickle refers to."""
    if (
        isinstance(reference, tuple)
        and len(reference) in (5, 6)
        and reference[0] == "storage"
        and reference[5:] in ((), (None,))
    ):
        kind, key = reference[1:3]
        if isinstance(key, str):
            return kind, key
    raise WeightsError("it refers to something that is no storage")


def read_zip(data: memoryview) -> Archive:
    """What today's ``torch.save`` writes."""
    members = _members(data)
    pickles = [name for name in members if name.endswith("/data.pkl") and name.count("/") == 1]
    if len(pickles) != 1:
        raise WeightsError("it is a zip, but none of PyTorch's (no single data.pkl in it)")
    base = pickles[0].removesuffix("data.pkl")
    if bytes(members.get(f"{base}byteorder", b"little")[:8]) != b"little":
        raise WeightsError("its numbers are big-endian; save it again on an ordinary machine")
    root, _ = load(members[pickles[0]], references=[])
    prefix = f"{base}data/"
    return Archive(root, {name.removeprefix(prefix): part for name, part in members.items() if name.startswith(prefix)})


def _members(data: memoryview) -> dict[str, memoryview]:
    """The members of a zip as slices; only stored ones, each name once."""
    try:
        place, count = _directory(data)
        members: dict[str, memoryview] = {}
        for _ in range(count):
            name, part, place = _member(data, place)
            if name in members:
                raise WeightsError(f"its zip holds {name[:80]} twice")
            members[name] = part
    except (struct.error, ValueError, IndexError, OverflowError) as error:
        raise WeightsError(f"its zip is damaged ({error})") from error
    return members


def _directory(data: memoryview) -> tuple[int, int]:
    """Where the zip's directory begins, and how many members it lists."""
    tail = bytes(data[-65557:])
    end = tail.rfind(END)
    if end < 0:
        raise WeightsError("its zip has no directory: the file ends too early")
    count, _, place = struct.unpack_from("<HII", tail, end + 10)
    locator = len(data) - len(tail) + end - 20
    if locator >= 0 and bytes(data[locator : locator + 4]) == LOCATOR:
        (far,) = struct.unpack_from("<Q", data, locator + 8)
        if bytes(data[far : far + 4]) != END64:
            raise WeightsError("its zip's directory is not where it should be")
        count, _, place = struct.unpack_from("<QQQ", data, far + 32)
    if count > MEMBERS:
        raise WeightsError(f"its zip claims {count:,} members")
    return place, count


def _member(data: memoryview, place: int) -> tuple[str, memoryview, int]:
    """The name and bytes of a directory's entry, and where the next one begins."""
    form = "<4s4xHH8xIIHHHHHII"
    magic, flags, method, packed, size, name, extra, comment, _, _, _, start = struct.unpack_from(form, data, place)
    after = place + struct.calcsize(form)
    if magic != CENTRAL or flags & 1 or method or packed != size:
        raise WeightsError("its zip has a member that is packed or encrypted; PyTorch only stores")
    text = str(data[after : after + name], "utf-8")
    if FULL in (size, start):
        far = _far(bytes(data[after + name : after + name + extra]))
        size, _, start = (next(far, old) if old == FULL else old for old in (size, packed, start))
    local = struct.unpack_from("<4s22xHH", data, start)
    begin = start + 30 + local[1] + local[2]
    if local[0] != LOCAL or begin + size > len(data):
        raise WeightsError(f"its zip's member {text[:80]} does not lie in the file")
    return text, data[begin : begin + size], after + name + extra + comment


def _far(extra: bytes) -> Iterator[int]:
    """The numbers of 64 bits in an entry's extra field: size, packed size and place, those that are needed."""
    while len(extra) >= 4:
        kind, length = struct.unpack_from("<HH", extra)
        if kind == 1:
            yield from struct.unpack_from(f"<{length // 8}Q", extra, 4)
        extra = extra[4 + length :]


def read_legacy(data: memoryview, limit: int = LIMIT) -> Archive:
    """What ``torch.save`` wrote before PyTorch 1.6, and what a storage in a pickle still is."""
    place, parts, references = 0, [], list[Any]()
    for part in range(5):
        value, place = load(data, place, limit, references if part == 3 else None)
        parts.append(value)
    magic, version, system, root, keys = parts
    if magic != MAGIC or version != VERSION:
        raise WeightsError("it begins with a number, but not with that of PyTorch's files")
    if not isinstance(system, dict) or system.get("little_endian") is not True or not isinstance(keys, list):
        raise WeightsError("its numbers are big-endian, or its header is damaged")
    sizes = {key: item_size(kind) for kind, key in map(storage_of, references)}
    storages: dict[str, memoryview] = {}
    for key in keys:
        if not isinstance(key, str) or key not in sizes or len(data) < place + 8:
            raise WeightsError("it ends too early, or lists storages that nothing uses")
        (count,) = struct.unpack_from("<q", data, place)
        begin, place = place + 8, place + 8 + count * sizes[key]
        if count < 0 or place > len(data):
            raise WeightsError("a storage in it is longer than the file")
        storages[key] = data[begin:place]
    return Archive(root, storages)
