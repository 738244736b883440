"""Recordings: whatever is asked in whatever order, the answers are the function's own."""

from __future__ import annotations

from types import SimpleNamespace
from typing import ClassVar

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from lace.gpu import recorded
from lace.gpu.recorded import Recorded

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")


class OnGpu(Tensor):
    """A tensor that says it is on a GPU, and is not."""

    is_cuda = True


class Spool:
    """A tape without a GPU: results come in the same memory each time, as a graph leaves them."""

    made: ClassVar[list[Spool]] = []

    def __init__(self, function, inputs, trials=1, pool=None) -> None:
        self.inputs, self.function, self.pool = inputs, function, pool
        self.graph = SimpleNamespace(pool=lambda: "the first one's" if pool is None else pool)
        self.result = function(*inputs)
        Spool.made.append(self)

    def play(self, *values: Tensor) -> tuple[Tensor, ...]:
        for own, new in zip(self.inputs, values, strict=True):
            own[: len(new)] = new
        for old, new in zip(self.result, self.function(*self.inputs), strict=True):
            old[...] = new
        return self.result


@pytest.fixture
def spools(monkeypatch: pytest.MonkeyPatch) -> list[Spool]:
    """Every recording that is made, first to last."""
    monkeypatch.setattr(recorded, "Tape", Spool)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    monkeypatch.setattr(Recorded, "_pool", None)
    monkeypatch.setattr(Spool, "made", [])
    return Spool.made


def rows(n: int, dim: int = 3, seed: int = 0) -> Tensor:
    return torch.randn(n, dim, generator=torch.Generator().manual_seed(seed)).as_subclass(OnGpu)


def twice(x: Tensor, *others: Tensor) -> tuple[Tensor, Tensor]:
    return 2 * x, x.sum(dim=1) + sum(other.sum(dim=1) for other in others)


def test_a_size_is_recorded_when_it_is_asked_again(spools: list[Spool]) -> None:
    """Five to eight rows are one size."""
    function = Recorded(twice)
    made = []
    for n in (5, 1, 8, 2, 6, 1, 7):
        x = rows(n, seed=n)
        for found, truth in zip(function(x), twice(x), strict=True):
            assert torch.equal(found, truth)
        made.append(len(spools))
    assert made == [0, 0, 1, 1, 1, 2, 2]
    assert [len(spool.inputs[0]) for spool in spools] == [8, 1]


def test_without_padding_each_number_is_a_size(spools: list[Spool]) -> None:
    function = Recorded(twice, is_padded=False)
    for n in (5, 7, 5, 7, 7):
        assert torch.equal(function(rows(n))[0], 2 * rows(n))
    assert [len(spool.inputs[0]) for spool in spools] == [5, 7]


def test_rows_of_another_shape_are_another_recording(spools: list[Spool]) -> None:
    function = Recorded(twice)
    for _ in range(2):
        for dims in ((3,), (4,), (3, 4)):
            inputs = [rows(4, dim, seed=dim) for dim in dims]
            assert torch.equal(function(*inputs)[1], twice(*inputs)[1])
    assert [[x.shape[1] for x in spool.inputs] for spool in spools] == [[3], [4], [3, 4]]


def test_too_many_rows_or_none_are_never_recorded(spools: list[Spool]) -> None:
    function = Recorded(twice, most=16)
    for n in (17, 17, 17, 0, 0, 0):
        assert len(function(rows(n))[0]) == n
    assert not spools
    for _ in range(2):
        function(rows(16))
    assert len(spools) == 1


def test_padding_repeats_a_row_that_was_asked_for(spools: list[Spool]) -> None:
    """An index beside the data stays one that there is, whatever the memory held."""
    index = torch.tensor([7, 9, 8, 9, 7]).as_subclass(OnGpu)
    table = torch.arange(10.0).as_subclass(OnGpu)
    function = Recorded(lambda places: (table[places],))
    for _ in range(2):
        assert function(index)[0].tolist() == [7, 9, 8, 9, 7]
    assert spools[0].inputs[0].tolist() == [7, 9, 8, 9, 7, 7, 7, 7]


def test_what_is_given_belongs_to_who_asked(spools: list[Spool]) -> None:
    """The next replay writes over the recording's memory, not over earlier results; nor are inputs written to."""
    function = Recorded(twice)
    function(rows(4))
    asked = rows(4, seed=1)
    first = function(asked)[0]
    function(rows(4, seed=2))
    assert torch.equal(first, 2 * rows(4, seed=1))
    assert torch.equal(asked, rows(4, seed=1))


def test_recordings_share_the_memory_of_the_first(spools: list[Spool]) -> None:
    one, other = Recorded(twice), Recorded(lambda x: (x,))
    for function in (one, other):
        for n in (2, 2, 4, 4):
            function(rows(n))
    assert [spool.pool for spool in spools] == [None] + 3 * ["the first one's"]


def test_nothing_is_recorded_within_a_recording(spools: list[Spool], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    function = Recorded(twice)
    for _ in range(3):
        assert torch.equal(function(rows(2))[0], 2 * rows(2))
    assert not spools


@torch.inference_mode()
def test_recordings_outlive_inference_mode(spools: list[Spool]) -> None:
    """Memory that was made in it could not be written to outside."""
    function = Recorded(twice)
    for _ in range(2):
        function(rows(3))
    assert not any(x.is_inference() for x in (*spools[0].inputs, *spools[0].result))


def test_on_a_cpu_it_is_the_function_itself(spools: list[Spool]) -> None:
    function = Recorded(twice)
    for _ in range(3):
        x = torch.ones(4, 3)
        assert torch.equal(function(x)[0], 2 * x)
    assert not spools


@needs_gpu
@given(sizes=st.lists(st.integers(1, 40), min_size=1, max_size=12))
def test_graphs_give_what_was_asked(sizes: list[int]) -> None:
    """Real recordings, asked in any order; the first two and all later answers are the same to the last bit."""
    weight = torch.randn(6, 6, device="cuda", generator=torch.Generator("cuda").manual_seed(0))

    def cubes(x: Tensor, shift: Tensor) -> tuple[Tensor, Tensor]:
        return (x**3 @ weight).tanh(), x.sum(dim=1) + shift

    function = Recorded(cubes)
    for k, n in enumerate(2 * sizes):
        x, shift = torch.randn(n, 6, device="cuda"), torch.full((n,), float(k), device="cuda")
        found, truth = function(x, shift), cubes(x, shift)
        assert torch.allclose(found[0], truth[0], atol=1e-5)
        assert torch.equal(found[1], truth[1])


@needs_gpu
def test_graphs_have_slopes() -> None:
    def slope(x: Tensor) -> tuple[Tensor, Tensor]:
        with torch.enable_grad():
            y = x.detach().clone().requires_grad_()
            value = y.sin().sum(dim=1)
            return value.detach(), torch.autograd.grad(value.sum(), y)[0]

    function = Recorded(slope)
    for k in range(4):
        x = torch.full((3, 2), float(k), device="cuda")
        assert torch.allclose(function(x)[1], x.cos(), atol=1e-6)
