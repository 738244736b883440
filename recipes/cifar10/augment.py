"""Adaptive augmentation (Karras et al., arXiv:2006.06676): the discriminator sees real and drawn pictures through the
same random distortions, each of them applied with a probability p that follows how much it has learned by heart.

    r = E[sign D(real)],   p <- p + sign(r - 0.6) pictures / 500,000,   within [0, 1]

Distortions: mirror, quarter turns, whole and broken shifts, scaling in all and in one direction, turns; brightness,
contrast, light turned to dark, hue, saturation. A place is a matrix and so is a colour: a picture is resampled once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce

import torch
import torch.nn.functional as F
from torch import Tensor

__all__ = ["Augment", "Dice", "colours", "places", "repainted"]

TARGET, PACE = 0.6, 500_000
# Steps after which p moves, so that r is a mean over enough pictures.
PATIENCE = 4
# Random numbers that a picture takes.
UNIFORM, NORMAL = 23, 7


class Augment:
    """Distort pictures, and follow the discriminator; all of it stays on the device, so that nothing waits for it."""

    def __init__(self, device: torch.device | str, p: float = 0.0) -> None:
        self.p = torch.tensor(p, device=device)
        self._signs, self._steps = torch.zeros((), device=device), 0
        self.r = torch.zeros((), device=device)
        # As it is, or compiled.
        self.distort: Callable[..., Tensor] = distorted

    def __call__(self, pictures: Tensor, rng: torch.Generator) -> Tensor:
        return self.distort(pictures, self.p, *numbers(len(pictures), rng))

    @torch.no_grad()
    def watch(self, real: Tensor) -> None:
        """Take in what the discriminator says of real pictures [N]."""
        self._signs += real.sign().mean()
        self._steps += 1
        if self._steps % PATIENCE == 0:
            self.r = self._signs / PATIENCE
            self._signs = torch.zeros_like(self._signs)
            self.p = (self.p + (self.r - TARGET).sign() * len(real) * PATIENCE / PACE).clamp(0, 1)


def distorted(pictures: Tensor, p: Tensor, uniform: Tensor, normal: Tensor) -> Tensor:
    """Pictures moved and repainted by random numbers."""
    dice = Dice(p, uniform, normal)
    grid = F.affine_grid(places(dice, pictures.shape[-1])[:, :2], list(pictures.shape), align_corners=False)
    moved = F.grid_sample(pictures, grid, mode="bilinear", padding_mode="reflection", align_corners=False)
    return repainted(moved, colours(dice))


class Dice:
    """Random numbers for n pictures; what happens with less than certainty is its neutral value otherwise.

    They were drawn beforehand, all at once: a compiler knows no generators.
    """

    def __init__(self, p: Tensor, uniform: Tensor, normal: Tensor) -> None:
        self.p, self._uniform, self._normal = p, iter(uniform.unbind()), iter(normal.unbind())

    @classmethod
    def rolled(cls, n: int, p: Tensor, rng: torch.Generator) -> Dice:
        return cls(p, *numbers(n, rng))

    def uniform(self) -> Tensor:
        return next(self._uniform)

    def normal(self) -> Tensor:
        return next(self._normal)

    def maybe(self, value: Tensor, neutral: float = 0.0, p: Tensor | None = None) -> Tensor:
        return torch.where(self.uniform() < (self.p if p is None else p), value, neutral)

    def angle(self, p: Tensor | None = None) -> Tensor:
        return self.maybe((2 * self.uniform() - 1) * math.pi, p=p)


def numbers(n: int, rng: torch.Generator) -> tuple[Tensor, Tensor]:
    """What dice take for n pictures: uniform [UNIFORM, n] and normal numbers [NORMAL, n]."""
    uniform = torch.rand(UNIFORM, n, generator=rng, device=rng.device)
    return uniform, torch.randn(NORMAL, n, generator=rng, device=rng.device)


def matrix(rows: list[list[Tensor | float]], like: Tensor) -> Tensor:
    """Matrices [N, k, k] of entries that are numbers or [N]; a number is filled in, for copying it there would wait."""
    full = [[e if isinstance(e, Tensor) else torch.full_like(like, e) for e in row] for row in rows]
    return torch.stack([torch.stack(row, dim=1) for row in full], dim=1)


def turned(angle: Tensor) -> Tensor:
    cos, sin = angle.cos(), angle.sin()
    return matrix([[cos, -sin, 0.0], [sin, cos, 0.0], [0.0, 0.0, 1.0]], angle)


def stretched(x: Tensor, y: Tensor) -> Tensor:
    return matrix([[x, 0.0, 0.0], [0.0, y, 0.0], [0.0, 0.0, 1.0]], x)


def shifted(x: Tensor, y: Tensor) -> Tensor:
    return matrix([[1.0, 0.0, x], [0.0, 1.0, y], [0.0, 0.0, 1.0]], x)


def places(dice: Dice, size: int) -> Tensor:
    """Where pixels come from: matrices [N, 3, 3] on coordinates from -1 to 1."""
    # Two turns, one before and one after the stretch, are together as likely as anything else.
    once = 1 - (1 - dice.p).sqrt()
    mirror, quarter = dice.maybe(1 - 2 * (dice.uniform() * 2).floor(), 1.0), dice.maybe((dice.uniform() * 4).floor())
    # Whole pixels, up to an eighth of the picture: a pixel is 2 / size wide.
    whole = [dice.maybe(((2 * dice.uniform() - 1) * size / 8).round() * 2 / size) for _ in range(2)]
    scale, aspect = dice.maybe((0.2 * dice.normal()).exp2(), 1.0), dice.maybe((0.2 * dice.normal()).exp2(), 1.0)
    broken = [dice.maybe(0.25 * dice.normal()) for _ in range(2)]
    parts = (
        stretched(mirror, torch.ones_like(mirror)),
        turned(quarter * math.pi / 2),
        shifted(*whole),
        stretched(scale, scale),
        turned(dice.angle(once)),
        stretched(aspect, 1 / aspect),
        turned(dice.angle(once)),
        shifted(*broken),
    )
    return reduce(torch.matmul, parts)


def colours(dice: Dice) -> Tensor:
    """What becomes of colours: matrices [N, 3, 4] on (red, green, blue, 1), colours in [-1, 1]."""
    bright = dice.maybe(0.2 * dice.normal())
    contrast = dice.maybe((0.5 * dice.normal()).exp2(), 1.0)
    dark = dice.maybe((dice.uniform() * 2).floor())
    hue, saturation = dice.angle(), dice.maybe(dice.normal().exp2(), 1.0)
    one = torch.eye(3, device=bright.device)
    # The axis of greys, along which light lies.
    axis = torch.full((3,), 3**-0.5, device=bright.device)
    grey, across = torch.outer(axis, axis), torch.linalg.cross(one, axis.expand(3, 3))
    cos, sin = hue.cos()[:, None, None], hue.sin()[:, None, None]
    rotation = grey + cos * (one - grey) + sin * across
    kept = (1 - 2 * dark)[:, None, None] * grey + saturation[:, None, None] * (one - grey)
    linear = contrast[:, None, None] * (kept @ rotation)
    moved = (linear.sum(dim=2) * bright[:, None])[:, :, None]
    return torch.cat([linear, moved], dim=2)


def repainted(pictures: Tensor, colours: Tensor) -> Tensor:
    """Pictures [N, 3, H, W] in other colours."""
    flat = torch.baddbmm(colours[:, :, 3:], colours[:, :, :3], pictures.flatten(2))
    return flat.view_as(pictures)
