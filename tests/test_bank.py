"""Estimates and their intervals."""

from __future__ import annotations

import math

import pytest
import torch
from safetensors.torch import save

import lace
from lace.bank import Bank, Estimate
from lace.errors import WeightsError


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [(50, 100, 0.40383, 0.59617), (0, 20, 0.0, 0.16113), (10, 10, 0.72247, 1.0), (1, 1000, 0.0001766, 0.0056424)],
)
def test_wilson_interval(successes: int, n: int, low: float, high: float) -> None:
    """Against published tables of Wilson's score interval."""
    estimate = Estimate.of(torch.tensor([1.0] * successes + [0.0] * (n - successes)))
    assert estimate.probability == pytest.approx(successes / n)
    assert (estimate.low, estimate.high) == pytest.approx((low, high), abs=2e-5)


def test_interval_covers() -> None:
    """Of 400 intervals from soft probabilities at least 95 % hold the truth, less 4 standard errors."""
    rng = torch.Generator().manual_seed(0)
    draws = torch.rand(400, 500, generator=rng).pow(4)
    covered = sum(e.low <= 0.2 <= e.high for e in map(Estimate.of, draws))
    assert covered / 400 >= 0.95 - 4 * math.sqrt(0.95 * 0.05 / 400)


def test_the_bank_holds_the_first_draws(toy: lace.Model) -> None:
    index = torch.tensor([0, 7, 2**14 - 1])
    with torch.inference_mode():
        truth = toy.read(toy.generator.prior(0, index))
    assert torch.allclose(toy.bank.readings[index], truth, atol=1e-6)
    assert toy.bank.knows(0, index)
    assert not toy.bank.knows(1, index)
    assert not toy.bank.knows(0, torch.tensor([5, 2**14]))


def test_a_bank_is_kept_on_disk(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LACE_HOME", str(tmp_path))
    calls = []

    def read(index: torch.Tensor) -> torch.Tensor:
        calls.append(len(index))
        return index[:, None].float()

    banks = [Bank.of("toy", read, torch.device("cpu"), 5000) for _ in range(2)]
    assert sum(calls) == 5000
    assert torch.equal(banks[0].readings, banks[1].readings)
    assert torch.equal(banks[1].readings[:, 0], torch.arange(5000.0))


@pytest.mark.parametrize("harm", ["cut", "junk", "empty", "short", "other"])
def test_a_damaged_bank_is_a_sentence(tmp_path, monkeypatch: pytest.MonkeyPatch, harm: str) -> None:
    monkeypatch.setenv("LACE_HOME", str(tmp_path))
    (tmp_path / "banks").mkdir()
    path = tmp_path / "banks" / "toy-100.safetensors"
    good = save({"readings": torch.zeros(100, 3)})
    path.write_bytes(
        {
            "cut": good[:-4],
            "junk": b"junk",
            "empty": b"",
            "short": save({"readings": torch.zeros(99, 3)}),
            "other": save({"z": torch.zeros(100, 3)}),
        }[harm]
    )
    with pytest.raises(WeightsError, match="delete it and it will be made again"):
        Bank.of("toy", lambda index: index[:, None].float(), torch.device("cpu"), 100)
