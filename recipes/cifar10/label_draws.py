"""Draw pictures, show them to both judges, and keep what they say.

    python recipes/cifar10/label_draws.py --count 60000

Row i is the picture at address SEED:i. Class probabilities of the labelling judge are kept as bytes; of the last
pictures, on which heads are calibrated and measured, also the class that the independent judge names.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch
from safetensors.torch import save_file

from cifar import WORD
from draws import GENERATOR, LABELS, generator_in, mapped, pictures_of
from lace.files import written_whole
from lace.metrics.jury import Jury, Verdict
from train_classifiers import JUDGES


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--generator", type=Path, default=GENERATOR)
    parser.add_argument("--judges", type=Path, default=JUDGES)
    parser.add_argument("--count", type=int, default=60_000)
    parser.add_argument("--out", type=Path, default=LABELS)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    args = parser.parse_args()
    start = time.perf_counter()
    generator, jury = generator_in(args.generator, args.device), Jury.load(args.judges, torch.device(args.device))
    w = mapped(generator, args.count)
    verdict = Verdict.joined(jury(pictures) for pictures in pictures_of(generator, w))
    soft, other = verdict.soft(WORD, "labeller").cpu(), verdict.classes(WORD, "independent").cpu()
    tensors = {
        # The first class is what the others leave.
        "classes": (soft[:, 1:] * 255).round().to(torch.uint8),
        "numbers": torch.empty(args.count, 0),
        "independent": other[-(args.count // 6) :, None].to(torch.uint8),
    }
    with written_whole(args.out) as beside:
        save_file(tensors, beside)
    shares = torch.bincount(soft.argmax(dim=1), minlength=soft.shape[1]) / args.count
    agree = float((soft.argmax(dim=1) == other).float().mean())
    print(f"{args.count:,} pictures in {time.perf_counter() - start:.0f} s; the judges agree on {100 * agree:.1f} %")
    print({name: round(float(share), 3) for name, share in zip(WORD.classes, shares, strict=True)})


if __name__ == "__main__":
    main()
