from __future__ import annotations

import math

import pytest
import torch

import lace
from lace.editing.paper import Paper
from lace.samplers.ode import Ode
from lace.samplers.schedule import PAPER

START = torch.tensor([[0.5, -1.0, 0.3, 0.8, -0.4, 1.2], [-2.0, 0.2, -0.3, 0.1, 0.4, -1.0]])
# w = z, so both distances pull alike: m (|w - w0|^2 + |z - z0|^2) has the slope 4 m (z - z0).
STAY = 4 * 0.04
REACH = 1.2


def flow(start: torch.Tensor, pulls: list[tuple[float, float]]) -> torch.Tensor:
    """Where dz/ds = - sum_k a_k (z - c_k) is after the paper's length, from z = start."""
    rate = sum(weight for weight, _ in pulls)
    rest = sum(weight * place for weight, place in pulls) / rate
    return rest + (start - rest) * math.exp(-rate * PAPER.length)


@pytest.mark.parametrize(("reweight", "weight"), [(True, 10.0), (False, 1.0)])
def test_it_is_the_flow_that_it_says(plain: lace.Model, reweight: bool, weight: float) -> None:
    method = Paper(reweight, rest=(), ode=Ode(1e-6, 1e-6))
    z = plain.edit(START, "tall=1", method=method).drawings[1].z
    for row, start in zip(z, START, strict=True):
        expected = flow(float(start[0]), [(weight / REACH**2, 1.0), (STAY, float(start[0]))])
        assert float(row[0]) == pytest.approx(expected, abs=1e-4)
        assert torch.allclose(row[1:], start[1:], atol=1e-4)


def test_earlier_edits_count_less_and_other_words_are_kept(plain: lace.Model) -> None:
    """The second edit pulls on wide with 10; tall stays in the sum with 0.2, the kept word's reading with 0.01."""
    method = Paper(rest=("tall", "wide", "high"), ode=Ode(1e-6, 1e-6))
    album = plain.edit(START[:1], ["tall=1", "wide=2"], method=method)
    first, second = album.drawings[1].z[0], album.drawings[2].z[0]
    expected = flow(float(first[0]), [(0.2 / REACH**2, 1.0), (STAY + 2 * 0.01 * 0.81 / 12**2, float(first[0]))])
    assert float(second[0]) == pytest.approx(expected, abs=1e-3)
    assert float(second[1]) == pytest.approx(
        flow(float(first[1]), [(10 / REACH**2, 2.0), (STAY, float(first[1]))]), abs=1e-4
    )


def test_a_word_asked_again_takes_the_place_of_the_earlier(plain: lace.Model) -> None:
    method = Paper(rest=(), ode=Ode(1e-6, 1e-6))
    album = plain.edit(START[:1], ["tall=-3", "tall=3"], method=method)
    start = float(album.drawings[1].z[0, 0])
    expected = flow(start, [(10 / REACH**2, 3.0), (STAY, start)])
    assert float(album.drawings[2].z[0, 0]) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("temperature", [0.4, 1.0, 2.0])
def test_the_temperature_divides_the_logits(plain: lace.Model, temperature: float) -> None:
    """round has the logits (0, 2 z): E = softplus(-2 z / T), followed here in a hundred thousand plain steps."""
    steps, z, start = 100_000, -0.3, -0.3
    for _ in range(steps):
        push = 5 * 2 / temperature / (1 + math.exp(2 * z / temperature))
        z += PAPER.length / steps * (push - STAY * (z - start))
    method = Paper(temperature=temperature, rest=(), ode=Ode(1e-6, 1e-6), picked=False)
    assert float(plain.edit(START[1:], "round", method=method).drawings[1].z[0, 2]) == pytest.approx(z, abs=1e-3)


def test_a_temperature_is_above_zero() -> None:
    with pytest.raises(lace.ValueRangeError, match="temperature"):
        Paper(temperature=0)
