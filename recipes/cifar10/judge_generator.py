"""How good the generator's pictures are, by networks that had no part in making them.

    python recipes/cifar10/judge_generator.py

    confidence  the mean probability of the likeliest class, by the independent judge; beside it that of the test set
    taught      how often a classifier is right on the test set that saw nothing but drawn pictures and their labels
    FD          the Frechet distance on the independent judge's features of drawn pictures to half of the training set,
                beside that of the other half

It also writes the training set's moments on these features, which lace bench cifar10 compares with.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from cifar import SCHEMA, TEST, TRAIN, WORK, read
from draws import GENERATOR, LABELS, generator_in, mapped, pictures_of
from lace.attributes.annotators.classes import ClassJudge
from lace.attributes.labels import read_labels
from lace.files import written_whole
from lace.metrics.frechet import frechet_distance, moments
from train_classifiers import BATCH, JUDGES, accuracy, confidence, fit, looked, made


def bytes_of(parts: list[Tensor]) -> Tensor:
    """Pictures in [-1, 1] as bytes."""
    return torch.cat([(part * 127.5 + 127.5).round().to(torch.uint8) for part in parts])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=WORK, help="the folder with the packed sheets")
    parser.add_argument("--generator", type=Path, default=GENERATOR)
    parser.add_argument("--labels", type=Path, default=LABELS)
    parser.add_argument("--judges", type=Path, default=JUDGES)
    parser.add_argument("--epochs", type=int, default=30, help="of the classifier that sees drawn pictures alone")
    parser.add_argument("--batch", type=int, default=BATCH, help="of that classifier's training")
    parser.add_argument("--limit", type=int, default=50_000, help="use only so many pictures (a trial)")
    parser.add_argument("--out", type=Path, default=WORK / "quality.json")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    args = parser.parse_args()
    torch.backends.cudnn.benchmark = True
    real, _ = (part[: args.limit].to(args.device) for part in read(args.data, TRAIN))
    unseen, truth = (part[: args.limit].to(args.device) for part in read(args.data, TEST))
    generator = generator_in(args.generator, args.device)
    labels = read_labels(args.labels, SCHEMA)[0].argmax(dim=1)[: args.limit].to(args.device)
    drawn = bytes_of(list(pictures_of(generator, mapped(generator, len(labels)))))
    judge = ClassJudge.load(args.judges / "independent.safetensors").to(args.device)
    student = fit(made("independent", 2), drawn, labels, args.epochs, 2, args.batch)
    of_real, of_drawn = looked(judge, real)[1], looked(judge, drawn)[1]
    half = len(real) // 2
    one, other = moments(of_real[:half]), moments(of_real[half:])
    figures = {
        "confidence": confidence(judge, drawn),
        "confidence_test_set": confidence(judge, unseen),
        "taught_accuracy": accuracy(student, unseen, truth),
        "fd": frechet_distance(moments(of_drawn[:half]), one),
        "fd_halves": frechet_distance(other, one),
        "drawn": len(drawn),
    }
    whole = moments(of_real)
    with written_whole(args.judges / "reference.safetensors") as beside:
        save_file({"mean": whole.mean.float().cpu(), "covariance": whole.covariance.float().cpu()}, beside)
    with written_whole(args.out) as beside:
        beside.write_text(json.dumps(figures, indent=1) + "\n")
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
