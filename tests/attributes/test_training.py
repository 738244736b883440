"""Training on problems whose answer is known."""

from __future__ import annotations

import math

import pytest
import torch

from lace.attributes.heads import MlpHeads
from lace.attributes.schema import Continuous, Discrete, Schema
from lace.attributes.training import (
    Settings,
    Standardised,
    binary_temperature,
    calibrate,
    expected_calibration_error,
    fit,
    loss,
    measure,
    minimise,
)

SCHEMA = Schema([Discrete("side"), Continuous("height", -10, 10, sigma=1.0)])


def data(n: int, noise: float = 0.0) -> tuple[torch.Tensor, torch.Tensor]:
    """side is yes where w0 > 3; height is 2 (w1 - 3) plus noise, in its scaled form."""
    rng = torch.Generator().manual_seed(0)
    w = torch.randn(n, 4, generator=rng) + 3
    yes = (w[:, 0] > 3).float()
    height = (2 * (w[:, 1] - 3) + noise * torch.randn(n, generator=rng) + 10) / 20
    return w, torch.stack([1 - yes, yes, height], dim=1)


def untrained(nets: int = 1) -> MlpHeads:
    return MlpHeads(SCHEMA, 4, torch.ones(nets, 2)).initialise(torch.Generator().manual_seed(0))


@pytest.fixture(scope="module")
def trained() -> MlpHeads:
    heads = untrained(2)
    w, y = data(6000, noise=1.0)
    fit(heads, w[:4000], y[:4000], Settings(epochs=25, batch=128))
    calibrate(heads, w[4000:], y[4000:])
    return heads


def test_it_learns(trained: MlpHeads) -> None:
    w, y = data(1000)
    figures = measure(trained, w, y)
    assert figures["side"]["accuracy"] > 0.97
    assert figures["height"]["mae"] < 0.3
    assert figures["height"]["r2"] > 0.97


def test_sigma_is_the_residual_in_natural_units(trained: MlpHeads) -> None:
    """Labels have noise of one unit; the network can add only a little."""
    height = trained.schema["height"]
    assert isinstance(height, Continuous)
    assert 0.95 < height.sigma < 1.2


def test_loss_is_the_papers() -> None:
    heads = untrained().requires_grad_(False)
    w, y = data(64)
    logits = heads.logits(w)[0]
    cross_entropy = torch.nn.functional.cross_entropy(logits[:, :2], y[:, :2])
    energy = ((logits[:, 2] - y[:, 2]) ** 2 / (2 * 0.1**2)).mean()
    assert float(loss(heads, w, y)) == pytest.approx(float(cross_entropy + energy), rel=1e-5)


def test_soft_labels_stay_soft() -> None:
    """The best constant answer to labels of 0.8 is a probability of 0.8."""
    heads = untrained()
    w = torch.zeros(256, 4) + torch.randn(256, 4, generator=torch.Generator().manual_seed(1)) * 1e-3
    y = torch.tensor([[0.2, 0.8, 0.5]]).expand(256, -1)
    fit(heads, w, y, Settings(epochs=120, batch=64, weight_decay=0.0))
    assert float(heads(w)[:, 1].exp().mean()) == pytest.approx(0.8, abs=0.01)


def test_unknown_labels_are_left_out() -> None:
    heads = untrained().requires_grad_(False)
    w, y = data(100)
    partly = y.clone()
    partly[50:, 2] = math.nan
    known = loss(heads, w[:50], y[:50])
    side = torch.nn.functional.cross_entropy(heads.logits(w)[0][:, :2], y[:, :2])
    side_known = torch.nn.functional.cross_entropy(heads.logits(w[:50])[0][:, :2], y[:50, :2])
    assert float(loss(heads, w, partly)) == pytest.approx(float(known - side_known + side), rel=1e-5)


def test_standardisation_folds_into_the_first_layer() -> None:
    heads = untrained(3).requires_grad_(False)
    w, _ = data(50)
    standardise = Standardised.of(w)
    before = heads.logits(standardise(w))
    standardise.fold_into(heads)
    assert torch.allclose(heads.logits(w), before, atol=1e-4)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_a_known_temperature_is_found(temperature: float) -> None:
    """Labels drawn from sigmoid(l / T); the estimate's standard error is about 3 % here."""
    rng = torch.Generator().manual_seed(4)
    logits = 3 * torch.randn(20_000, generator=rng)
    labels = (torch.rand(20_000, generator=rng) < (logits / temperature).sigmoid()).float()
    assert float(binary_temperature(logits, labels)) == pytest.approx(temperature, rel=0.1)


@pytest.mark.parametrize("temperature", [0.5, 3.0])
def test_heads_find_the_temperature_of_their_labels(temperature: float) -> None:
    """The same through the networks of a head file."""
    heads = untrained().requires_grad_(False)
    heads.weights[-1].mul_(30)
    rng = torch.Generator().manual_seed(5)
    w = torch.randn(20_000, 4, generator=rng)
    yes = torch.rand(len(w), generator=rng) < (heads.logits(w)[0][:, :2] / temperature).softmax(dim=1)[:, 1]
    calibrate(heads, w, torch.stack([~yes, yes, torch.full_like(yes, False)], dim=1).float())
    assert float(heads.temperature[0]) == pytest.approx(temperature, rel=0.15)


def test_minimise() -> None:
    assert minimise(lambda x: (x - 1.234) ** 2) == pytest.approx(1.234, abs=1e-4)


def test_calibration_error() -> None:
    """Confident at 0.9 and right in 0.6 of the cases: an error of 0.3, and none when right in 0.9."""
    confidence = torch.full((1000,), 0.9)
    assert expected_calibration_error(confidence, torch.arange(1000) < 600) == pytest.approx(0.3, abs=1e-5)
    assert expected_calibration_error(confidence, torch.arange(1000) < 900) == pytest.approx(0.0, abs=1e-5)
