"""Turn the judges' answers into labels: one small file for all faces.

    python recipes/ffhq/merge.py labels-0.safetensors labels-1.safetensors --out recipes/ffhq/labels.safetensors

Probabilities are kept as bytes and numbers in half precision; what the independent judge says of the last 10,000 faces,
those that heads are calibrated and measured on, is kept as the class it names.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from common import SCHEMA
from lace.attributes.annotators.celeba import class_probabilities
from lace.attributes.schema import Continuous, Discrete
from lace.files import written_whole

__all__ = ["HELD_OUT", "read_labels"]

HELD_OUT = 10_000
DISCRETE = [attribute for attribute in SCHEMA if isinstance(attribute, Discrete)]
NUMBERS = [attribute for attribute in SCHEMA if isinstance(attribute, Continuous)]


class Answers:
    """What the judges said, from the files of label.py, by the judges' own names for things."""

    def __init__(self, paths: list[Path]) -> None:
        parts: list[dict[str, Tensor]] = []
        for path in paths:
            with safe_open(path, "pt") as file:
                parts.append({name: file.get_tensor(name).float() for name in file.keys()})  # noqa: SIM118
                about = file.metadata()
        self.tensors = {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
        self.attributes = about["attributes"].split(",")
        self.landmarks = about["landmarks"].split(",")

    def attribute(self, name: str, judge: str = "labeller") -> Tensor:
        return self.tensors[judge][:, self.attributes.index(name)]

    def landmark(self, name: str) -> Tensor:
        return self.tensors["landmarks"][:, self.landmarks.index(name)]


def logit(p: Tensor) -> Tensor:
    return torch.logit(p.clamp(1e-3, 1 - 1e-3))


def smile(celeba: Tensor, strength: Tensor) -> Tensor:
    """p(smile) by CelebA's judge and by the strength of a blendshape, shifted to say yes as often as the judge does."""
    own = logit(strength.nan_to_num(0.5))
    shift = own.quantile(1 - float((celeba > 0.5).float().mean()))
    return (0.5 * (logit(celeba) + own - shift)).sigmoid()


def classes(answers: Answers, attribute: Discrete, judge: str) -> Tensor:
    """Class probabilities [N, classes] by one judge; who labels has a second opinion on smiles and gender."""
    said = class_probabilities(attribute, answers.tensors[judge], answers.attributes)
    if judge != "labeller" or attribute.name not in ("smile", "gender"):
        return said
    if attribute.name == "smile":
        yes = smile(said[:, 1], answers.landmark("smile"))
    else:
        yes = (0.5 * (logit(said[:, 1]) + logit(answers.tensors["faceres_male"]))).sigmoid()
    return torch.stack([1 - yes, yes], dim=1)


def number(answers: Answers, name: str) -> Tensor:
    """A continuous attribute in its own unit; age is the mean of two networks."""
    if name == "age":
        return (answers.tensors["age_v1"] + answers.tensors["faceres_age"]) / 2
    return answers.landmark("smile" if name == "smilestrength" else name)


def read_labels(path: Path) -> tuple[Tensor, Tensor]:
    """Labels [N, columns] in the schema's layout, and the classes the independent judge names [HELD_OUT, words]."""
    tensors = load_file(path)
    later = (tensors["classes"].float() / 255).split([a.columns - 1 for a in DISCRETE], dim=1)
    shares = [torch.cat([1 - share.sum(dim=1, keepdim=True), share], dim=1).clamp_min(0) for share in later]
    parts = {a.name: share / share.sum(dim=1, keepdim=True) for a, share in zip(DISCRETE, shares, strict=True)}
    for attribute, values in zip(NUMBERS, tensors["numbers"].float().unbind(dim=1), strict=True):
        parts[attribute.name] = ((values - attribute.low) / attribute.span)[:, None]
    return torch.cat([parts[attribute.name] for attribute in SCHEMA], dim=1), tensors["independent"].long()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("answers", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    answers = Answers(args.answers)
    # The first class is what the others leave.
    shares = torch.cat([classes(answers, attribute, "labeller")[:, 1:] for attribute in DISCRETE], dim=1)
    named = [classes(answers, attribute, "independent")[-HELD_OUT:].argmax(dim=1) for attribute in DISCRETE]
    tensors = {
        "classes": (shares * 255).round().to(torch.uint8),
        "numbers": torch.stack([number(answers, attribute.name) for attribute in NUMBERS], dim=1).half(),
        "independent": torch.stack(named, dim=1).to(torch.uint8),
    }
    with written_whole(args.out) as beside:
        save_file(tensors, beside)


if __name__ == "__main__":
    main()
