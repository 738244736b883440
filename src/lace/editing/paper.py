"""Sequential editing as the paper does it (section 4.2 and appendix).

    E = a0 sum_{j<i} E(c_j|w) + a1 E(c_i|w) + m (|w - w_0|^2 + |z - z_0|^2) + g sum_{j not asked} |f_j(w) - f_j(w_0)|^2
    dz/dt = beta(t) / 2 grad E,   z(T) = z_0, the latent before the edit

a0 = 0.2, a1 = 10 for numbers and 5 for classes, m = 0.04, g = 0.01; all a are 1 without reweighting. f_j are readings:
logarithms of class probabilities, and numbers scaled to [0, 1]. ``temperature`` divides the logits, as in the paper's
figure of smooth control.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from ..attributes.schema import Discrete
from ..conditions.energy import energy
from ..conditions.formula import Formula, leaves
from ..errors import ValueRangeError
from ..samplers.ode import Ode
from .scene import Method, OwnTarget, Scene, Subjects, standing

__all__ = ["Paper"]

EARLIER, NUMBER, CLASS = 0.2, 10.0, 5.0
STAY, REST = 0.04, 0.01


class Paper(Method):
    """The flow above; ``rest`` names the words whose readings are kept (all that are not asked for, if None)."""

    name = "paper"

    def __init__(
        self,
        reweight: bool = True,
        temperature: float = 1.0,
        rest: Iterable[str] | None = None,
        ode: Ode | None = None,
    ) -> None:
        if not temperature > 0:
            raise ValueRangeError(f"temperature must be above 0, not {temperature:g}.")
        self.reweight, self.temperature = reweight, temperature
        self.rest = None if rest is None else tuple(rest)
        self._ode = ode or Ode()

    def __call__(self, scene: Scene, seed: int) -> Subjects:
        return scene.at(self._ode(Objective(scene, self), len(scene.before.z), seed).z)


class Objective(OwnTarget):
    """Minus E, for each picture from its own start."""

    def __init__(self, scene: Scene, method: Paper) -> None:
        super().__init__(scene)
        self.method = method
        schema = scene.schema
        names = [a.name for a in schema] if method.rest is None else method.rest
        self.rest = [schema.slice(name) for name in names if name in schema and name not in scene.words]
        with torch.no_grad():
            self.w = scene.w(scene.before.z, self.everyone)
            self.readings = scene.model.heads(self.w)

    def prior(self, seed: int, index: Tensor) -> Tensor:
        return self.scene.before.z[index]

    def log_prob_of(self, z: Tensor, index: Tensor | None) -> Tensor:
        rows = self.rows(index)
        w = self.scene.w(z, rows)
        readings = self.scene.model.heads(w)
        away = (w - self.w[rows]).square().sum(dim=1) + (z - self.scene.before.z[rows]).square().sum(dim=1)
        changes = (readings - self.readings[rows]).square()
        others = sum((changes[:, columns].sum(dim=1) for columns in self.rest), torch.zeros_like(away))
        return -(self.asked(readings) + STAY * away + REST * others)

    def asked(self, readings: Tensor) -> Tensor:
        """The energies of what is asked for, by weight."""
        now, earlier = self.scene.now, standing(self.scene.earlier, self.scene.now)
        weighted = [(weight(now), now), *((EARLIER, part) for part in earlier)]
        return torch.stack([(a if self.method.reweight else 1.0) * self.energy(c, readings) for a, c in weighted]).sum(
            0
        )

    def energy(self, formula: Formula, readings: Tensor) -> Tensor:
        return energy(formula, readings, self.scene.schema, self.method.temperature)


def weight(formula: Formula) -> float:
    """How much the edit of now counts."""
    return CLASS if all(isinstance(leaf.attribute, Discrete) for leaf in leaves(formula)) else NUMBER
