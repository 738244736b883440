"""The paper's flow: closed forms, another implementation, and walks that do not feel their neighbours."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from lace.errors import ValueRangeError
from lace.samplers.base import Target
from lace.samplers.euler import Euler
from lace.samplers.ode import Ode
from lace.samplers.schedule import Schedule
from tests.problems import ALL, AXIS, DIM, GAUSSIAN, LOGISTIC, Problem

torchdiffeq = pytest.importorskip("torchdiffeq", reason="torchdiffeq is in the test extra: pip install 'lace[test]'")
SEED = 21


def starts(n: int) -> Tensor:
    return GAUSSIAN.target().prior(SEED, torch.arange(n))


def test_the_paper_flows_for_5_025() -> None:
    assert Schedule().length == pytest.approx(5.025)
    assert Schedule(duration=2.0).length == pytest.approx(10.05)
    cut = Schedule(end=0.3)
    steps = torch.linspace(0.3, 1, 100_001, dtype=torch.float64)
    assert cut.length == pytest.approx(float(torch.trapezoid(cut.beta(steps) / 2, steps)))


@pytest.mark.parametrize("end", [0.0, 0.9])
def test_gaussian_flow_in_closed_form(end: float) -> None:
    """dx/ds = -(x - 1.5) / 0.25 along the axis; across it nothing moves."""
    schedule = Schedule(end=end)
    z = Ode(1e-6, 1e-6, schedule)(GAUSSIAN.target(), 50, SEED).z
    start = starts(50)
    along = 1.5 + (start @ AXIS - 1.5) * math.exp(-schedule.length / 0.25)
    assert torch.allclose(z @ AXIS, along, atol=1e-4)
    assert torch.allclose(z - (z @ AXIS)[:, None] * AXIS, start - (start @ AXIS)[:, None] * AXIS, atol=1e-4)


def test_how_far_the_paper_and_its_code_go() -> None:
    """Down a slope of one everywhere: the integral of beta / 2 from 0, and from the 0.001 at which the code stops."""
    target = Target(1, lambda z: z[:, 0], lambda z: z[:, 0])
    start = target.prior(SEED, torch.arange(4))
    for sampler, end in ((Ode(), 0.0), (Ode.authors(), 1e-3)):
        way = 0.1 / 2 * (1 - end) + 19.9 / 4 * (1 - end**2)
        assert torch.allclose(sampler(target, 4, SEED).z - start, torch.full((4, 1), way), rtol=0, atol=2e-5)


def reference(problem: Problem, z: Tensor, schedule: Schedule, tolerance: float) -> tuple[Tensor, int]:
    """torchdiffeq's dopri5 on the paper's Eq. 8, and how often it asked for the slope."""
    calls = 0
    target = problem.target()

    def slope(t: Tensor, z: Tensor) -> Tensor:
        nonlocal calls
        calls += 1
        with torch.enable_grad():
            z = z.detach().requires_grad_()
            (gradient,) = torch.autograd.grad(target.log_prob(z).sum(), z)
        return -(0.1 + 19.9 * t) / 2 * gradient

    times = torch.tensor([schedule.duration, schedule.end], dtype=z.dtype)
    return torchdiffeq.odeint(slope, z, times, atol=tolerance, rtol=tolerance, method="dopri5")[-1], calls


@pytest.mark.parametrize("problem", ALL, ids=lambda problem: problem.name)
def test_equals_a_reference_of_tight_tolerance(problem: Problem) -> None:
    start = starts(40)
    truth, _ = reference(problem, start.double(), Schedule(), 1e-10)
    z = Ode(1e-5, 1e-5)(problem.target(), 40, SEED).z
    assert (z - truth).abs().max() < 1e-3


@pytest.mark.parametrize("problem", [LOGISTIC, GAUSSIAN], ids=lambda problem: problem.name)
def test_the_authors_steps_are_torchdiffeqs(problem: Problem) -> None:
    """One step size for the batch: the same ends within the tolerance, for the same number of slopes."""
    flow = Ode.authors()
    truth, calls = reference(problem, starts(64), flow.schedule, 1e-3)
    found = flow(problem.target(), 64, SEED)
    assert (found.z - truth).abs().max() < 5e-3
    assert found.info.evaluations / 64 == calls


def test_a_walk_alone_ends_where_it_ends_in_a_batch() -> None:
    many = Ode()(LOGISTIC.target(), 30, SEED).z
    assert torch.allclose(Ode()(LOGISTIC.target(), 1, SEED).z[0], many[0], atol=1e-5)
    assert torch.allclose(Ode(batch=7)(LOGISTIC.target(), 30, SEED).z, many, atol=1e-5)


def test_walks_of_the_authors_feel_their_neighbours() -> None:
    many, alone = (Ode.authors()(LOGISTIC.target(), n, SEED).z[0] for n in (30, 1))
    assert 1e-5 < float((many - alone).norm()) < 0.05


def test_tolerance_bounds_the_error() -> None:
    """A tolerance is kept at every step; at the end there are some of them, and a tighter one is nearer."""
    truth, _ = reference(LOGISTIC, starts(40).double(), Schedule(), 1e-10)
    tolerances = (1e-2, 1e-3, 1e-4, 1e-5)
    errors = [float((Ode(t, t)(LOGISTIC.target(), 40, SEED).z - truth).abs().max()) for t in tolerances]
    assert errors == sorted(errors, reverse=True)
    assert all(error < 25 * tolerance for error, tolerance in zip(errors, tolerances, strict=True))


@pytest.mark.parametrize("size", [1e-2, 1e-3])
def test_euler_is_the_product_of_its_steps(size: float) -> None:
    """On the Gaussian each step shrinks the distance to the peak by 1 - h beta / 2 / 0.25."""
    z = Euler(size)(GAUSSIAN.target(), 20, SEED).z
    factor = math.prod(1 - size * (20 - 19.9 * k * size) / 2 / 0.25 for k in range(round(1 / size)))
    assert torch.allclose(z @ AXIS, 1.5 + (starts(20) @ AXIS - 1.5) * factor, atol=1e-4)


def test_euler_converges_to_the_flow() -> None:
    truth, _ = reference(LOGISTIC, starts(40).double(), Schedule(), 1e-10)
    errors = [float((Euler(h)(LOGISTIC.target(), 40, SEED).z - truth).abs().max()) for h in (2e-2, 1e-2, 5e-3)]
    assert errors[0] / errors[1] == pytest.approx(2, rel=0.25)
    assert errors[1] / errors[2] == pytest.approx(2, rel=0.25)


def test_the_authors_euler_takes_one_step() -> None:
    z = Euler.authors()(LOGISTIC.target(), 5, SEED)
    start = starts(5)
    slope = 3 * torch.sigmoid(2 - 3 * (start @ AXIS))
    assert z.info.evaluations == 5
    assert torch.allclose(z.z, start + 10 * slope[:, None] * AXIS, atol=1e-4)


def test_a_flow_without_end_is_refused() -> None:
    nowhere = Target(DIM, lambda z: z.sum(dim=1) * math.nan, lambda z: z[:, 0])
    flow = Ode()
    flow.steps = 50
    with pytest.raises(ValueRangeError, match="larger tolerances"):
        flow(nowhere, 2)


def test_refusals() -> None:
    for bad in ({"beta_min": 0.0}, {"beta_max": 0.01}, {"end": 1.0}, {"end": -0.1}):
        with pytest.raises(ValueRangeError):
            Schedule(**bad)
    for size in (0.0, 2.0, -1.0):
        with pytest.raises(ValueRangeError):
            Euler(size)
    with pytest.raises(ValueRangeError):
        Ode(atol=0)
