"""Which judge speaks for which word of a face, and what their answers say together.

    yes/no words, hair   CelebA's judge; for two of them a second one has half a say, logit p = the mean of both logits:
    smile                and the landmarker's smile, shifted to say yes as often on the labelled faces
    gender               and FaceRes
    age                  the mean of age-v1 and FaceRes
    other numbers        the landmarker

A judge that labelled nothing gives a second opinion where there is one. It reads all yes/no words and hair alone,
trained on other people of CelebA. Age it leaves to FaceRes, which is only half a second opinion, for it had half a say
in the labels. Nothing else has a second instrument.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..schema import Attribute, Discrete
from .celeba import class_probabilities

__all__ = ["LABELLER", "Answers", "classes", "number", "smile_shift", "voices"]

LABELLER = "labeller"
SECOND = {"smile": "landmarks", "gender": "faceres"}
# smile_shift of the 100,000 labelled faces of recipes/ffhq.
SMILE_SHIFT = -0.67


def voices(attribute: Attribute, judge: str = LABELLER) -> tuple[str, ...]:
    """The judges that an attribute needs: itself, "faceres", "age_v1", "landmarks"; none if nobody can say."""
    if isinstance(attribute, Discrete):
        second = SECOND.get(attribute.name) if judge == LABELLER else None
        return (judge, second) if second else (judge,)
    if attribute.name == "age":
        return ("faceres", "age_v1") if judge == LABELLER else ("faceres",)
    return ("landmarks",) if judge == LABELLER else ()


@dataclass
class Answers:
    """What judges said of N pictures, by their own names for things.

    ``tensors`` are [N, attributes] under a judge's name; "faceres_age", "faceres_male" and "age_v1" [N]; and
    "landmarks" [N, columns].
    """

    tensors: dict[str, Tensor]
    attributes: Sequence[str]
    landmarks: Sequence[str]
    shift: float = SMILE_SHIFT

    def attribute(self, name: str, judge: str = LABELLER) -> Tensor:
        return self.tensors[judge][:, self.attributes.index(name)]

    def landmark(self, name: str) -> Tensor:
        return self.tensors["landmarks"][:, self.landmarks.index(name)]


def classes(answers: Answers, attribute: Discrete, judge: str = LABELLER) -> Tensor:
    """Class probabilities [N, classes] by one judge; who labels has a second opinion on smiles and gender."""
    said = class_probabilities(attribute, answers.tensors[judge], answers.attributes)
    if judge != LABELLER or attribute.name not in SECOND:
        return said
    if attribute.name == "smile":
        yes = blend(said[:, 1], answers.landmark("smile"), answers.shift)
    else:
        yes = blend(said[:, 1], answers.tensors["faceres_male"])
    return torch.stack([1 - yes, yes], dim=1)


def number(answers: Answers, name: str, judge: str = LABELLER) -> Tensor:
    """A continuous attribute [N] that has a voice, in its own unit."""
    if name == "age":
        ages = ("age_v1", "faceres_age") if judge == LABELLER else ("faceres_age",)
        return torch.stack([answers.tensors[age] for age in ages]).mean(dim=0)
    return answers.landmark("smile" if name == "smilestrength" else name)


def blend(p: Tensor, other: Tensor, shift: float = 0.0) -> Tensor:
    """The probability whose logit is the mean of two, the other's shifted."""
    return (0.5 * (logit(p) + logit(other.nan_to_num(0.5)) - shift)).sigmoid()


def smile_shift(answers: Answers) -> float:
    """The shift at which the landmarker says yes to smiles as often as CelebA's judge."""
    share = float((answers.attribute("Smiling") > 0.5).float().mean())
    return float(logit(answers.landmark("smile").nan_to_num(0.5)).quantile(1 - share))


def logit(p: Tensor) -> Tensor:
    return torch.logit(p.clamp(1e-3, 1 - 1e-3))
