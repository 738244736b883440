"""The solver on flows that are known, and its gradients."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from lace.dormand_prince import ERROR, TIMES, WEIGHTS, DormandPrince, endless, march
from lace.errors import ValueRangeError

START = torch.randn(7, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def spring(x: Tensor, t: Tensor, rows: Tensor) -> Tensor:
    """dx/dt = x cos t, so that x(t) = x(0) e^(sin t)."""
    return x * t.cos()[:, None]


@pytest.mark.parametrize("shared", [False, True])
def test_a_flow_in_closed_form(shared: bool) -> None:
    found = DormandPrince(1e-9, 1e-9, shared)(spring, START, 2.0)
    assert torch.allclose(found, START * math.exp(math.sin(2.0)), atol=1e-7)


def test_rows_know_their_place() -> None:
    """Rows of different speeds end at different times of their own steps, and are still told which rows they are."""
    rates = torch.tensor([0.0, 0.1, 1.0, 5.0, 30.0, 0.3, 3.0], dtype=torch.float64)
    found = DormandPrince(1e-9, 1e-9)(lambda x, t, rows: -rates[rows, None] * x, START, 1.0)
    assert torch.allclose(found, START * (-rates).exp()[:, None], atol=1e-7)


def test_rows_are_left_behind_by_halves() -> None:
    """Eleven rows of ever faster speeds: sizes are powers of two, and each is met for one stretch of the way."""
    rates, sizes = 2.0 ** torch.arange(11, dtype=torch.float64), []
    start = torch.ones(11, 2, dtype=torch.float64)

    def speed(x: Tensor, t: Tensor, rows: Tensor) -> Tensor:
        sizes.append(len(x))
        return -rates[rows, None] * (x - t.cos()[:, None])

    found = DormandPrince(1e-6, 1e-6)(speed, start, 1.0)
    # x' = -r (x - cos t) from 1 has x(t) = (r^2 cos t + r sin t + e^(-r t)) / (r^2 + 1).
    truth = (rates**2 * math.cos(1) + rates * math.sin(1) + (-rates).exp()) / (rates**2 + 1)
    assert torch.allclose(found, truth[:, None].expand(11, 2), atol=2e-5)
    assert sizes == sorted(sizes, reverse=True)
    assert set(sizes) == {11, 8, 4, 2, 1}


def test_it_learns_on_the_host_whatever_it_asks() -> None:
    """A step hands over what moved and who is still on the way as tensors of the host, of the rows that tried."""
    solver, rates = DormandPrince(1e-6, 1e-6), torch.tensor([0.1, 40.0, 0.2, 0.3, 50.0], dtype=torch.float64)
    flow = solver.begin(lambda x, t, rows: -rates[rows, None] * x, START[:5])
    tried = 0
    while flow.going.any():
        before = int(flow.going.sum())
        flow, moved = solver.step(lambda x, t, rows: -rates[rows, None] * x, flow, 1.0)
        assert len(moved) == before
        tried += 1
    assert torch.allclose(flow.all, START[:5] * (-rates).exp()[:, None], atol=1e-5)
    assert tried > 10


def test_the_tableau_is_that_of_torchdiffeq() -> None:
    """Its error is Shampine's, so that the tolerances of the paper mean here what they meant there."""
    reason = "torchdiffeq is in the test extra: pip install 'lace[test]'"
    theirs = pytest.importorskip("torchdiffeq._impl.dopri5", reason=reason)._DORMAND_PRINCE_SHAMPINE_TABLEAU
    assert torch.allclose(torch.tensor(ERROR, dtype=torch.float64), theirs.c_error, atol=1e-12)
    assert torch.allclose(torch.tensor(TIMES, dtype=torch.float64), theirs.alpha, atol=1e-12)
    for ours, row in zip(WEIGHTS, theirs.beta, strict=True):
        assert torch.allclose(torch.tensor(ours, dtype=torch.float64), row, atol=1e-12)


def test_gradients_flow_through_the_steps() -> None:
    """d x(1) / d rate of x' = rate x is x(0) e^rate, and d x(1) / d x(0) is e^rate."""
    rate = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    start = START.clone().requires_grad_()
    found = DormandPrince(1e-8, 1e-8)(lambda x, t, rows: rate * x, start, 1.0)
    by_rate, by_start = torch.autograd.grad(found.sum(), (rate, start))
    assert float(by_rate) == pytest.approx(float(START.sum()) * math.exp(0.7), rel=1e-6)
    assert torch.allclose(by_start, torch.full_like(start, math.exp(0.7)), rtol=1e-6)


def test_the_error_falls_with_the_tolerance() -> None:
    truth = START * math.exp(math.sin(2.0))
    errors = [float((DormandPrince(t, t)(spring, START, 2.0) - truth).abs().max()) for t in (1e-3, 1e-5, 1e-7)]
    assert errors == sorted(errors, reverse=True)
    assert all(error < 20 * t for error, t in zip(errors, (1e-3, 1e-5, 1e-7), strict=True))


def test_equal_steps_are_of_the_fifth_order() -> None:
    """Twice as many steps: an error 32 times smaller."""
    truth = START * math.exp(math.sin(2.0))
    few, many = (float((march(spring, START, 2.0, steps) - truth).abs().max()) for steps in (8, 16))
    assert 20 < few / many < 45
    assert many < 1e-6


def test_refusals() -> None:
    for bad in ({"atol": 0.0}, {"rtol": -1.0}):
        with pytest.raises(ValueRangeError):
            DormandPrince(**bad)
    assert "12,000 steps" in str(endless(12_000))
