"""Train the two judges of CIFAR-10: the one that labels what the generator draws, and an independent one.

    python recipes/cifar10/train_classifiers.py

They are different networks from different starts, and each leaves out another twentieth of the training pictures, which
calibrates it. Views are mirrored, shifted by up to four pixels and have a square hole; labels are smoothed.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from cifar import CLASSES, TEST, TRAIN, WORK, read, scaled
from lace.attributes.annotators.classes import ClassJudge
from lace.attributes.training import likeliest_temperature

__all__ = ["BATCH", "JUDGES", "accuracy", "confidence", "fit", "made", "views"]

JUDGES = Path(__file__).parent / "judges"
# Which network each is, how wide, and which twentieth it never sees.
KINDS = {"labeller": ("residual", (64, 128, 256), 0), "independent": ("plain", (96, 256, 256), 1)}
SHIFT, HOLE, SMOOTHING, PARTS = 4, 8, 0.1, 20
RATE, DECAY, BATCH = 0.2, 5e-4, 512


def views(pictures: Tensor, rng: torch.Generator) -> Tensor:
    """Pictures in [-1, 1] as they might have been taken: mirrored or not, shifted, with something in front."""
    n, _, size, _ = pictures.shape
    device = pictures.device
    line = torch.arange(size, device=device)

    def places(most: int) -> Tensor:
        return torch.randint(most, (n, 1), generator=rng, device=device)

    wide = F.pad(pictures, [SHIFT] * 4, mode="reflect")
    rows, columns = places(2 * SHIFT + 1) + line, places(2 * SHIFT + 1) + line
    columns = torch.where(places(2) == 1, columns.flip(1), columns)
    whose, channels = torch.arange(n, device=device)[:, None, None, None], torch.arange(3, device=device)[:, None, None]
    moved = wide[whose, channels, rows[:, None, :, None], columns[:, None, None, :]]
    across, down = ((line - places(size)).abs() * 2 < HOLE for _ in range(2))
    return moved.masked_fill((down[:, :, None] & across[:, None, :])[:, None], 0.0)


def made(kind: str, seed: int) -> ClassJudge:
    """An untrained judge."""
    torch.manual_seed(seed)
    network, widths, _ = KINDS[kind]
    return ClassJudge(list(CLASSES), network, widths)


def fit(
    judge: ClassJudge, pictures: Tensor, labels: Tensor, epochs: int, seed: int = 0, batch: int = BATCH
) -> ClassJudge:
    """Train in place on bytes [N, 3, 32, 32], by SGD with a learning rate that rises and falls once."""
    device = pictures.device
    rng = torch.Generator(device).manual_seed(seed)
    judge.to(device).to(memory_format=torch.channels_last).train()  # type: ignore[call-overload]
    optimiser = torch.optim.SGD(judge.parameters(), RATE, momentum=0.9, weight_decay=DECAY, nesterov=True)
    batch = min(batch, len(pictures))
    steps = epochs * (len(pictures) // batch)
    rise = steps / 4
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: min((step + 1) / rise, (steps - step) / (steps - rise))
    )
    for _ in range(epochs):
        order = torch.randperm(len(pictures), generator=rng, device=device)
        for rows in order.split(batch)[: len(pictures) // batch]:
            x = views(scaled(pictures[rows]), rng).contiguous(memory_format=torch.channels_last)
            with torch.autocast(device.type, torch.bfloat16, enabled=x.is_cuda):
                said = judge(x)
            loss = F.cross_entropy(said.float(), labels[rows], label_smoothing=SMOOTHING)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
            schedule.step()
    return judge.eval().requires_grad_(False)


@torch.inference_mode()
def looked(judge: ClassJudge, pictures: Tensor) -> tuple[Tensor, Tensor]:
    """Class probabilities and features of bytes [N, 3, 32, 32]."""
    parts = [judge.look(scaled(rows)) for rows in pictures.split(judge.batch)]
    return torch.cat([answers for answers, _ in parts]), torch.cat([features for _, features in parts])


def calibrate(judge: ClassJudge, pictures: Tensor, labels: Tensor) -> None:
    """The temperature that makes the labels of pictures never seen likeliest."""
    with torch.inference_mode():
        logits = torch.cat([judge.sides(scaled(rows))[0] for rows in pictures.split(judge.batch)], dim=1)
    truth = F.one_hot(labels, len(CLASSES)).float()
    judge.temperature.fill_(likeliest_temperature(logits, truth, torch.ones_like(truth[:, 0])))


def accuracy(judge: ClassJudge, pictures: Tensor, labels: Tensor) -> float:
    """How often the likeliest class is the right one."""
    return float((looked(judge, pictures)[0].argmax(dim=1) == labels).float().mean())


def confidence(judge: ClassJudge, pictures: Tensor) -> float:
    """The mean probability of the likeliest class."""
    return float(looked(judge, pictures)[0].amax(dim=1).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=WORK, help="the folder with the packed sheets")
    parser.add_argument("--out", type=Path, default=JUDGES)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--batch", type=int, default=BATCH)
    parser.add_argument("--limit", type=int, default=None, help="use only so many pictures (a trial)")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    args = parser.parse_args()
    torch.backends.cudnn.benchmark = True
    pictures, labels = (part[: args.limit].to(args.device) for part in read(args.data, TRAIN))
    unseen, truth = (part[: args.limit].to(args.device) for part in read(args.data, TEST))
    for kind in args.kinds:
        start, (*_, part) = time.perf_counter(), KINDS[kind]
        held = torch.arange(len(pictures), device=args.device) % PARTS == part
        judge = fit(made(kind, part), pictures[~held], labels[~held], args.epochs, part, args.batch)
        calibrate(judge, pictures[held], labels[held])
        judge.half().float()
        seconds = time.perf_counter() - start
        figures = {"accuracy": accuracy(judge, unseen, truth), "confidence": confidence(judge, unseen)}
        print(f"{kind}: right in {100 * figures['accuracy']:.2f} % of the test set, {seconds:.0f} s", flush=True)
        about = {"pictures": int((~held).sum()), "epochs": args.epochs, "seconds": round(seconds, 1)}
        judge.save(args.out / f"{kind}.safetensors", {**about, **figures})


if __name__ == "__main__":
    main()
