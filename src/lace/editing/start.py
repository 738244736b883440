"""Where editing begins: draws, latents that were saved, or w from anywhere.

A w without its z gets the nearest that the generator has, and keeps what is missing as an offset:

    z = argmin |g(z) - w|^2,   offset = w - g(z)

so that a picture which nothing was asked of stays the picture it was.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ..drawing import Drawing
from ..errors import UnknownNameError
from ..rng import Address
from .descent import descend
from .scene import Subjects

if TYPE_CHECKING:
    from ..model import Model

__all__ = ["Start", "begun"]

Start = str | Address | Iterable[str | Address] | Drawing | Tensor

# Prior draws among which the way to z begins, and its steps.
TRIED, STEPS = 4096, 400


def begun(model: Model, start: Start, space: str = "z") -> tuple[Subjects, Drawing]:
    """What is to be edited, and its drawing; ``space`` says whether a tensor holds z or w."""
    if space not in ("z", "w"):
        raise UnknownNameError(f"Latents are of the space z or w, not '{space}'.")
    if isinstance(start, Tensor) and space == "w":
        subjects = from_w(model, start)
        with torch.no_grad():
            readings = model.heads(subjects.w)
        return subjects, Drawing(subjects.z, subjects.shown, readings, model.schema, [], is_edited=True)
    drawing = drawn(model, start)
    # Copies, since gradients do not pass through what was made without them.
    z, w = drawing.z.clone(), drawing.w.clone()
    if drawing.is_edited and w.dim() == 2:
        with torch.no_grad():
            return Subjects(z, w, w - model.generator.to_w(z)), drawing
    return Subjects(z, w, torch.zeros_like(w)), drawing


def drawn(model: Model, start: Start) -> Drawing:
    """The drawing of addresses or z."""
    if isinstance(start, Drawing):
        return start
    if isinstance(start, Tensor):
        return model.given(start)
    return model.at([start] if isinstance(start, str | Address) else start)


def from_w(model: Model, w: Tensor) -> Subjects:
    """Pictures given by w [n, dim], or by a row for each style [n, styles, dim]."""
    with torch.no_grad():
        w = model.fitting(w, model.generator.to_w(model.generator.prior(0, torch.arange(1, device=model.device))))
    mean = w if w.dim() == 2 else w.mean(dim=1)
    z = nearest_z(model, mean)
    with torch.no_grad():
        found = model.generator.to_w(z)
    return Subjects(z, w, w - (found if w.dim() == 2 else found[:, None]))


def nearest_z(model: Model, w: Tensor) -> Tensor:
    """The z whose w is nearest, from the nearest of many draws downhill."""
    with torch.no_grad():
        draws = model.generator.prior(0, torch.arange(TRIED, device=model.device))
        start = draws[torch.cdist(w, model.generator.to_w(draws)).argmin(dim=1)]
    return descend(lambda z: (model.generator.to_w(z) - w).square().sum(dim=1), start, STEPS)
