"""Editing as a posterior over the neighbourhood of a latent.

    pi(z') ~ N(z'; r z, (1 - r^2) I)  [ p(c|z')^a  exp(-b change(z, z') - apart(z, z')) ]^(1 / (1 - r^2))
    apart   = m |g(z') - g(z)|^2 / 2 + l (1 - cos(e(z'), e(z))),   r = cos(amount pi / 2)

z is where the first edit began: after any number of them a picture is as near to it as all of them together allow, and
small losses do not add up. c is all that was asked for so far, ``change`` what becomes of the other words
(lace.editing.keep). What no word names is kept still by the distance of w, and the person by e, who the model thinks it
is (lace.editing.likeness). Held in proportion to how narrow the neighbourhood is, they decide where the peak lies, and
``amount`` how far from it a draw may be: 0 is the peak itself, the nearest picture that obeys, and 1 forgets what the
picture was but for its words. a doubles for a picture that does not obey at its peak.

The peak z* is found by gradients; the draw by elliptical slices around it. With z' = z* + sqrt(1 - r^2) x,

    N(z'; r z, (1 - r^2) I)  ~  N(x; 0, I) exp(-<x, x*>),   x* = (z* - r z) / sqrt(1 - r^2)

so that the walk starts at the top of what it walks on, and leaves pi as it is.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ..errors import ValueRangeError
from ..metrics.identity import identity_loss
from ..samplers.elliptical import Elliptical
from .descent import descend
from .keep import change, tied
from .scene import Method, OwnTarget, Scene, Subjects

__all__ = ["Neighbourhood"]

# Steps of the way to the peak.
CLIMB = 60
# A picture obeys at its peak where p(c) is this; its a is doubled at most so often.
OBEYS, DOUBLINGS = 0.99, 4


class Neighbourhood(Method):
    """``hold`` is a, ``keep`` b, ``still`` m and ``alike`` l; ``moves`` is how long the walk around the peak is."""

    name = "neighbourhood"

    def __init__(
        self,
        amount: float = 0.1,
        hold: float = 200.0,
        keep: float = 25.0,
        still: float = 120.0,
        alike: float = 100.0,
        moves: int = 32,
    ) -> None:
        if not 0 <= amount <= 1:
            raise ValueRangeError(f"amount runs from 0 to 1; {amount:g} is outside.")
        if not (hold > 0 and keep >= 0 and still >= 0 and alike >= 0 and moves >= 1):
            raise ValueRangeError("hold must be above 0, keep, still and alike at least 0, and moves at least 1.")
        self.amount, self.hold, self.keep, self.still, self.alike = amount, hold, keep, still, alike
        self.moves = moves

    def __call__(self, scene: Scene, seed: int) -> Subjects:
        around = Around(scene, self)
        for _ in range(DOUBLINGS):
            around.climb()
            reluctant = around.obeying() < OBEYS
            if not bool(reluctant.any()):
                break
            around.hold = torch.where(reluctant, 2 * around.hold, around.hold)
        if around.spread == 0:
            return scene.at(around.peak)
        return scene.at(around.peak + around.spread * Elliptical(self.moves)(around, len(around.peak), seed).z)


class Around(OwnTarget):
    """The density above as one of x, around the peak of each picture."""

    def __init__(self, scene: Scene, method: Neighbourhood) -> None:
        super().__init__(scene)
        self.method = method
        angle = method.amount * math.pi / 2
        self.centre, self.spread = math.cos(angle) * scene.first.z, math.sin(angle)
        with torch.no_grad():
            self.start = scene.w(scene.first.z, self.everyone)
            self.person = None if scene.model.likeness is None else scene.model.likeness(self.start)
        self.rest = {attribute.name for attribute in scene.schema} - tied(scene.model, scene.words)
        # The way to the peak goes on from the last one, which is near.
        self.peak = scene.before.z
        self.hold = torch.full((len(self.peak),), method.hold, device=self.device)

    def prior(self, seed: int, index: Tensor) -> Tensor:
        """Walks start at the peak."""
        return torch.zeros_like(self.peak[index])

    def log_prob_of(self, x: Tensor, index: Tensor | None) -> Tensor:
        rows = self.rows(index)
        lean = ((self.peak - self.centre)[rows] * x).sum(dim=1) / self.spread
        return self.merit(self.peak[rows] + self.spread * x, rows) / self.spread**2 - lean

    def merit(self, z: Tensor, rows: Tensor) -> Tensor:
        """The logarithm of the bracket."""
        w = self.scene.w(z, rows)
        readings = self.scene.model.heads(w)
        asked = self.hold[rows] * self.scene.log_prob(readings)
        kept = change(readings, self.scene.kept[rows], self.scene.schema, self.rest)
        return asked - self.method.keep * kept - self.apart(w, rows)

    def apart(self, w: Tensor, rows: Tensor) -> Tensor:
        """How far w is from the first one, and whom it shows from the first person."""
        moved = self.method.still * (w - self.start[rows]).square().sum(dim=1) / 2
        if self.scene.model.likeness is None or self.person is None:
            return moved
        return moved + self.method.alike * identity_loss(self.scene.model.likeness(w), self.person[rows])

    def climb(self) -> None:
        """Go on to the peak."""
        self.peak = descend(self.cost, self.peak, CLIMB)

    def cost(self, z: Tensor) -> Tensor:
        """Minus the logarithm of pi, times 1 - r^2."""
        return (z - self.centre).square().sum(dim=1) / 2 - self.merit(z, self.everyone)

    @torch.no_grad()
    def obeying(self) -> Tensor:
        """p(c) at the peaks."""
        return self.scene.log_prob(self.scene.model.heads(self.scene.w(self.peak, self.everyone))).exp()
