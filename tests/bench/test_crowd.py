"""A crowd's walks go where walks of one combination go alone."""

from __future__ import annotations

import torch

import lace
from lace.bench.contest import Contender, drawn
from lace.bench.crowd import Crowd
from lace.bench.gallery import Asked
from lace.samplers.langevin import Langevin


def test_each_walk_has_the_condition_of_its_combination(ffhq: lace.Model) -> None:
    asked = Asked.uniform(ffhq, "glasses", "smile")
    crowd, z = Crowd(ffhq, asked, [2, 0, 1, 3]), ffhq.generator.prior(3, torch.arange(6))
    sentences = list(asked.sentences())
    alone = torch.cat(
        [ffhq.target(sentences[k]).log_prob(z[rows]) for k, rows in ((0, slice(2)), (2, slice(2, 3)), (3, slice(3, 6)))]
    )
    assert torch.allclose(crowd.log_prob_of(z, torch.arange(6)), alone, atol=1e-4)
    assert torch.allclose(crowd.log_prob_of(z[4:], torch.tensor([4, 5])), alone[4:], atol=1e-4)


def test_numbers_are_energies(toy: lace.Model) -> None:
    """bright=yes & tone=1 as both readings have it, the gradient included."""
    asked, z = Asked.uniform(toy, "bright", tone=(-1.0, 1.0)), toy.generator.prior(3, torch.arange(4)).requires_grad_()
    found = Crowd(toy, asked, [0, 0, 0, 4]).log_prob_of(z, None)
    expected = toy.target("bright & tone=1").log_prob(z)
    assert torch.allclose(found, expected, atol=1e-4)
    slopes = [torch.autograd.grad(value.sum(), z)[0] for value in (found, expected)]
    assert torch.allclose(*slopes, atol=1e-3)


def test_a_contest_of_walks_draws_all_combinations_at_once(toy: lace.Model) -> None:
    """The first combination's walks have the addresses that they have alone; the others follow them."""
    asked, walk = Asked.uniform(toy, "bright"), Langevin(20)
    parts = drawn(Contender("langevin", {"sampler": walk}), asked, [3, 4], toy)
    assert [len(part.w) for part in parts] == [3, 4]
    assert [part.evaluations for part in parts] == [60, 80]
    assert torch.allclose(parts[0].w, walk(toy.target("bright=no"), 3, 1).z, atol=1e-5)
    assert float(parts[0].w[:, 0].mean()) < float(parts[1].w[:, 0].mean())
