"""``lace edit``: change a picture by one sentence after the other, and keep the rest of it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from ..attributes.schema import Attribute, Continuous
from .common import Stopwatch, say
from .show import shown

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ..drawing import Drawing
    from ..editing.album import Album
    from ..model import Model

__all__ = ["edit"]

# Models whose pictures are faces framed as FFHQ's: there identity can be measured.
FACES = ("ffhq",)
# Words that are worth a line under a picture, and from what change on.
LINES, PROBABILITY, ERRORS = 5, 0.2, 3.0


def edit(args: argparse.Namespace) -> None:
    """Change a picture by one sentence after the other."""
    from ..outputs import Destination

    destination = Destination.checked(args.out, args.dir, "edited.png")
    model, drawing = shown(args)
    for sentence in args.edits:
        model.formula(sentence)
    watch = Stopwatch()
    with watch("latents"):
        album = edited(model, drawing, args)
    with watch("pictures"):
        album = album.pictures()
    moved = identities(model, album)
    joined = album.joined
    captions = [args.addresses[0], *(caption(album, k, moved) for k in range(len(args.edits)))]
    title, subtitle = "  ·  ".join([args.addresses[0], *args.edits]), f"{model.name}  ·  {described(album)}"
    about = {"model": model.name, "edits": "; ".join(args.edits)}
    columns = len(captions) if len(captions) <= 8 else None
    files = destination.write(iter(album.images[:, 0]), captions, about, title, subtitle, columns)
    report = edit_report(args, model, album, moved, watch.seconds)
    if destination.is_folder:
        destination.write_run(joined, report)
    say(args, {**report, "written": [str(file) for file in files]}, [*table(album, moved), str(destination.path)])


def edited(model: Model, drawing: Drawing, args: argparse.Namespace) -> Album:
    """The album, with a bar that counts edits."""
    from tqdm import tqdm

    album = model.edit(
        drawing, method=args.method, amount=args.amount, temperature=args.temperature, subset=args.subset
    )
    for sentence in tqdm(args.edits, desc="Editing", unit="", disable=None, leave=False):
        album = album.then(sentence, args.seed)
    return album


def identities(model: Model, album: Album) -> list[tuple[float, float]]:
    """How far each edit moved identity: from the picture before it, and from the start."""
    if model.name not in FACES:
        return []
    import torch

    from ..metrics.identity import Identity, identity_loss

    with torch.inference_mode():
        network = Identity.load().to(model.device)
        faces = torch.cat([network.embed(signed(picture).to(model.device)) for picture in album.images[:, 0]])
    steps, total = identity_loss(faces[1:], faces[:-1]), identity_loss(faces[1:], faces[:1])
    return [(round(float(a), 4), round(float(b), 4)) for a, b in zip(steps, total, strict=True)]


def signed(picture: NDArray[np.uint8]) -> Any:
    """A picture as networks take it: [1, 3, H, W] in [-1, 1]."""
    import torch

    return torch.from_numpy(picture.copy()).permute(2, 0, 1)[None].float() / 127.5 - 1


def described(album: Album) -> str:
    """How it was edited."""
    settings = ", ".join(f"{name} {value:g}" for name, value in settings_of(album).items() if value is not None)
    return f"{album.method.name}: {settings}"


def settings_of(album: Album) -> dict[str, Any]:
    return {name: value for name, value in vars(album.method).items() if not name.startswith("_")}


def caption(album: Album, k: int, moved: list[tuple[float, float]]) -> str:
    """The k-th edit, what it changed most, and identity."""
    lines = [f"{name} {shown_value(a)} to {shown_value(b)}" for _, name, a, b in notable(album, k)][:LINES]
    return "\n".join([str(album.edits[k]), *lines, *([f"identity moved {moved[k][1]:.2f}"] if moved else [])])


def notable(album: Album, k: int) -> list[tuple[float, str, Any, Any]]:
    """What the k-th edit changed, the most first: size in its own measure, word, before, after."""
    changes, schema = album.changes()[k], album.model.schema
    rows = [(size(schema[name], *pair), name, *pair) for name, pair in changes.items()]
    return sorted((row for row in rows if row[0] >= 1), key=lambda row: -row[0])


def size(attribute: Attribute, before: Any, after: Any) -> float:
    """A change in units of what is worth a line."""
    if isinstance(attribute, Continuous):
        return abs(after - before) / (ERRORS * attribute.sigma)
    if isinstance(before, dict):
        return max(abs(after[name] - before[name]) for name in before) / PROBABILITY
    return float(abs(after - before)) / PROBABILITY


def shown_value(value: Any) -> str:
    """A value as people read it: a class, a percentage, a number."""
    if isinstance(value, dict):
        return str(max(value, key=lambda name: value[name]))
    return f"{value:.2f}" if abs(value) < 2 else f"{value:.0f}"


def table(album: Album, moved: list[tuple[float, float]]) -> list[str]:
    """Every word before and after each edit."""
    heads = ["start", *map(str, album.edits)]
    columns = [drawing.values(0) for drawing in album.drawings]
    rows = [(name, *(shown_value(column[name]) for column in columns)) for name in columns[0]]
    rows += [
        ("obeys", "", *(f"{float(d.log_prob[0].exp()):.2f}" for d in album.drawings[1:] if d.log_prob is not None))
    ]
    rows += [("identity", "", *(f"{total:.2f}" for _, total in moved))] if moved else []
    widths = [max(10, len(head) + 2) for head in heads]
    lines = [("", *heads), *rows]
    return [
        f"{name:15s}" + "".join(f"{cell:>{width}s}" for cell, width in zip(cells, widths, strict=True))
        for name, *cells in lines
    ]


def edit_report(
    args: argparse.Namespace, model: Model, album: Album, moved: list[tuple[float, float]], seconds: dict[str, float]
) -> dict[str, Any]:
    """What was done, for programs."""
    from ..report import model_report, pictures_report, versions

    rows = pictures_report(album.joined)
    stages: list[dict[str, Any]] = [{"edit": None, **rows[0], "address": args.addresses[0]}]
    for k, formula in enumerate(album.edits):
        asked = album.drawings[k + 1].log_prob
        obeys = None if asked is None else round(float(asked[0].exp()), 5)
        identity = {"step": moved[k][0], "total": moved[k][1]} if moved else None
        changed = {name: [a, b] for _, name, a, b in notable(album, k)}
        stages.append({"edit": str(formula), "obeys": obeys, "identity": identity, "changed": changed, **rows[k + 1]})
    how = {"method": album.method.name, "settings": settings_of(album), "subset": album.subset, "seed": args.seed}
    timed = {stage: round(value, 4) for stage, value in seconds.items()}
    return {
        "start": args.addresses[0],
        **how,
        **model_report(model),
        "seconds": timed,
        "versions": versions(),
        "stages": stages,
    }
