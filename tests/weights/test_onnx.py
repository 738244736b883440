"""Reading ONNX files as data: weights come in the order of use, and damaged files end in a sentence."""

from __future__ import annotations

import math
import struct
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lace.errors import WeightsError
from lace.weights.onnx import weights_in_order


def varint(value: int) -> bytes:
    head = b""
    while value > 127:
        head += bytes([value & 127 | 128])
        value >>= 7
    return head + bytes([value])


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def sized(field: int, value: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(value)) + value


def array(name: str, shape: list[int], values: list[float], packed: bool = False, kind: int = 1) -> bytes:
    dims = sized(1, b"".join(map(varint, shape))) if packed else b"".join(number(1, size) for size in shape)
    return dims + number(2, kind) + sized(8, name.encode()) + sized(9, struct.pack(f"<{len(values)}f", *values))


def model(nodes: list[list[str]], arrays: list[bytes]) -> bytes:
    """With the fields that a file has besides, of every wire type."""
    taken = [sized(1, b"".join(sized(1, name.encode()) for name in names) + sized(4, b"Conv")) for names in nodes]
    graph = sized(2, b"a graph") + b"".join(taken) + b"".join(sized(5, each) for each in arrays)
    return number(1, 6) + sized(7, graph) + varint(50 << 3 | 1) + bytes(8) + varint(300 << 3 | 5) + bytes(4)


WHOLE = model([["x", "b"], ["y", "a", "count"]], [array("a", [2, 1], [3, 4]), array("b", [1], [5])])


def test_weights_come_in_the_order_of_use(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(model([["x", "b"], ["y", "a", "n"]], [array("a", [1, 2], [3, 4]), array("b", [1], [5])]))
    assert [value.tolist() for value in weights_in_order(path)] == [[5], [[3, 4]]]


@given(
    shape=st.lists(st.integers(1, 5), max_size=4),
    packed=st.booleans(),
    seed=st.integers(0, 99),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_arrays_read_back(tmp_path: Path, shape: list[int], packed: bool, seed: int) -> None:
    values = torch.randn(math.prod(shape), generator=torch.Generator().manual_seed(seed))
    path = tmp_path / "net.onnx"
    other = array("n", [1], [0], kind=7)
    path.write_bytes(model([["n", "a"]], [other, array("a", shape, values.tolist(), packed)]))
    (found,) = weights_in_order(path)
    assert torch.equal(found, values.reshape(shape))


@given(
    place=st.integers(0, len(WHOLE) - 1),
    damage=st.binary(max_size=6),
    length=st.integers(0, len(WHOLE)),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=400)
def test_damaged_files_end_in_a_sentence(tmp_path: Path, place: int, damage: bytes, length: int) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes((WHOLE[:place] + damage + WHOLE[place + len(damage) :])[:length])
    try:
        weights_in_order(path)
    except WeightsError:
        return


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "no graph"),
        (WHOLE[:-14], "middle of a field"),
        (b"\xff" * 11, "does not end"),
        (b"\x0b", "wire type 3"),
        (number(7, 1), "bytes belong"),
        (model([["a"]], [array("a", [3], [1, 2])]), "as its shape says"),
        (model([["a"]], [array("a", [0, 2**63], [])]), "not a readable"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, data: bytes, words: str) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(data)
    with pytest.raises(WeightsError, match=rf"net\.onnx.*{words}"):
        weights_in_order(path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match=r"net\.onnx"):
        weights_in_order(tmp_path / "net.onnx")
