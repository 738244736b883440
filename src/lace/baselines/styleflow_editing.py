"""Sequential editing as StyleFlow does it (Abdal et al., 2021), after version 2 of its authors' code.

    a_0 = what the picture shows,   a_i = a_{i-1}, but for the words of edit i:  a_0 + gain (asked - a_0)
    encode:   z = F(w_{i-1} | a_{i-1})          joint reverse encoding
    decode:   w_i = F^-1(z | a_i)               conditional forward editing

Every style that has a w of its own is encoded and decoded by itself, with ``subset`` only those that the edit is about
are changed (lace.editing.subset: the table is StyleFlow's), and what was really changed is encoded again for the next
edit. Gains are those of the authors' program, which asks for more of what comes out too weak.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from ..conditions.formula import Formula
from ..editing.scene import Method, Scene, Subjects
from .styleflow import StyleFlow
from .values import asked_values, read_values

__all__ = ["GAINS", "StyleFlowEditing"]

GAINS = {"gender": 1.5, "glasses": 2.5, "bald": 2.0, "beard": 1.7, "age": 0.93}


class StyleFlowEditing(Method):
    """Editing by a trained flow; ``gains`` are 1 where nothing is said."""

    name = "styleflow"

    def __init__(self, flow: StyleFlow, gains: dict[str, float] | None = None) -> None:
        self.flow, self.gains = flow, GAINS if gains is None else gains

    @torch.no_grad()
    def __call__(self, scene: Scene, seed: int) -> Subjects:
        source = self.shown(scene, scene.earlier)
        target = self.shown(scene, (*scene.earlier, scene.now))
        w = self.flow.edit(scene.before.shown, source, target)
        own = scene.model.generator.to_w(scene.before.z)
        return replace(scene.before, shown=w, offset=w - (own if w.dim() == 2 else own[:, None]))

    def shown(self, scene: Scene, edits: tuple[Formula, ...]) -> Tensor:
        """The values a after edits: one asked later takes the place of an earlier one."""
        schema = self.flow.schema
        first = read_values(scene.kept, scene.schema, schema)
        if "psi" in schema and scene.model.generator.psi is not None:
            psi = schema["psi"]
            first[:, schema.slice("psi")] = (scene.model.generator.psi - psi.low) / psi.span  # type: ignore[union-attr]
        gains = torch.cat([first.new_full((a.columns,), self.gains.get(a.name, 1.0)) for a in schema])
        values = first
        for edit in edits:
            asked = asked_values(edit, schema).to(first)
            values = torch.where(asked.isfinite(), torch.lerp(first, asked, gains), values)
        return values
