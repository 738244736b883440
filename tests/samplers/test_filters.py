"""Rejection and level sets: exact on targets in closed form, and the same however the work is cut up."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from lace import rng
from lace.errors import UnsatisfiableCondition, ValueRangeError
from lace.samplers.base import MANY, Filter, Progress, Sampler, Target
from lace.samplers.level_set import LevelSet, threshold
from lace.samplers.rejection import Rejection
from tests.conftest import within
from tests.problems import ALL, AXIS, DIM, GAUSSIAN, LOGISTIC, Problem

N = 4000


def check_moments(z: Tensor, mean: float, sd: float) -> None:
    """Along the axis the known moments, across it a standard normal; within 4 standard errors."""
    x, n = z @ AXIS, len(z)
    assert within(float(x.mean()), mean, sd / math.sqrt(n))
    fourth = float((x - mean).pow(4).mean())
    assert within(float((x - mean).square().mean()), sd**2, math.sqrt((fourth - sd**4) / n))
    across = z - x[:, None] * AXIS
    assert within(float(across.square().sum(dim=1).mean()), DIM - 1, math.sqrt(2 * (DIM - 1) / n))
    assert within(float(across.mean()), 0, math.sqrt((DIM - 1) / DIM / (n * DIM)))


@pytest.mark.parametrize("problem", ALL, ids=lambda problem: problem.name)
@pytest.mark.parametrize("gamma", [1.0, 4.0])
def test_rejection_draws_the_tempered_posterior(problem: Problem, gamma: float) -> None:
    samples = Rejection(gamma, max_draws=2**22)(problem.target(), N, seed=1)
    check_moments(samples.z, *problem.posterior(gamma))


def test_gaussian_evidence_in_closed_form() -> None:
    """The quadrature of the problems themselves, against the textbook."""
    variance = 0.5**2
    mean, sd = GAUSSIAN.posterior()
    assert mean == pytest.approx(1.5 / (1 + variance), abs=1e-9)
    assert sd == pytest.approx(math.sqrt(variance / (1 + variance)), abs=1e-9)


@pytest.mark.parametrize("problem", ALL, ids=lambda problem: problem.name)
def test_acceptance_is_the_evidence(problem: Problem) -> None:
    info = Rejection(chunks=(2000, 2000))(problem.target(), 500, seed=2).info
    p = problem.evidence()
    assert within(info.acceptance, p, math.sqrt(p * (1 - p) / info.evaluations))


@pytest.mark.parametrize("gamma", [0.5, 1.0, 2.0])
def test_a_known_probability_is_the_share_kept(gamma: float) -> None:
    """Of draws that obey with p = 0.3 each, 0.3^gamma are kept: an exponent a hundredth off would show."""
    n = 300_000
    target = Target(1, lambda z: torch.full((len(z),), math.log(0.3)), lambda z: z[:, 0])
    share = float(Rejection(gamma).step(target, 6, torch.arange(n)).double().mean())
    assert within(share, 0.3**gamma, math.sqrt(0.3**gamma * (1 - 0.3**gamma) / n))


@pytest.mark.parametrize("problem", ALL, ids=lambda problem: problem.name)
def test_level_sets_draw_the_cut_off_prior(problem: Problem) -> None:
    level = 0.1
    samples = LevelSet(level)(problem.target(), N, seed=3)
    assert float(problem.margin(samples.z @ AXIS).min()) >= level
    check_moments(samples.z, *problem.level(level))


@pytest.mark.parametrize("q", [1.0, 0.5, 0.1, 0.01])
def test_threshold_keeps_the_fraction(q: float) -> None:
    margins = LOGISTIC.margin(torch.randn(100_000, generator=torch.Generator().manual_seed(0)))
    level = threshold(margins, q)
    assert (margins >= level).sum().item() == pytest.approx(q * (margins > 0).sum().item(), abs=1.01)
    assert level > 0


def test_threshold_refusals() -> None:
    with pytest.raises(UnsatisfiableCondition):
        threshold(torch.tensor([-1.0, -2.0]), 0.5)
    for q in (0.0, -1.0, 1.5):
        with pytest.raises(ValueRangeError):
            threshold(torch.ones(3), q)


SAMPLERS = [Rejection, lambda **options: LevelSet(0.2, **options)]


@pytest.mark.parametrize("make", SAMPLERS, ids=["rejection", "level-set"])
@pytest.mark.parametrize("chunk", [1, 3, 100, 1024, 50_000])
def test_the_first_n_do_not_depend_on_chunks(make: type[Sampler], chunk: int) -> None:
    target, n = LOGISTIC.target(), 3 if chunk == 1 else 20
    whole = make()(target, 40, seed=5)
    part = make(chunks=(chunk, chunk))(target, n, seed=5)
    assert torch.equal(part.z, whole.z[:n])
    assert part.addresses == whole.addresses[:n]


@pytest.mark.parametrize("make", SAMPLERS, ids=["rejection", "level-set"])
@pytest.mark.parametrize("share", [0.9, 0.2, 1e-3, 1e-12])
def test_what_somebody_knows_of_the_share_changes_nothing(make: type[Sampler], share: float) -> None:
    """Right or wrong, it only decides how many draws are tried at once."""
    plain, told = (make(share=share)(LOGISTIC.target(), 30, seed=5) for share in (None, share))
    assert torch.equal(told.z, plain.z)
    assert told.addresses == plain.addresses


class Counting(Filter):
    """Keep one draw in ``every``, and remember how many are tried at once."""

    name = "counting"

    def __init__(self, every: int, **options: Any) -> None:
        super().__init__(**options)
        self.every, self.sizes = every, []

    def step(self, target: Target, seed: int, index: Tensor) -> Tensor:
        self.sizes.append(len(index))
        return index % self.every == 0


@given(
    every=st.integers(1, 500),
    n=st.integers(1, 50),
    low=st.integers(1, 5000),
    more=st.integers(0, 20_000),
    share=st.none() | st.floats(1e-9, 1),
)
def test_chunks_keep_their_bounds(every: int, n: int, low: int, more: int, share: float | None) -> None:
    sampler = Counting(every, chunks=(low, low + more), share=share)
    samples = sampler(LOGISTIC.target(), n)
    assert [address.index for address in samples.addresses] == list(range(0, n * every, every))
    assert all(low <= size <= low + more for size in sampler.sizes)


@given(every=st.integers(1, 20_000), n=st.integers(1, 50), most=st.integers(1, 100_000))
def test_no_more_draws_are_tried_than_allowed(every: int, n: int, most: int) -> None:
    sampler = Counting(every, max_draws=most, share=0.5)
    if (n - 1) * every < most:
        sampler(LOGISTIC.target(), n)
    else:
        with pytest.raises(UnsatisfiableCondition):
            sampler(LOGISTIC.target(), n)
    assert sum(sampler.sizes) <= most


def test_a_share_that_is_right_takes_one_chunk() -> None:
    """Two draws in a thousand: ten are found at once, where they must else be felt for."""
    felt, told = Counting(500), Counting(500, share=1 / 500)
    for sampler in (felt, told):
        sampler(LOGISTIC.target(), 10)
    assert len(told.sizes) == 1 < len(felt.sizes)
    assert told.sizes[0] < 2 * 500 * 10


def drafted(error: float, seen: list[Tensor]) -> Target:
    """The logistic target, with a draft that says up to ``error`` more; whom it is asked about itself."""
    target, draft = LOGISTIC.target(), LOGISTIC.target()

    def rough(reading: Callable[[Tensor], Tensor]) -> Callable[[int, Tensor], Tensor]:
        return lambda seed, index: reading(target.prior(seed, index)) + error * rng.uniform(seed, index, stream=99)

    def watched(reading: Callable[[Tensor], Tensor]) -> Callable[[int, Tensor], Tensor]:
        return lambda seed, index: seen.append(index) or reading(target.prior(seed, index))

    draft.log_prob_at, draft.margin_at = rough(target.log_prob), rough(target.margin)
    target.log_prob_at, target.margin_at = watched(target.log_prob), watched(target.margin)
    target.draft = draft
    return target


DEMANDING = [lambda **options: Rejection(4.0, **options), lambda **options: LevelSet(3.0, **options)]


@pytest.mark.parametrize("make", DEMANDING, ids=["rejection", "level-set"])
def test_a_rough_draft_loses_nobody(make: type[Sampler]) -> None:
    """It rules out most draws, and none of those that are kept."""
    seen: list[Tensor] = []
    drafting = make(chunks=(MANY, 2 * MANY))
    samples, plain = drafting(drafted(0.9, seen), 300, seed=5), make()(LOGISTIC.target(), 300, seed=5)
    assert samples.addresses == plain.addresses
    assert torch.equal(samples.z, plain.z)
    assert sum(map(len, seen)) < 0.5 * samples.info.evaluations


class Doubtful(Filter):
    """Keep what is neither likely nor unlikely."""

    name = "doubtful"

    def step(self, target: Target, seed: int, index: Tensor) -> Tensor:
        return (target.log_prob_at(seed, index) + 1).abs() < 0.1


@pytest.mark.parametrize(
    "sampler", [Rejection(chunks=(MANY - 1, MANY - 1)), Doubtful(chunks=(MANY, MANY))], ids=["few draws", "own test"]
)
def test_a_draft_has_no_say(sampler: Sampler) -> None:
    """Not of few draws, and not where more is not better."""
    samples, plain = (sampler(target, 200, seed=5) for target in (drafted(-1e6, []), LOGISTIC.target()))
    assert samples.addresses == plain.addresses


@pytest.mark.parametrize("make", SAMPLERS, ids=["rejection", "level-set"])
def test_an_address_holds_its_sample(make: type[Sampler]) -> None:
    target = LOGISTIC.target()
    samples = make()(target, 10, seed=8)
    for address, z in zip(samples.addresses, samples.z, strict=True):
        assert torch.equal(target.prior(address.seed, torch.tensor([address.index]))[0], z)


def test_seeds_are_different_draws() -> None:
    a, b = (Rejection()(LOGISTIC.target(), 20, seed=seed) for seed in (0, 1))
    assert not torch.equal(a.z, b.z)


def test_a_condition_that_never_holds_ends() -> None:
    never = Target(DIM, lambda z: torch.full((len(z),), -math.inf), lambda z: -torch.ones(len(z)))
    for sampler in (Rejection(max_draws=5000), LevelSet(0.0, max_draws=5000)):
        with pytest.raises(UnsatisfiableCondition, match="Only 0 of 4 were found among 5,000 draws"):
            sampler(never, 4)


def test_the_callback_sees_progress() -> None:
    seen: list[Progress] = []
    samples = Rejection(chunks=(100, 100))(LOGISTIC.target(), 10, seed=0, callback=seen.append)
    assert [p.evaluations for p in seen] == list(range(100, samples.info.evaluations + 1, 100))
    assert [p.done for p in seen] == sorted(p.done for p in seen)
    assert seen[-1].done == seen[-1].total == 10


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan])
def test_gamma_must_be_positive(bad: float) -> None:
    with pytest.raises(ValueRangeError):
        Rejection(gamma=bad)
