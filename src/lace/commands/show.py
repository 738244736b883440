"""``lace show``: draw the pictures at addresses, or those of a folder."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from .common import in_words, load, say

if TYPE_CHECKING:
    from ..drawing import Drawing
    from ..model import Model

__all__ = ["show"]


def show(args: argparse.Namespace) -> None:
    """Draw the pictures at addresses, or those of a folder."""
    from ..outputs import Destination
    from ..report import model_report, pictures_report

    destination = Destination.checked(args.out, args.dir, "shown.png")
    model, drawing = shown(args)
    files = destination.write(model.pictures(drawing.w), args.addresses, {"model": model.name})
    rows = pictures_report(drawing)
    report = {**model_report(model), "pictures": rows, "written": [str(file) for file in files]}
    if destination.is_folder:
        destination.write_run(drawing, report)
    lines = [
        f"{place}  {in_words(row['attributes'], model.schema)}" for place, row in zip(args.addresses, rows, strict=True)
    ]
    say(args, report, [*lines, str(destination.path)])


def shown(args: argparse.Namespace) -> tuple[Model, Drawing]:
    """The model and the latents of addresses; a folder's pictures are drawn by the model that made them."""
    import torch

    from ..outputs import Run
    from ..rng import Address

    places = [Run.of(text) if "#" in text else Address.parse(text) for text in args.addresses]
    addresses = [place for place in places if isinstance(place, Address)]
    report = next((place[0].report() for place in places if isinstance(place, tuple)), {})
    model = load(args.model or report.get("model", "ffhq"), args, report.get("psi"))
    if len(addresses) == len(places):
        return model, model.at(addresses)
    z = [model.at([place]).z.cpu() if isinstance(place, Address) else place[0].latent(place[1]) for place in places]
    return model, model.given(torch.cat(z))
