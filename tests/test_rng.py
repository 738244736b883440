"""Noise against published vectors, against plain Python, and against itself in other orders."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lace import rng
from lace.errors import AddressError
from lace.rng import Address

words = st.integers(0, 2**32 - 1)


def tensors(values: tuple[int, ...]) -> list[torch.Tensor]:
    return [torch.tensor([value]) for value in values]


# Random123's known answers for philox4x32-10.
KNOWN = [
    ((0, 0, 0, 0), (0, 0), "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ((2**32 - 1,) * 4, (2**32 - 1,) * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        "d16cfe09 94fdcceb 5001e420 24126ea1",
    ),
]


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN)
def test_known_answers(counter: tuple[int, ...], key: tuple[int, int], answer: str) -> None:
    assert " ".join(f"{int(word):08x}" for word in rng.philox(tensors(counter), key)) == answer


def plain_philox(counter: tuple[int, ...], key: tuple[int, ...]) -> list[int]:
    """The algorithm in unbounded integers."""
    a, b, c, d = counter
    k, l = key  # noqa: E741
    for _ in range(10):
        left, right = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = (right >> 32) ^ b ^ k, right % 2**32, (left >> 32) ^ d ^ l, left % 2**32
        k, l = (k + 0x9E3779B9) % 2**32, (l + 0xBB67AE85) % 2**32  # noqa: E741
    return [a, b, c, d]


@given(st.tuples(words, words, words, words), st.tuples(words, words))
def test_equals_plain_integers(counter: tuple[int, ...], key: tuple[int, int]) -> None:
    assert [int(word) for word in rng.philox(tensors(counter), key)] == plain_philox(counter, key)


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**63 - 1))
def test_counter_and_key_hold_all_of_an_address(seed: int, index: int) -> None:
    found = rng._words(seed, torch.tensor([index]), 2, stream=1)
    counter = (index % 2**32, index >> 32, 1, 1)
    assert [int(word[0, 1]) for word in found] == plain_philox(counter, (seed % 2**32, seed >> 32))


@pytest.mark.parametrize("rows", [1, 7, 512, 513, 2000])
def test_a_row_depends_on_its_address_alone(rows: int) -> None:
    whole = rng.normal(5, torch.arange(2000), 10)
    parts = torch.cat([rng.normal(5, index, 10) for index in torch.arange(2000).split(rows)])
    assert torch.equal(whole, parts)
    shuffled = torch.randperm(2000, generator=torch.Generator().manual_seed(0))
    assert torch.equal(rng.normal(5, shuffled, 10), whole[shuffled])


def test_fewer_dimensions_are_the_first_of_more() -> None:
    index = torch.arange(5)
    assert torch.equal(rng.normal(0, index, 3), rng.normal(0, index, 512)[:, :3])


def test_normals_are_normal() -> None:
    x = rng.normal(0, torch.arange(20_000), 64).double().flatten()
    n = len(x)
    for power, truth in ((1, 0), (2, 1), (3, 0), (4, 3), (6, 15)):
        spread = math.sqrt((math.prod(range(1, 2 * power, 2)) - truth**2) / n)
        assert abs(x.pow(power).mean() - truth) < 4 * spread
    # Kolmogorov's distance, at its 1e-4 critical value.
    uniform = torch.special.ndtr(x).sort().values
    assert (uniform - torch.arange(n) / n).abs().max() < 2.23 / math.sqrt(n)


def test_pairs_of_coordinates_are_independent() -> None:
    x = rng.normal(3, torch.arange(50_000), 8).double()
    covariance = x.T @ x / len(x) - torch.eye(8)
    assert covariance.abs().max() < 5 * math.sqrt(2 / len(x))


def test_streams_and_seeds_differ() -> None:
    index = torch.arange(10_000)
    draws = [rng.uniform(0, index), rng.uniform(1, index), rng.uniform(0, index, rng.TRUNCATION)]
    correlation = torch.corrcoef(torch.stack(draws).double())
    assert (correlation - torch.eye(3)).abs().max() < 4 / math.sqrt(len(index))
    assert all(float(draw.min()) > 0 and float(draw.max()) <= 1 for draw in draws)


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**63 - 1))
def test_addresses_read_back(seed: int, index: int) -> None:
    assert Address.parse(str(Address(seed, index))) == Address(seed, index)


@pytest.mark.parametrize(
    "text", ["", "0", "0:", ":1", "a:1", "0:-1", "0:1:2", "1.5:2", f"{2**64}:0", f"0:{2**63}", "\u0663:\u0661"]
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(AddressError):
        Address.parse(text)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
def test_a_gpu_draws_the_same_noise() -> None:
    index = torch.arange(4096)
    assert torch.allclose(rng.normal(7, index, 512), rng.normal(7, index.cuda(), 512).cpu(), atol=2e-5)
    assert torch.equal(rng.uniform(7, index), rng.uniform(7, index.cuda()).cpu())
