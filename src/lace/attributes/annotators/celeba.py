"""What CelebA's forty yes/no answers say in our words.

yes/no word:  p(yes) = the answer of its column, of "No_Beard" the complement
hair colour:  four independent answers p_k as exclusive classes:  odds p_k / (1 - p_k), and a constant for none of them
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ..schema import Discrete

__all__ = ["HAIR", "WORDS", "class_probabilities"]

WORDS = {
    "smile": "Smiling",
    "glasses": "Eyeglasses",
    "gender": "Male",
    "beard": "No_Beard",
    "bald": "Bald",
    "hat": "Wearing_Hat",
    "bangs": "Bangs",
    "wavyhair": "Wavy_Hair",
    "makeup": "Heavy_Makeup",
    "lipstick": "Wearing_Lipstick",
    "mouthopen": "Mouth_Slightly_Open",
    "earrings": "Wearing_Earrings",
    "goatee": "Goatee",
    "sideburns": "Sideburns",
    "stubble": "5_o_Clock_Shadow",
    "bushybrows": "Bushy_Eyebrows",
    "cheekbones": "High_Cheekbones",
}
# Black, brown, blond, gray, as the classes of haircolor are ordered.
HAIR = ("Black_Hair", "Brown_Hair", "Blond_Hair", "Gray_Hair")
# CelebA's annotators left a third of all hair unnamed, most of it plainly black or brown: "other" must be clearer than
# even, or two judges agree on 71 % of faces in place of 80 %.
OTHER = 0.2


def class_probabilities(attribute: Discrete, answers: Tensor, names: Sequence[str]) -> Tensor:
    """Class probabilities [N, classes] of one of our words, from answers [N, columns] under CelebA's names."""
    if attribute.name == "haircolor":
        return _hair(torch.stack([answers[:, names.index(name)] for name in HAIR], dim=1))
    column = WORDS[attribute.name]
    yes = answers[:, names.index(column)]
    yes = 1 - yes if column.startswith("No_") else yes
    return torch.stack([1 - yes, yes], dim=1)


def _hair(answers: Tensor) -> Tensor:
    p = answers.clamp(1e-4, 1 - 1e-4)
    odds = torch.cat([p / (1 - p), p.new_full((len(p), 1), OTHER)], dim=1)
    return odds / odds.sum(dim=1, keepdim=True)
