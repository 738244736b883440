"""Combinations are asked for and counted as they should be; a reference has their shares."""

from __future__ import annotations

import pytest
import torch

import lace
from lace.attributes.schema import Discrete
from lace.bench.gallery import Asked, Gallery, Wall
from lace.conditions.formula import Near, leaves
from lace.metrics.jury import Jury, Verdict

NAMES = ("Male", "Eyeglasses")
WORDS = (Discrete("gender", ("female", "male")), Discrete("glasses"))


def verdict(male: list[int], glasses: list[int], features: torch.Tensor | None = None) -> Verdict:
    said = torch.tensor([male, glasses]).T.float()
    return Verdict(
        NAMES, {"labeller": said, "independent": 1 - said}, torch.zeros(len(male), 3) if features is None else features
    )


def asked(*shares: float) -> Asked:
    return Asked(WORDS, torch.tensor(shares or (0.25,) * 4))


def test_numbers_follow_the_combinations() -> None:
    found = asked().number([torch.tensor([0, 0, 1, 1]), torch.tensor([0, 1, 0, 1])])
    assert found.tolist() == [0, 1, 2, 3]
    assert asked().combinations == [("female", "no"), ("female", "yes"), ("male", "no"), ("male", "yes")]
    assert list(asked().sentences())[2] == "gender=male & glasses=no"


def test_right_is_what_a_judge_sees_of_all_that_was_asked() -> None:
    """Asked for (female, no) twice, nothing, (male, no) once, (male, yes) once; B sees the opposite of everything."""
    nothing = verdict([], [])
    wall = Wall(asked(), [verdict([0, 1], [0, 0]), nothing, verdict([1], [0]), verdict([0], [0])])
    assert wall.right("labeller").tolist() == [1, 0, 1, 0]
    assert wall.right("independent").tolist() == [0, 0, 0, 1]


def test_a_reference_has_the_shares_that_are_asked_for(toy: lace.Model) -> None:
    """Three draws of one combination and one of another, asked for half and half: the mean of the two means."""
    features = torch.tensor([[0.0, 0, 0], [3, 0, 0], [6, 0, 0], [0, 8, 0]])
    gallery = Gallery(toy, Jury({}), verdict([0, 0, 0, 1], [0, 0, 0, 1], features), verdict([], []))
    mean = gallery.reference(asked(0.5, 0, 0, 0.5)).mean
    assert torch.allclose(mean, torch.tensor([1.5, 4, 0], dtype=torch.float64))


def test_the_labelling_judge_chooses_what_it_finds_right(toy: lace.Model) -> None:
    gallery = Gallery(toy, Jury({}), verdict([], []), verdict([1, 0, 0, 1, 0], [0, 0, 1, 1, 0]))
    wall = gallery.chosen(asked(), 4)
    assert wall.right("labeller").tolist() == [1, 1, 1, 1]


def test_a_number_is_asked_for_at_values(toy: lace.Model) -> None:
    """Draws count for the nearest value: tone is N(0, 1), so half of them are nearer to 1 than to -1."""
    found = Asked.uniform(toy, "bright", tone=(-1.0, 1.0))
    assert list(found.sentences())[1] == "bright=no & tone=1"
    asked_for = [leaf for sentence in found.sentences() for leaf in leaves(toy[sentence]) if isinstance(leaf, Near)]
    assert [leaf.value for leaf in asked_for] == [-1, 1, -1, 1]
    shares = found.as_the_model_draws(toy).shares.reshape(2, 2).sum(dim=0)
    assert shares.tolist() == pytest.approx([0.5, 0.5], abs=4 * 0.5 / 2**7)


def test_shares_as_the_model_draws(ffhq: lace.Model) -> None:
    found = Asked.uniform(ffhq, "glasses", "smile").as_the_model_draws(ffhq)
    glasses = ffhq.bank.readings[:, ffhq.schema.slice("glasses")][:, 1] > -0.6931
    smile = ffhq.bank.readings[:, ffhq.schema.slice("smile")][:, 1] > -0.6931
    assert float(found.shares[3]) == pytest.approx(float((glasses & smile).float().mean()), abs=1e-3)
    assert float(found.shares.sum()) == pytest.approx(1)
    assert sum(found.counts(1000)) == pytest.approx(1000, abs=2)
    for sentence in found.sentences():
        assert [leaf.attribute.name for leaf in leaves(ffhq[sentence])] == ["glasses", "smile"]
