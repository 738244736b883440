"""CelebA's answers in our words."""

from __future__ import annotations

import pytest
import torch

from lace.attributes.annotators.celeba import HAIR, WORDS, class_probabilities
from lace.attributes.schema import Discrete

COLOURS = Discrete("haircolor", ("black", "brown", "blond", "gray", "other"))


def hair(*answers: float) -> torch.Tensor:
    return class_probabilities(COLOURS, torch.tensor([answers]), HAIR)[0]


def test_hair_is_other_only_where_no_colour_is_likely() -> None:
    assert hair(0.9, 0.3, 0, 0).argmax() == 0
    assert hair(0.1, 0.3, 0, 0).argmax() == 1
    assert hair(0.1, 0.1, 0.05, 0.1).argmax() == 4


def test_hair_by_odds() -> None:
    """Odds 4, 1, 1/4, 1/9 and 1/5, of 5.56 in all."""
    truth = torch.tensor([4, 1, 1 / 4, 1 / 9, 1 / 5])
    assert torch.allclose(hair(0.8, 0.5, 0.2, 0.1), truth / truth.sum(), atol=1e-5)


@pytest.mark.parametrize(("word", "yes"), [("glasses", 0.9), ("beard", 0.7), ("gender", 0.2)])
def test_each_word_has_its_column(word: str, yes: float) -> None:
    names = list(WORDS.values())
    said = {"Eyeglasses": 0.9, "No_Beard": 0.3, "Male": 0.2}
    answers = torch.tensor([[said.get(name, 0.5) for name in names]])
    assert class_probabilities(Discrete(word), answers, names)[0].tolist() == pytest.approx([1 - yes, yes])
