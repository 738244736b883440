"""Rounds that look for what is rare, and weights that make up for it, against quadrature."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

import lace
from lace.attributes.heads import FunctionHeads, MlpHeads
from lace.attributes.schema import Discrete, Schema
from lace.learning import draws
from lace.learning.rounds import POOL, Chooser, Round, choose, is_rare, read_rounds, weights
from tests.conftest import within

# P(z0 > 2) of a standard normal.
RATE = 0.5 * math.erfc(2 / math.sqrt(2))


def heads_that_lean(sign: float) -> MlpHeads:
    """A network whose p(yes) rises with z0: one path of leaky ReLUs carries 12 z0 - 24 to the logit of yes."""
    heads = MlpHeads(Schema([Discrete("rare")]), 8, torch.ones(1, 1))
    for weight in heads.weights:
        weight.data.zero_()
    heads.weights[0].data[0, 0, 0] = 12 * sign
    heads.weights[1].data[0, 0, 0] = 1
    heads.weights[2].data[0, 0, 0] = 1
    heads.weights[3].data[0, 0, 1] = 1
    heads.biases[3].data[0, 0, 1] = -24
    return heads.requires_grad_(False)


@pytest.fixture
def chooser() -> Chooser:
    """Even addresses are judged by heads that know the word, odd ones by heads that have it backwards."""
    return Chooser((heads_that_lean(1.0), heads_that_lean(-1.0)), torch.tensor([1 - RATE, RATE]))


def test_a_round_labels_as_many_as_were_asked_for(toy: lace.Model, chooser: Chooser) -> None:
    one = choose(chooser, 1000, 200, lambda index: draws.latents(toy.generator, index), toy.device)
    index, chance = one.taken(lambda index: draws.latents(toy.generator, index), toy.device)
    assert (one.first, one.count) == (1000, 200 * POOL)
    assert within(len(index), 200, math.sqrt(200))
    assert int(index.min()) >= 1000
    assert int(index.max()) < 1000 + 200 * POOL
    assert torch.equal(index, index.unique())
    w = draws.latents(toy.generator, index)
    assert torch.allclose(chance, one.chance(index, w))
    # Where the heads know the word, half of what is labelled is of either class, the other half as it comes:
    # a quarter of it has the word, in place of one in 44.
    known = (w[index % 2 == 0, 0] > 2).float()
    truth = (0.5 + 0.25 / RATE) * RATE / ((0.5 + 0.25 / RATE) * RATE + (0.5 + 0.25 / (1 - RATE)) * (1 - RATE))
    assert within(float(known.mean()), truth, math.sqrt(truth * (1 - truth) / len(known)) + 0.02)


def test_weighted_means_are_those_of_all_draws(toy: lace.Model, chooser: Chooser) -> None:
    """Whatever the chooser believes: 12 sets of rounds, each with a base rate and a second moment of its own."""
    means, moments = [], []
    for k in range(12):
        first = 10**6 * (k + 1)
        rounds = [Round(first, 500)]
        rounds.append(choose(chooser, first + 500, 150, lambda i: draws.latents(toy.generator, i), toy.device))
        index = torch.cat([one.taken(lambda i: draws.latents(toy.generator, i), toy.device)[0] for one in rounds])
        w = draws.latents(toy.generator, index)
        v = weights([(one, one.count) for one in rounds], index, w).double()
        considered = sum(one.count for one in rounds)
        means.append(float((v * (w[:, 0] > 2)).sum() / considered))
        moments.append(float((v * w[:, 1].square()).sum() / considered))
    for found, truth in ((means, RATE), (moments, 1.0)):
        spread = torch.tensor(found).std() / math.sqrt(len(found))
        assert within(sum(found) / len(found), truth, float(spread))


def test_a_round_reads_back(tmp_path: Path, toy: lace.Model, chooser: Chooser) -> None:
    latents = lambda index: draws.latents(toy.generator, index)  # noqa: E731
    rounds = [Round(0, 100), choose(chooser, 100, 20, latents, toy.device)]
    for number, one in enumerate(rounds):
        one.save(tmp_path, number)
    again = read_rounds(tmp_path)
    assert [(one.first, one.count) for one in again] == [(0, 100), (100, 20 * POOL)]
    for before, after in zip(rounds, again, strict=True):
        assert torch.equal(before.taken(latents, toy.device)[0], after.taken(latents, toy.device)[0])


def test_rare_is_a_tenth_of_yes_and_no() -> None:
    seen = torch.tensor([100, 10])
    assert is_rare(Discrete("a"), torch.tensor([0.92, 0.08]), seen)
    assert not is_rare(Discrete("a"), torch.tensor([0.88, 0.12]), seen)
    assert not is_rare(Discrete("a"), torch.tensor([0.92, 0.08]), torch.tensor([100, 5]))


def test_labelled_draws_have_a_seed_and_a_psi_of_their_own(ffhq: lace.Model) -> None:
    index = torch.arange(3)
    w, mean = draws.latents(ffhq.generator, index), ffhq.generator.w_mean
    full = ffhq.generator.mapping(lace.rng.normal(draws.SEED, index, 512))
    psi = draws.truncation(index)
    assert bool(((psi >= 0.5) & (psi <= 1)).all())
    assert torch.allclose(w - mean, psi[:, None] * (full - mean), atol=1e-4)


def test_function_generators_have_no_truncation(toy: lace.Model) -> None:
    assert isinstance(toy.heads, FunctionHeads)
    index = torch.arange(4)
    assert torch.equal(draws.latents(toy.generator, index), toy.generator.prior(draws.SEED, index))
