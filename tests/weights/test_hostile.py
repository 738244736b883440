"""Files that want to run, grow, hang or lie: each ends in a sentence, soon, in no more than twice its own room."""

from __future__ import annotations

import io
import json
import os
import pickle
import struct
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lace.errors import WeightsError
from lace.weights import pickles
from lace.weights.checkpoints import read
from tests.weights import made

MARK = "a-hostile-file-was-run"


class Calls:
    """Pickles to a call of a function."""

    def __init__(self, function: Any, *arguments: Any, state: Any = None) -> None:
        self.made = (function, arguments) if state is None else (function, arguments, state)

    def __reduce__(self) -> Any:
        return self.made


def text(value: str) -> bytes:
    return b"X" + struct.pack("<I", len(value)) + value.encode()


def named(path: str) -> bytes:
    module, _, name = path.rpartition(".")
    return f"c{module}\n{name}\n".encode()


RUN = f"open('{MARK}', 'w').close()"
KNOWN_NAME = named("collections.OrderedDict")
TRICKS: dict[str, tuple[bytes, str]] = {
    "os.system": (pickle.dumps({"G_ema": Calls(os.system, f"touch {MARK}")}), "system"),
    "os.system, text": (b"cos\nsystem\n(S'touch " + MARK.encode() + b"'\ntR.", "it"),
    "eval": (pickle.dumps(Calls(eval, RUN)), "eval"),
    "exec, protocol 2": (pickle.dumps(Calls(exec, RUN), protocol=2), "exec"),
    "getattr chain": (pickle.dumps(Calls(getattr, "", "__class__")), "getattr"),
    "builtins by their old name": (b"\x80\x02" + named("__builtin__.eval") + b"(" + text(RUN) + b"tR.", "eval"),
    "a dotted name": (b"\x80\x04" + text("collections") + text("OrderedDict.fromkeys") + b"\x93.", "OrderedDict.from"),
    "a name inside a name": (b"\x80\x02" + named("torch.storage._load_from_bytes.__globals__") + b".", "globals"),
    "torch.load": (b"\x80\x02" + named("torch.load") + b"(" + text("x") + b"tR.", "torch.load"),
    "hub": (b"\x80\x02" + named("torch.hub.load") + b".", "torch.hub"),
    "numpy's own pickles": (b"\x80\x02" + named("numpy.load") + b".", "numpy.load"),
    "functools.partial": (b"\x80\x02" + named("functools.partial") + b".", "partial"),
    "importlib": (b"\x80\x02" + named("importlib.import_module") + b".", "importlib"),
    "EXT1": (b"\x80\x02\x82\x01.", "EXT1"),
    "EXT2": (b"\x80\x02\x83\x01\x00.", "EXT2"),
    "EXT4": (b"\x80\x02\x84\x01\x00\x00\x00.", "EXT4"),
    "INST": (b"\x80\x02(ios\nsystem\n.", "INST"),
    "OBJ": (b"\x80\x02(" + KNOWN_NAME + b"o.", "OBJ"),
    "NEWOBJ_EX": (b"\x80\x04" + KNOWN_NAME + b")}\x92.", "NEWOBJ_EX"),
    "PERSID": (b"\x80\x02Pwhatever\n.", "PERSID"),
    "BINPERSID": (b"\x80\x02" + text("id") + b"Q.", "outside"),
    "a buffer from elsewhere": (b"\x80\x05\x97.", "NEXT_BUFFER"),
    "an unknown instruction": (b"\x80\x02\xff.", "0xff"),
    "state into a name": (b"\x80\x02" + KNOWN_NAME + b"}b.", "state"),
    "state into a number": (b"\x80\x02K\x01}b.", "state"),
    "a call of text": (b"\x80\x02" + text("os.system") + b")R.", "no name"),
    "a call of a note": (b"\x80\x02" + named("numpy.dtype") + b")R)R.", "no name"),
    "a call without a tuple": (b"\x80\x02" + KNOWN_NAME + b"]R.", "no name"),
    "items of a note": (b"\x80\x02" + named("numpy.dtype") + b")R(" + text("a") + b"K\x01u.", "no dictionary"),
    "a list as a key": (b"\x80\x02}]K\x01s.", "keys"),
    "an odd number of items": (b"\x80\x02}(K\x01u.", "dictionary"),
    "memory that is not there": (b"\x80\x02h\x07.", "damaged"),
    "an empty stack": (b"\x80\x02.", "damaged"),
    "no mark": (b"\x80\x02t.", "damaged"),
    "no end": (b"\x80\x02}", "too early"),
    "nothing but a beginning": (b"\x80", "too early"),
    "bytes of 2^60": (b"\x80\x04\x8e" + struct.pack("<Q", 2**60) + b".", "too early"),
    "text of 2^31": (b"\x80\x02X" + struct.pack("<I", 2**31) + b"a.", "too early"),
    "a bytearray of 2^62": (b"\x80\x05\x96" + struct.pack("<Q", 2**62) + b".", "too early"),
    "a frame of 2^63": (b"\x80\x04\x95" + struct.pack("<Q", 2**63) + b"}.", "no generator"),
    "a number of a gigabyte": (b"\x80\x02\x8b" + struct.pack("<i", 2**30) + b".", "LONG4"),
    "a name without an end": (b"\x80\x02c" + b"a" * 10_000, "256 letters"),
    "far memory": (b"\x80\x02}r" + struct.pack("<I", 2**32 - 1) + b".", "no generator"),
    "a list of itself": (b"\x80\x02}" + text("G_ema") + b"]q\x00h\x00as.", "no generator"),
    "a module of itself": (
        b"\x80\x02}q\x09" + text("G_ema") + named("torch_utils.persistence._reconstruct_persistent_obj") + b"(}"
        + text("state") + b"}" + text("_modules") + b"}q\x02sstRq\x03s"
        b"h\x02" + text("x") + b"h\x03sh\x09.", "nested without end",
    ),
    "a module instead of weights": (
        pickle.dumps({"G_ema": {"synthesis": 1}}), "no generator",
    ),
    "an empty file": (b"", "cannot be read"),
    "a text file": (b"hello, this is no checkpoint\n" * 9, "neither a pickle"),
    "a packed file": (b"\x1f\x8b\x08" + bytes(99), "unpack it"),
}  # fmt: skip


@pytest.mark.parametrize("name", TRICKS)
def test_tricks_end_in_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    data, words = TRICKS[name]
    Path("net.pkl").write_bytes(data)
    with pytest.raises(WeightsError, match=words) as refusal:
        read(Path("net.pkl"))
    assert str(refusal.value).isprintable()
    assert [path.name for path in tmp_path.iterdir()] == ["net.pkl"]


def test_a_hostile_part_of_an_honest_file_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the optimizer, in a storage's own pickle, in an array of objects."""
    monkeypatch.chdir(tmp_path)
    torch.save({"g_ema": made.rosinality_state(made.weights()), "g_optim": Calls(os.system, f"touch {MARK}")}, "a.pt")
    inner = pickle.dumps(Calls(os.system, f"touch {MARK}"))
    state = made.weights()
    made.nvidia(Path("b.pkl"), state)
    data = Path("b.pkl").read_bytes()
    storage = made.saved(state["synthesis.b4.const"].untyped_storage(), legacy=True)
    place = data.index(b"\x80\x02\x8a\x0al\xfc\x9cF")
    Path("b.pkl").write_bytes(data[:place] + inner + data[place + len(inner) :])
    assert storage[:8] == b"\x80\x02\x8a\x0al\xfc\x9cF"
    objects = made.weights() | {"mapping.w_avg": torch.ones(12)}
    made.tensorflow(Path("c.pkl"), objects)
    array = np.array([Calls(os.system, f"touch {MARK}")], dtype=object)
    Path("d.pkl").write_bytes(pickle.dumps({"G_ema": array}))
    for name in ("a.pt", "b.pkl", "d.pkl"):
        with pytest.raises(WeightsError):
            read(Path(name))
    read(Path("c.pkl"))
    assert not Path(MARK).exists()


def test_every_known_name_is_only_a_name() -> None:
    """Calling any of them leaves a note; none is looked up, as those of packages that are not installed show."""
    for name in sorted(pickles.KNOWN):
        value, _ = pickles.load(memoryview(b"\x80\x02" + named(name) + b"K\x01\x85R."))
        assert isinstance(value, pickles.Made)
        assert (value.maker, value.arguments) == (name, (1,))


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_plain_data_comes_back(protocol: int) -> None:
    """What Python's own unpickler makes of plain data: the other implementation. Keys become text, sets lists."""
    value = {
        "a": [1, -1, 255, 65536, 2**40, -(2**70), 1.5, None, True, False, "", "text", "ein längerer " * 3],
        "b": (1, (2, (3, 4, 5, 6)), ()),
        "c": {"d": {"e": b"bytes" * 100}, "f": "x" * 300},
        "g": bytes(range(256)),
    }
    read_back, end = pickles.load(memoryview(pickle.dumps(value, protocol=protocol)))

    def plain(x: Any) -> Any:
        if isinstance(x, dict):
            return {key: plain(item) for key, item in x.items()}
        if isinstance(x, list | tuple):
            return type(x)(plain(item) for item in x)
        if isinstance(x, pickles.Text):
            return str(x.data, "utf-8")
        return bytes(pickles.raw(x)) if isinstance(x, memoryview | pickles.Made) else x

    assert plain(read_back) == value
    assert end == len(pickle.dumps(value, protocol=protocol))
    numbers, _ = pickles.load(memoryview(pickle.dumps({1: {2}, None: frozenset()}, protocol=protocol)))
    assert plain(numbers) == {"1": [2], "None": []}


def bomb(kind: str) -> bytes:
    """Files of some megabytes that would like to be gigabytes."""
    head = b"\x80\x04"
    if kind == "lists":
        return head + b"]" * 30_000_000
    if kind == "marks":
        return head + b"(" * 30_000_000
    if kind == "nested":
        return head + b"]" * 100_000 + b"a" * 99_999 + b"."
    if kind == "laughs":
        return head + b"]\x94" + b"(h\x00h\x00h\x00h\x00h\x00h\x00h\x00h\x00e" * 25_000 + b"."
    if kind == "doubling":
        return head + b")\x94" + b"".join(b"h%ch%c\x86\x94" % (k, k) for k in range(200)) + b"."
    if kind == "colliding keys":
        keys = b"".join(b"\x8a\x0a" + (k * (2**61 - 1)).to_bytes(10, "little") + b"N" for k in range(60_000))
        return head + b"}(" + keys + b"u."
    if kind == "wide text":
        return head + (b"X" + struct.pack("<I", 4000) + "\U0001f600".encode() + b"a" * 3996) * 8000 + b"."
    if kind == "a stretched tensor":
        return stretched(stride=0)
    if kind == "a shared storage":
        return shared()
    if kind == "zip of packed zeros":
        return packed()
    if kind == "zip of many names":
        return crowd()
    if kind == "a zip that claims a terabyte":
        return claiming()
    return json_bomb()


def stretched(stride: int) -> bytes:
    state = made.rosinality_state(made.weights())
    state["input.input"] = torch.ones(1).as_strided((1, 4096, 4, 4 * 4096), (stride,) * 4)
    return made.saved({"g_ema": state})


def shared() -> bytes:
    """Every kernel the same megabytes."""
    state = made.weights(channels=(256,) * 8)
    kernel = state["synthesis.b8.conv0.weight"]
    for name in state:
        if state[name].shape == kernel.shape:
            state[name] = kernel
    return made.saved({"g_ema": made.rosinality_state(state)})


def packed() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("net/data.pkl", bytes(200_000_000))
    return out.getvalue()


def crowd() -> bytes:
    entry = b"PK\x01\x02" + bytes(42)
    end = b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    body = b"PK\x03\x04" + entry * 500_000
    far = b"PK\x06\x06" + struct.pack("<QHHIIQQQQ", 44, 45, 45, 0, 0, 500_000, 500_000, len(entry) * 500_000, 4)
    return body + far + b"PK\x06\x07" + struct.pack("<IQI", 0, len(body), 1) + end


def claiming() -> bytes:
    data = bytearray(made.saved({"g_ema": made.rosinality_state(made.weights())}))
    place = data.index(b"PK\x01\x02")
    data[place + 20 : place + 28] = b"\xfe\xff\xff\xff" * 2
    return bytes(data)


def json_bomb() -> bytes:
    header = b'{"a":' + b"[" * 900_000
    return struct.pack("<Q", len(header)) + header + bytes(100)


BOMBS = (
    "lists",
    "marks",
    "nested",
    "laughs",
    "doubling",
    "colliding keys",
    "wide text",
    "a stretched tensor",
    "a shared storage",
    "zip of packed zeros",
    "zip of many names",
    "a zip that claims a terabyte",
    "json",
)
PROBE = """
import os, resource, sys
from pathlib import Path
from lace.errors import LaceError
from lace.weights.checkpoints import read
for name in sys.argv[1:]:
    if os.fork():
        os.wait()
        continue
    resource.setrlimit(resource.RLIMIT_CPU, (30, 30))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        read(Path(name))
    except LaceError as error:
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print((after - before) * 1024, name, error, sep="|", flush=True)
    os._exit(0)
"""


def test_bombs_take_no_more_than_twice_their_size(tmp_path: Path) -> None:
    """Each in a process of its own, with 30 seconds; small objects may take 32 MB besides."""
    for name in BOMBS:
        (tmp_path / name).write_bytes(bomb(name))
    done = subprocess.run([sys.executable, "-c", PROBE, *BOMBS], cwd=tmp_path, capture_output=True, text=True)
    rows = [line.split("|") for line in done.stdout.splitlines()]
    assert [row[1] for row in rows] == list(BOMBS), done.stderr[-300:]
    for taken, name, _ in rows:
        assert int(taken) <= 2 * (tmp_path / name).stat().st_size + 2**25, (name, taken)


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """A small file of each form."""
    folder = tmp_path_factory.mktemp("honest")
    state = made.weights(channels=(4, 3), mapping=(4, 4, 4), classes=2, embedding=3)
    plain = {name: value for name, value in state.items() if "embed" not in name}
    files = {
        "nvidia": made.nvidia(folder / "a", state),
        "nvidia2": made.nvidia(folder / "b", state, protocol=2),
        "tensorflow": made.tensorflow(folder / "c", state),
        "rosinality": made.rosinality(folder / "d", plain),
        "legacy": made.rosinality(folder / "e", plain, legacy=True),
    }
    from safetensors.torch import save_file

    save_file(state, folder / "f")
    return {name: path.read_bytes() for name, path in {**files, "safetensors": folder / "f"}.items()}


changes = st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.binary(min_size=1, max_size=4)), max_size=4)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(
    form=st.sampled_from(["nvidia", "nvidia2", "tensorflow", "rosinality", "legacy", "safetensors"]),
    changed=changes,
    kept=st.floats(0.2, 1.5),
    cut=st.tuples(st.floats(0, 1), st.integers(0, 40)),
)
def test_damaged_files_are_read_or_refused(
    honest: dict[str, bytes], tmp_path: Path, form: str, changed: list[tuple[float, bytes]], kept: float, cut: Any
) -> None:
    """Bytes changed, a piece cut out, the end cut off: nothing but a reading or a sentence comes of it."""
    data = bytearray(honest[form])
    for place, piece in changed:
        start = int(place * len(data))
        data[start : start + len(piece)] = piece
    start = int(cut[0] * len(data))
    del data[start : start + cut[1]]
    path = tmp_path / "net"
    path.write_bytes(bytes(data[: int(kept * len(data))]))
    try:
        card, state = read(path)
    except WeightsError as error:
        assert str(error).isprintable()
        return
    assert json.dumps(card)
    assert all(value.isfinite().all() for value in state.values())


@settings(max_examples=300)
@given(data=st.binary(max_size=200))
def test_arbitrary_pickles_are_read_or_refused(data: bytes) -> None:
    try:
        pickles.load(memoryview(b"\x80\x02" + data))
    except WeightsError:
        return


CODES = st.sampled_from([bytes([code]) for code in (*pickles.INSTRUCTIONS, pickles.STOP)])
ARGUMENTS = st.sampled_from(
    [b"", b"\x00", b"\x01\x00", b"\x00\x00\x00\x00", KNOWN_NAME, text("G_ema"), b"K\x01", b"]", b"}"]
)


@settings(max_examples=500)
@given(parts=st.lists(st.tuples(CODES, ARGUMENTS), max_size=40))
def test_arbitrary_programs_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, parts: Any) -> None:
    """Programs of real instructions, which get further than noise does; then through the readers."""
    path = tmp_path_factory.getbasetemp() / "program"
    path.write_bytes(b"\x80\x02" + b"".join(code + argument for code, argument in parts) + b".")
    with pytest.raises(WeightsError):
        read(path)
