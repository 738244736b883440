"""Train a StyleGAN2 on CIFAR-10, from scratch or from a checkpoint, for so many minutes.

    python recipes/cifar10/train_generator.py --minutes 20
    python recipes/cifar10/train_generator.py --minutes 5 --resume

    D:  softplus(D(fake)) + softplus(-D(real)) + gamma / 2 |grad D(real)|^2        the last every 16 steps, 16 times
    G:  softplus(-D(fake))                                                         on the pictures that D just saw
    average:  what is drawn with is G's mean over the last pictures, half of it over 5 % of all that it has seen

The paper's CIFAR configuration (StyleGAN2-ADA: 2 mapping layers, w 512, a skip generator, no path lengths, no mixed
styles) but for a residual discriminator, mirrored pictures and fewer channels. The data set and all that is random stay
on the device, and nothing waits for it between looks. At each look there are figures, a page of pictures and a
checkpoint; sheets of the data set that arrive later are then taken in.
"""

from __future__ import annotations

import argparse
import copy
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor, nn

from augment import Augment
from checkpoint import load, save
from cifar import WORK, present, read, scaled
from critic import Critic
from lace.errors import DataError, ValueRangeError
from lace.sheet import save_picture
from trainee import DIM, Trainee

__all__ = ["Training", "half_life", "penalty"]

GROUP, LAZY, WARM_UP = 32, 16, 100
RATE, BETAS = 0.0025, (0.0, 0.99)
SHOWN = 15

Network = Callable[..., Tensor]


def half_life(seen: int) -> float:
    """Over how many pictures half of the average is made: few at first, so that the beginning is forgotten."""
    return min(500_000.0, 0.05 * seen) + 1


def penalty(critic: Network, real: Tensor) -> Tensor:
    """R1: the mean square of the slope at real pictures."""
    real = real.detach().requires_grad_()
    (slope,) = torch.autograd.grad(critic(real).sum(), real, create_graph=True)
    return slope.square().sum(dim=(1, 2, 3)).mean()


@dataclass
class Training:
    """Both networks, how they are called (compiled, or as they are), and how far they are."""

    trainee: Trainee
    critic: Critic
    average: Trainee
    augment: Augment
    rng: torch.Generator
    batch: int
    gamma: float
    seen: int = 0

    def __post_init__(self) -> None:
        on_gpu = self.rng.device.type == "cuda"
        self.optimisers = [
            torch.optim.Adam(network.parameters(), RATE, BETAS, fused=on_gpu) for network in (self.trainee, self.critic)
        ]
        self.draw: Network = self.trainee
        self.judge: Network = self.critic
        self.steps = 0
        self.losses = torch.zeros(2, device=self.rng.device)

    @property
    def networks(self) -> dict[str, nn.Module]:
        return {"average": self.average, "critic": self.critic, "trainee": self.trainee}

    def normal(self, *shape: int) -> Tensor:
        return torch.randn(shape, generator=self.rng, device=self.rng.device)

    def drawn(self) -> Tensor:
        return self.draw(self.normal(self.batch, DIM), self.normal(self.batch, self.trainee.noises))

    def chosen(self, pictures: Tensor) -> Tensor:
        """A batch of real pictures, half of them mirrored."""
        rows = torch.randint(len(pictures), (self.batch,), generator=self.rng, device=self.rng.device)
        mirrored = torch.rand(self.batch, 1, 1, 1, generator=self.rng, device=self.rng.device) < 0.5
        real = scaled(pictures[rows])
        return torch.where(mirrored, real.flip(3), real)

    def step(self, pictures: Tensor) -> None:
        """Both networks once."""
        warm = min(1.0, (self.steps + 1) / WARM_UP)
        for optimiser in self.optimisers:
            optimiser.param_groups[0]["lr"] = RATE * warm
        fake = self.drawn()
        of_critic = self.learn_to_tell(self.chosen(pictures), fake)
        of_trainee = self.learn_to_draw(fake)
        self.losses = torch.stack([of_critic, of_trainee]).detach()
        self.steps, self.seen = self.steps + 1, self.seen + self.batch
        self.follow()

    def learn_to_tell(self, real: Tensor, fake: Tensor) -> Tensor:
        """A step of the discriminator, which sees both kinds in one pass."""
        loss, said = self.told_apart(self.augment(torch.cat([real, fake.detach()]), self.rng))
        self.augment.watch(said.detach())
        if self.steps % LAZY == 0:
            slope = penalty(self.critic, self.augment(real, self.rng))
            (loss + LAZY * self.gamma / 2 * slope).backward()
        else:
            loss.backward()
        self.moved(1)
        return loss

    def told_apart(self, both: Tensor) -> tuple[Tensor, Tensor]:
        """The loss of telling the first half from the second, and what is said of the first."""
        said_of_real, said_of_fake = self.judge(both).chunk(2)
        return F.softplus(said_of_fake).mean() + F.softplus(-said_of_real).mean(), said_of_real

    def learn_to_draw(self, fake: Tensor) -> Tensor:
        """A step of the generator."""
        self.critic.requires_grad_(False)
        loss = F.softplus(-self.judge(self.augment(fake, self.rng))).mean()
        loss.backward()
        self.critic.requires_grad_(True)
        self.moved(0)
        return loss

    def moved(self, k: int) -> None:
        self.optimisers[k].step()
        self.optimisers[k].zero_grad(set_to_none=True)

    @torch.no_grad()
    def follow(self) -> None:
        """The average goes after the generator."""
        share = 1 - 0.5 ** (self.batch / half_life(self.seen))
        torch._foreach_lerp_(list(self.average.parameters()), list(self.trainee.parameters()), share)

    def compile(self, pictures: Tensor) -> None:
        """Let what takes time be compiled, each by itself; what fails runs as it is."""
        for owner, name in ((self, "draw"), (self, "judge"), (self.augment, "distort")):
            plain, start = getattr(owner, name), time.perf_counter()
            setattr(owner, name, torch.compile(plain, dynamic=False))
            try:
                self.rehearse(pictures)
                print(f"{name} compiled in {time.perf_counter() - start:.0f} s", flush=True)
            except Exception as error:
                setattr(owner, name, plain)
                print(f"{name} not compiled: slower. {type(error).__name__}: {str(error)[:300]}", flush=True)

    def rehearse(self, pictures: Tensor) -> None:
        """All that a step asks, without a step."""
        try:
            fake = self.drawn()
            self.told_apart(self.augment(torch.cat([self.chosen(pictures), fake.detach()]), self.rng))[0].backward()
            self.critic.requires_grad_(False)
            self.judge(self.augment(fake, self.rng)).sum().backward()
            self.augment(self.chosen(pictures), self.rng)
        finally:
            self.critic.requires_grad_(True)
            for network in (self.trainee, self.critic):
                network.zero_grad(set_to_none=True)


class Clock:
    """When to look, and when to end."""

    def __init__(self, minutes: float, every: float) -> None:
        self.start = self.last = time.perf_counter()
        self.end, self.every, self.seen = self.start + 60 * minutes, every, 0

    def is_due(self) -> bool:
        return time.perf_counter() >= self.last + self.every

    def is_over(self) -> bool:
        return time.perf_counter() >= self.end

    def pace(self, seen: int) -> float:
        """Pictures a second since the last look."""
        now = time.perf_counter()
        found = (seen - self.seen) / (now - self.last)
        self.last, self.seen = now, seen
        return found


@torch.no_grad()
def page(average: Trainee, z: Tensor) -> Image.Image:
    """A square of pictures by the average."""
    side = math.isqrt(len(z))
    pictures = (average(z) * 127.5 + 128).clamp(0, 255).to(torch.uint8).unflatten(0, (side, side))
    return Image.fromarray(pictures.permute(0, 3, 1, 4, 2).flatten(0, 1).flatten(1, 2).cpu().numpy())


def look(training: Training, clock: Clock, out: Path, z: Tensor) -> None:
    """Figures, a page of pictures and a checkpoint."""
    told, drawn = training.losses.tolist()
    if not math.isfinite(told + drawn):
        raise ValueRangeError("The training has run away; go on from the last checkpoint with --resume.")
    p, r = float(training.augment.p), float(training.augment.r)
    figures = f"loss D {told:.3f} G {drawn:.3f}  r {r:+.2f}  p {p:.3f}"
    pace, spent = clock.pace(training.seen), time.perf_counter() - clock.start
    print(f"{training.seen / 1e6:7.3f}M pictures  {pace:6.0f}/s  {figures}  {spent:.0f} s", flush=True)
    card = {"seen": training.seen, "p": p, "r": r, "channels": training.trainee.channels}
    save(out, training.networks, card)
    save_picture(page(training.average, z).resize((SHOWN * 64,) * 2, Image.Resampling.NEAREST), out / "fakes.png", {})


def begun(args: argparse.Namespace) -> Training:
    """New networks, or those of the checkpoint."""
    torch.manual_seed(args.seed)
    on_gpu = args.device == "cuda"
    channels, dtype = tuple(args.channels), torch.bfloat16 if on_gpu else torch.float32
    trainee = Trainee(channels, dtype)
    critic = Critic(channels, min(GROUP, args.batch), dtype)
    average = copy.deepcopy(trainee).requires_grad_(False)
    networks: dict[str, nn.Module] = {"average": average, "critic": critic, "trainee": trainee}
    card = load(args.out, networks) if args.resume else {"seen": 0, "p": 0.0}
    for network in networks.values():
        network.to(args.device)
    # What comes after a checkpoint is not what came before it.
    seen, augment = int(card["seen"]), Augment(args.device, card["p"])
    rng = torch.Generator(args.device).manual_seed(args.seed + seen)
    return Training(trainee, critic, average, augment, rng, args.batch, args.gamma, seen)


def taken_in(folder: Path, names: list[str], pictures: Tensor, device: str) -> tuple[list[str], Tensor]:
    """The data set with the sheets that have arrived since; one that is not there whole waits for the next look."""
    found = present(folder)
    if found == names:
        return names, pictures
    try:
        return found, read(folder, found)[0].to(device)
    except DataError:
        return names, pictures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=WORK, help="the folder with the packed sheets")
    parser.add_argument("--out", type=Path, default=WORK / "training", help="the folder for checkpoints and pictures")
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--resume", action="store_true", help="go on from the checkpoint in --out")
    parser.add_argument("--every", type=float, default=60, help="seconds from look to look")
    parser.add_argument("--channels", type=int, nargs=4, default=(256, 256, 256, 128), help="at 4, 8, 16, 32 pixels")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--gamma", type=float, default=0.01)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-compile", dest="compile", action="store_false")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    args = parser.parse_args()
    torch.backends.cudnn.benchmark = True
    torch.set_float32_matmul_precision("high")
    names = present(args.data)
    pictures = read(args.data, names)[0].to(args.device)
    training = begun(args)
    if args.compile:
        training.compile(pictures)
    z = torch.randn(SHOWN**2, DIM, generator=torch.Generator().manual_seed(1)).to(args.device)
    clock = Clock(args.minutes, args.every)
    clock.seen = training.seen
    over = False
    while not over:
        training.step(pictures)
        over = clock.is_over()
        if over or clock.is_due():
            look(training, clock, args.out, z)
            names, pictures = taken_in(args.data, names, pictures, args.device)


if __name__ == "__main__":
    main()
