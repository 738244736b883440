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
from safetensors.torch import save_file
from torch import Tensor

from common import SCHEMA
from lace.attributes import labels
from lace.attributes.annotators.voices import Answers, classes, number, smile_shift
from lace.attributes.schema import Continuous, Discrete
from lace.files import written_whole

__all__ = ["HELD_OUT", "read_labels"]

HELD_OUT = 10_000
DISCRETE = [attribute for attribute in SCHEMA if isinstance(attribute, Discrete)]
NUMBERS = [attribute for attribute in SCHEMA if isinstance(attribute, Continuous)]


def read_answers(paths: list[Path]) -> Answers:
    """What the judges said, from the files of label.py."""
    parts: list[dict[str, Tensor]] = []
    for path in paths:
        with safe_open(path, "pt") as file:
            parts.append({name: file.get_tensor(name).float() for name in file.keys()})  # noqa: SIM118
            about = file.metadata()
    tensors = {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
    return Answers(tensors, about["attributes"].split(","), about["landmarks"].split(","))


def read_labels(path: Path) -> tuple[Tensor, Tensor]:
    """Labels [N, columns] in the schema's layout, and the classes the independent judge names [HELD_OUT, words]."""
    return labels.read_labels(path, SCHEMA)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("answers", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    answers = read_answers(args.answers)
    answers.shift = smile_shift(answers)
    # The first class is what the others leave.
    shares = torch.cat([classes(answers, attribute)[:, 1:] for attribute in DISCRETE], dim=1)
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
