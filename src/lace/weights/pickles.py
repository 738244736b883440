"""Pickles read as data: nothing in a file is called, imported or made, whatever it asks for.

A pickle is a program for a small stack machine. This machine runs the instructions that checkpoints are made of, and
where the program asks for a call it leaves a note of it: :class:`Made` holds the name of what should be called, its
arguments, and the state that should be put into it. Readers match these notes against what they know. Only the names
in ``KNOWN`` may occur at all; others are refused by name, wherever they stand.

What a hostile file can cost is bounded: it may have ``LIMIT`` instructions, each of which makes at most one small
object or a slice of the file. Long or foreign text and all bytes stay slices; nothing is set aside for a size that a
file only claims. Instructions that no checkpoint needs (text opcodes, extensions, INST, OBJ, NEWOBJ_EX, out-of-band
buffers) are refused, and keys are text, so that nobody can choose how they hash.
"""

from __future__ import annotations

import pickletools
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..errors import WeightsError

__all__ = ["KNOWN", "LIMIT", "Global", "Made", "Text", "load", "raw"]

# A StyleGAN2 of 1024 pixels with its discriminator, average and augmentation takes about 60,000.
LIMIT = 2**18
# Text up to this length is decoded at once if it is plain ASCII.
SHORT = 4096
BUILTINS = ("builtins", "__builtin__")
DICTS = {"collections.OrderedDict", "dnnlib.util.EasyDict"}
SETS = {f"{module}.{name}" for module in BUILTINS for name in ("set", "frozenset")}
STORAGES = ("Float", "Double", "Half", "BFloat16", "Long", "Int", "Short", "Char", "Byte", "Bool")
KNOWN = frozenset(
    {
        *DICTS,
        *SETS,
        *(f"torch.{kind}Storage" for kind in STORAGES),
        "torch._utils._rebuild_parameter",
        "torch._utils._rebuild_tensor_v2",
        "torch.storage._load_from_bytes",
        "numpy.core.multiarray._reconstruct",
        "numpy.core.multiarray.scalar",
        "numpy.core.numeric._frombuffer",
        "numpy.dtype",
        "numpy.ndarray",
        "_codecs.encode",
        "argparse.Namespace",
        "torch_utils.persistence._reconstruct_persistent_obj",
        "dnnlib.tflib.network.Network",
    }
)


@dataclass(frozen=True, eq=False, slots=True)
class Global:
    """A name that a file mentions."""

    name: str


@dataclass(eq=False, slots=True)
class Made:
    """A call that a file asks for; nobody made it."""

    maker: str
    arguments: tuple[Any, ...]
    state: Any = None


@dataclass(frozen=True, eq=False, slots=True)
class Text:
    """Long or foreign text, still UTF-8 as it lies in the file."""

    data: memoryview


def load(data: memoryview, place: int = 0, limit: int = LIMIT, references: list[Any] | None = None) -> tuple[Any, int]:
    """The object of the pickle that begins at ``place``, and the place behind it.

    Persistent ids, which stand for what lies elsewhere in a file, are refused unless ``references`` is there to collect
    them; they become ``Made("persistent", (id,))``.
    """
    machine = Machine(data, place, references)
    try:
        return machine.run(limit), machine.place
    except (IndexError, KeyError, TypeError, ValueError, struct.error) as error:
        raise WeightsError(f"its pickle is damaged near byte {machine.place} ({type(error).__name__})") from error


def raw(value: Any) -> memoryview:
    """The bytes of a value that holds some: protocol 2 writes bytes as a call that encodes text in Latin-1."""
    if isinstance(value, memoryview):
        return value
    if isinstance(value, Made) and value.maker == "_codecs.encode" and len(value.arguments) == 2:
        text, encoding = value.arguments
        if encoding == "latin1" and isinstance(text, str):
            return memoryview(text.encode("ascii"))
        if encoding == "latin1" and isinstance(text, Text):
            return memoryview(_latin1(text.data))
    raise WeightsError("it has something else where bytes belong")


def _latin1(data: memoryview, piece: int = 1 << 20) -> bytearray:
    """UTF-8 to Latin-1, piece by piece: as one string a single far character would quadruple it."""
    import codecs

    decoder, out = codecs.getincrementaldecoder("utf-8")(), bytearray()
    try:
        for start in range(0, len(data), piece):
            out += decoder.decode(data[start : start + piece]).encode("latin-1")
        decoder.decode(b"", final=True)
    except ValueError as error:
        raise WeightsError("it has text that is no bytes where bytes belong") from error
    return out


class Machine:
    """The stack machine of pickles, without the instruction that calls."""

    def __init__(self, data: memoryview, place: int, references: list[Any] | None) -> None:
        self.data, self.place, self.references = data, place, references
        self.stack: list[Any] = []
        self.below: list[list[Any]] = []
        self.memo: dict[int, Any] = {}

    def run(self, limit: int) -> Any:
        for _ in range(limit):
            code = self.take(1)[0]
            if code == STOP:
                return self.stack.pop()
            if code not in INSTRUCTIONS:
                raise WeightsError(f"it uses the pickle instruction {named(code)}, which no checkpoint needs")
            INSTRUCTIONS[code](self)
        raise WeightsError(f"its pickle has more than {limit:,} instructions")

    def take(self, size: int) -> memoryview:
        """The next bytes, as a slice."""
        piece = self.data[self.place : self.place + size]
        if len(piece) < size:
            raise WeightsError("it ends too early")
        self.place += size
        return piece

    def number(self, form: str) -> Any:
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def line(self) -> str:
        """A line of text, as GLOBAL has two."""
        window = bytes(self.data[self.place : self.place + 256])
        text, newline, _ = window.partition(b"\n")
        if not newline:
            raise WeightsError("it names something with more than 256 letters, or ends too early")
        self.place += len(text) + 1
        return text.decode("ascii")

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def text(self, form: str) -> None:
        data = self.take(self.number(form))
        self.push(str(data, "ascii") if len(data) <= SHORT and bytes(data).isascii() else Text(data))

    def since_mark(self) -> list[Any]:
        items, self.stack = self.stack, self.below.pop()
        return items

    def mark(self) -> None:
        self.below.append(self.stack)
        self.stack = []

    def tuple_of(self, size: int) -> None:
        items = [self.stack.pop() for _ in range(size)]
        self.push(tuple(reversed(items)))

    def remember(self, key: int) -> None:
        self.memo[key] = self.stack[-1]

    def extend(self, items: list[Any]) -> None:
        """APPEND, APPENDS, ADDITEMS; a set is a list here."""
        if not isinstance(self.stack[-1], list):
            raise WeightsError("it adds to something that is no list")
        self.stack[-1].extend(items)

    def fill(self, items: list[Any]) -> None:
        """SETITEM, SETITEMS."""
        target = self.stack[-1]
        if not isinstance(target, dict) or len(items) % 2:
            raise WeightsError("it sets items of something that is no dictionary")
        for key, value in zip(items[::2], items[1::2], strict=True):
            if not isinstance(key, str | int | float | None):
                raise WeightsError("it has a dictionary whose keys are neither text nor numbers")
            target[key if isinstance(key, str) else repr(key)] = value

    def name(self, module: Any, name: Any) -> None:
        """GLOBAL, STACK_GLOBAL: a name from the list, or nothing."""
        full = f"{module}.{name}" if isinstance(module, str) and isinstance(name, str) else "a thing without a name"
        # NumPy 2 moved its core.
        full = full.replace("numpy._core.", "numpy.core.", 1) if full.startswith("numpy._core.") else full
        if full not in KNOWN:
            shown = "".join(letter if letter.isprintable() else "?" for letter in full[:120])
            raise WeightsError(f"it asks for {shown}, which is not on the short list of what checkpoints may name")
        self.push(Global(full))

    def call(self) -> None:
        """REDUCE, NEWOBJ: a note in place of the call; dictionaries and sets are plain ones."""
        arguments, target = self.stack.pop(), self.stack.pop()
        if not isinstance(target, Global) or not isinstance(arguments, tuple):
            raise WeightsError("it calls something that has no name")
        if target.name in DICTS and not arguments:
            return self.push({})
        if target.name in SETS and len(arguments) == 1 and isinstance(arguments[0], list):
            return self.push(arguments[0])
        return self.push(Made(target.name, arguments))

    def build(self) -> None:
        """BUILD: the state of a note. What PyTorch hangs onto its dictionaries is of no use here."""
        state, target = self.stack.pop(), self.stack[-1]
        if isinstance(target, dict):
            return
        if not isinstance(target, Made) or target.state is not None:
            raise WeightsError("it puts state into something that takes none, or takes it once")
        target.state = state

    def elsewhere(self) -> None:
        """BINPERSID."""
        if self.references is None:
            raise WeightsError("it refers to something outside of itself")
        self.references.append(self.stack.pop())
        self.push(Made("persistent", (self.references[-1],)))


def named(code: int) -> str:
    names = [op.name for op in pickletools.opcodes if ord(op.code) == code]
    return names[0] if names else f"0x{code:02x} (unknown)"


STOP = ord(".")
INSTRUCTIONS: dict[int, Callable[[Machine], Any]] = {
    ord(code): run
    for code, run in {
        "\x80": lambda m: m.take(1),
        "\x95": lambda m: m.take(8),
        "(": Machine.mark,
        "}": lambda m: m.push({}),
        "]": lambda m: m.push([]),
        "\x8f": lambda m: m.push([]),
        ")": lambda m: m.push(()),
        "N": lambda m: m.push(None),
        "\x88": lambda m: m.push(True),
        "\x89": lambda m: m.push(False),
        "J": lambda m: m.push(m.number("<i")),
        "K": lambda m: m.push(m.number("<B")),
        "M": lambda m: m.push(m.number("<H")),
        "\x8a": lambda m: m.push(int.from_bytes(m.take(m.number("<B")), "little", signed=True)),
        "G": lambda m: m.push(m.number(">d")),
        "\x8c": lambda m: m.text("<B"),
        "X": lambda m: m.text("<I"),
        "\x8d": lambda m: m.text("<Q"),
        "C": lambda m: m.push(m.take(m.number("<B"))),
        "B": lambda m: m.push(m.take(m.number("<I"))),
        "\x8e": lambda m: m.push(m.take(m.number("<Q"))),
        "\x96": lambda m: m.push(m.take(m.number("<Q"))),
        "t": lambda m: m.push(tuple(m.since_mark())),
        "l": lambda m: m.push(m.since_mark()),
        "\x91": lambda m: m.push(m.since_mark()),
        "\x85": lambda m: m.tuple_of(1),
        "\x86": lambda m: m.tuple_of(2),
        "\x87": lambda m: m.tuple_of(3),
        "a": lambda m: m.extend([m.stack.pop()]),
        "e": lambda m: m.extend(m.since_mark()),
        "\x90": lambda m: m.extend(m.since_mark()),
        "s": lambda m: m.fill([m.stack.pop(-2), m.stack.pop()]),
        "u": lambda m: m.fill(m.since_mark()),
        "q": lambda m: m.remember(m.number("<B")),
        "r": lambda m: m.remember(m.number("<I")),
        "\x94": lambda m: m.remember(len(m.memo)),
        "h": lambda m: m.push(m.memo[m.number("<B")]),
        "j": lambda m: m.push(m.memo[m.number("<I")]),
        "c": lambda m: m.name(m.line(), m.line()),
        "\x93": lambda m: m.name(m.stack.pop(-2), m.stack.pop()),
        "R": Machine.call,
        "\x81": Machine.call,
        "b": Machine.build,
        "Q": Machine.elsewhere,
    }.items()
}
