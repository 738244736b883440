"""Particles: their evidence is unbiased, their ends are the posterior, and their intervals can be believed."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lace.errors import UnsatisfiableCondition, ValueRangeError
from lace.samplers.base import Counted, Noise, Target
from lace.samplers.elliptical import Known
from lace.samplers.smc import LEAST, Cloud, Smc, systematic, worth
from tests.conftest import within
from tests.problems import AXIS, DIM, GRID, LOGISTIC, RARE, STEEP, TRAP, normal_density

RUNS = 150


@pytest.fixture(scope="module")
def trapped() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Evidence, claimed standard error of its log, and the share in the right mode, of many runs on a mixture."""
    rows = []
    for seed in range(RUNS):
        samples = Smc(256, 2)(TRAP.target(), 256, seed)
        log, error = samples.info.log_evidence or (math.nan, math.nan)
        rows.append((math.exp(log), error, float((samples.z @ AXIS > 0.5).float().mean())))
    return tuple(torch.tensor(rows, dtype=torch.float64).T)  # type: ignore[return-value]


def standard_error(values: torch.Tensor) -> float:
    return float(values.std()) / math.sqrt(len(values))


def test_evidence_is_unbiased(trapped) -> None:
    evidence, _, _ = trapped
    assert within(float(evidence.mean()), TRAP.evidence(), standard_error(evidence))


def test_the_claimed_error_is_the_error(trapped) -> None:
    """Standard deviations over 150 runs are known to 6 %; the claim may be off by a third."""
    evidence, claimed, _ = trapped
    spread = float(evidence.std() / evidence.mean())
    assert spread / 1.35 < float(claimed.square().mean().sqrt()) < spread * 1.35


def test_both_modes_get_their_weight(trapped) -> None:
    """A walk would keep the half and half of its starts."""
    density = normal_density(GRID) * TRAP.log_prob(GRID).exp()
    truth = float(density[GRID > 0.5].sum() / density.sum())
    _, _, right = trapped
    assert within(float(right.mean()), truth, standard_error(right))
    assert abs(truth - 0.5) > 0.05


def test_a_rare_conjunction() -> None:
    """P(c) is 4e-5; each axis ends at its own posterior."""
    logs, means = [], []
    for seed in range(30):
        samples = Smc(512)(RARE.target(), 512, seed)
        logs.append(math.exp(samples.info.log_evidence[0]))
        means.append(samples.z[:, :4].mean(dim=0))
    evidence, axes = torch.tensor(logs, dtype=torch.float64), torch.stack(means).double()
    assert within(float(evidence.mean()), RARE.evidence(), standard_error(evidence))
    for k, part in enumerate(RARE.parts):
        assert within(float(axes[:, k].mean()), part.posterior()[0], standard_error(axes[:, k]))


def test_tempered_targets() -> None:
    means, truth = [], STEEP.posterior(3.0)[0]
    for seed in range(30):
        x = Smc(256, 6, gamma=3.0)(Target(DIM, lambda z: STEEP.log_prob(z[:, 0]), lambda z: z[:, 0]), 256, seed).z[:, 0]
        means.append(float(x.mean()))
    found = torch.tensor(means)
    assert within(float(found.mean()), truth, standard_error(found))


def test_ladders_keep_the_weights_worth_something() -> None:
    """Along the scouts' ladder fresh particles' weights are worth about the fraction asked for."""
    few, many = Smc(400, survivors=0.3), Smc(400, survivors=0.8)
    lengths = [s(RARE.target(), 1).info.evaluations for s in (few, many)]
    assert lengths[0] < lengths[1] / 2


def test_more_results_than_particles() -> None:
    samples = Smc(100)(LOGISTIC.target(), 250, seed=3)
    assert samples.z.shape == (250, DIM)
    assert len(samples.z.unique(dim=0)) > 240
    assert torch.equal(Smc(100)(LOGISTIC.target(), 30, seed=3).z, samples.z[:30])


@given(
    logs=st.lists(st.floats(-30, 30), min_size=2, max_size=200),
    u=st.floats(0, 1, exclude_min=True),
)
def test_systematic_resampling_keeps_the_shares(logs: list[float], u: float) -> None:
    """Each particle gets its expected number of copies, rounded up or down."""
    weights = torch.tensor(logs, dtype=torch.float64)
    counts = torch.bincount(systematic(weights, u), minlength=len(logs))
    assert int(counts.sum()) == len(logs)
    assert ((counts - len(logs) * weights.softmax(dim=0)).abs() < 1 + 1e-6).all()


def test_systematic_resampling_is_unbiased() -> None:
    weights = torch.tensor([0.5, 2.0, 1.0, 0.1]).log()
    offsets = (torch.arange(10_000) + 0.5) / 10_000
    counts = sum(torch.bincount(systematic(weights, float(u)), minlength=4) for u in offsets) / 10_000
    assert torch.allclose(counts, 4 * weights.softmax(dim=0), atol=1e-3)


def test_worth() -> None:
    assert worth(torch.zeros(40)) == pytest.approx(40)
    assert worth(torch.tensor([0.0, -1e9])) == pytest.approx(1)
    assert worth(torch.tensor([2.0, 1.0]).log()) == pytest.approx(9 / 5)


def test_what_nothing_obeys_is_refused() -> None:
    never = Target(DIM, lambda z: torch.full((len(z),), -math.inf), lambda z: -torch.ones(len(z)))
    far = Target(DIM, lambda z: -8 * (z[:, 0] - 12).square(), lambda z: z[:, 0])
    for target in (never, far):
        with pytest.raises(UnsatisfiableCondition):
            Smc(100)(target, 4)


def test_half_the_prior_may_be_impossible() -> None:
    """log p = -inf where x < 0: P(c) = 1/2, and no result lies there."""
    half = Target(DIM, lambda z: torch.where(z[:, 0] > 0, 0.0, -math.inf), lambda z: z[:, 0])
    samples = Smc(1000)(half, 500)
    assert float(samples.z[:, 0].min()) > 0
    assert math.exp(samples.info.log_evidence[0]) == pytest.approx(0.5, abs=4 * 0.5 / math.sqrt(1000))


@pytest.mark.parametrize("bad", [{"particles": 10}, {"moves": 0}, {"survivors": 1.0}, {"gamma": 0.0}])
def test_refusals(bad: dict[str, float]) -> None:
    with pytest.raises(ValueRangeError):
        Smc(**bad)


def test_a_condition_that_is_the_same_everywhere_has_its_own_probability() -> None:
    """Every particle weighs 0.3: their mean is 0.3 without any error, over as many rungs as there are."""
    target = Target(4, lambda z: torch.full((len(z),), math.log(0.3)), lambda z: z[:, 0])
    for particles in (103, 200, 1000):
        info = Smc(particles)(target, 10, seed=1).info
        assert info.log_evidence == pytest.approx((math.log(0.3), 0.0), abs=1e-6)


def test_scouts_and_particles_share_no_noise() -> None:
    """A ladder fitted to the very particles that climb it would bias their estimate: also under the scouts' seed."""
    seen: list[torch.Tensor] = []

    def log_prob(z: torch.Tensor) -> torch.Tensor:
        seen.append(z)
        return torch.zeros(len(z))

    Smc(200)(Target(4, log_prob, log_prob), 10, seed=0)
    particles = next(z for z in seen if len(z) == 200)
    assert not torch.isin(seen[0], particles).any()


@pytest.mark.parametrize("power", [0.3, 1.0, 2.5])
@pytest.mark.parametrize(("here", "there"), [(-0.2, -0.9), (-0.9, -0.2), (-1.0, -1.0), (-math.inf, -math.inf)])
def test_moves_are_taken_as_often_as_the_ratio_says(power: float, here: float, there: float) -> None:
    """min(1, [p(c|z') / p(c|z)]^b) of them; a factor of 1.02 in the exponent would show. Nowhere leads nowhere."""
    n = 200_000
    target = Target(2, lambda z: torch.full((len(z),), there), lambda z: z[:, 0])
    cloud = Cloud(Counted(target), Known(torch.zeros(n, 2), torch.full((n,), here)), Noise(3, torch.arange(n), 0))
    cloud.power = power
    truth = 0.0 if here == -math.inf else min(1.0, math.exp(power * (there - here)))
    assert within(float(cloud.move(0.5).double().mean()), truth, math.sqrt(truth * (1 - truth) / n))


def test_a_ladder_is_climbed_by_scouts_once() -> None:
    """Every seed follows the same one, and what is remembered draws what a new target draws."""
    smc, target = Smc(200, 2), RARE.target()
    first, again, other = (smc(target, 50, seed) for seed in (1, 1, 2))
    assert torch.equal(first.z, again.z)
    assert first.info.log_evidence == again.info.log_evidence
    rungs = len(smc.ladder(Counted(target)))
    # One evaluation for each particle at the start, and one for each of its moves.
    assert again.info.evaluations == other.info.evaluations == 200 * (1 + 2 * rungs)
    assert first.info.evaluations == again.info.evaluations + 100 * (1 + 2 * rungs)
    assert torch.equal(smc(RARE.target(), 50, 2).z, other.z)


def test_each_way_of_climbing_has_its_own_ladder() -> None:
    target = Counted(RARE.target())
    few, many, strict = (smc.ladder(target) for smc in (Smc(200), Smc(200, survivors=0.9), Smc(200, gamma=4.0)))
    assert len(few) < len(many)
    assert few[-1].power == many[-1].power == 1
    assert strict[-1].power == 4


@pytest.mark.parametrize("gamma", [1.0, 30.0])
def test_ladders_rise_and_turns_have_bounds(gamma: float) -> None:
    """The condition is narrow in many directions, at the end so much that hardly any turn is taken."""
    narrow = Target(16, lambda z: -5 * z.square().sum(dim=1), lambda z: z[:, 0])
    ladder = Smc(200, gamma=gamma).ladder(Counted(narrow))
    powers, turns = [rung.power for rung in ladder], [rung.turn for rung in ladder]
    assert powers == sorted(set(powers))
    assert powers[-1] == gamma
    assert all(LEAST <= turn <= math.pi / 2 for turn in turns)
    assert turns[-1] < turns[0]


def test_nothing_in_the_way_makes_all_turns_right_angles() -> None:
    free = Target(4, lambda z: torch.zeros(len(z)), lambda z: z[:, 0])
    smc = Smc(100)
    assert [rung.turn for rung in smc.ladder(Counted(free))] == [math.pi / 2]
    assert smc(free, 10).info.acceptance == 1


def test_scouts_learn_how_far_to_turn() -> None:
    """Of moves under a narrow condition about three in ten are taken."""
    narrow = Target(8, lambda z: -20 * z.square().sum(dim=1), lambda z: z[:, 0])
    assert 0.2 < Smc(1000)(narrow, 10).info.acceptance < 0.45
