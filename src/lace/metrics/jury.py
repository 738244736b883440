"""A jury of two judges who look at pictures: one whose answers the heads learned from, and one who had no part in it.

What they say of a picture decides whether it shows what was asked. The features of the independent judge are those on
which sets of pictures are compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from ..attributes.annotators.celeba import class_probabilities
from ..attributes.annotators.classes import ClassJudge
from ..attributes.annotators.judge import Judge, eight_bit
from ..attributes.card import read_card
from ..attributes.schema import Discrete
from ..errors import DataError

__all__ = ["FEATURES", "JUDGES", "Jury", "Verdict"]

JUDGES = ("labeller", "independent")
FEATURES = f"features of the independent judge ({Judge.about})"


@dataclass(frozen=True)
class Verdict:
    """What the jury says of N pictures: each judge's answers [N, columns], and features [N, D]."""

    names: tuple[str, ...]
    answers: dict[str, Tensor]
    features: Tensor

    def __len__(self) -> int:
        return len(self.features)

    def __getitem__(self, rows: slice | Tensor) -> Verdict:
        return Verdict(self.names, {judge: said[rows] for judge, said in self.answers.items()}, self.features[rows])

    def soft(self, attribute: Discrete, judge: str) -> Tensor:
        """How likely each class is on each picture, by a judge: [N, classes]."""
        if set(attribute.classes) <= set(self.names):
            return self.answers[judge][:, [self.names.index(name) for name in attribute.classes]]
        return class_probabilities(attribute, self.answers[judge], self.names)

    def classes(self, attribute: Discrete, judge: str) -> Tensor:
        """The class that a judge sees on each picture."""
        return self.soft(attribute, judge).argmax(dim=1)

    @classmethod
    def joined(cls, parts: Iterable[Verdict]) -> Verdict:
        """Several verdicts as one."""
        all_parts = list(parts)
        answers = {judge: torch.cat([part.answers[judge] for part in all_parts]) for judge in all_parts[0].answers}
        return cls(all_parts[0].names, answers, torch.cat([part.features for part in all_parts]))


def judge_in(path: Path) -> Judge | ClassJudge:
    """The judge in a file: of classes, or of CelebA's attributes."""
    return ClassJudge.load(path) if "network" in read_card(path) else Judge.load(path)


class Jury:
    """The judges, on one device; the independent one is always among them."""

    def __init__(self, judges: Mapping[str, Judge | ClassJudge]) -> None:
        self.judges = judges

    @property
    def batch(self) -> int:
        """How many pictures are judged together."""
        return min(judge.batch for judge in self.judges.values())

    @property
    def features(self) -> str:
        """What sets of pictures are compared on."""
        return f"features of the independent judge ({self.judges['independent'].about})"

    @classmethod
    def load(cls, folder: Path, device: torch.device, judges: tuple[str, ...] = JUDGES) -> Jury:
        """The judges of a folder, ``labeller.safetensors`` and ``independent.safetensors``."""
        paths = {name: folder / f"{name}.safetensors" for name in judges}
        for path in paths.values():
            if not path.exists():
                raise DataError(f"The judge {path} is not there; run this from the root of a checkout of LACE.")
        return cls({name: judge_in(path).to(device) for name, path in paths.items()})

    @torch.inference_mode()
    def __call__(self, pictures: Tensor) -> Verdict:
        """Judge pictures [N, 3, H, W] in [-1, 1], as a PNG would show them."""
        seen = eight_bit(pictures)
        looks = {name: judge.look(seen) for name, judge in self.judges.items()}
        names = tuple(self.judges["independent"].names)
        return Verdict(names, {name: answers for name, (answers, _) in looks.items()}, looks["independent"][1])
