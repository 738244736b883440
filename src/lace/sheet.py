"""Contact sheets: pictures on a page, a title above, a caption under each; and PNG files that say what they are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont
from PIL.PngImagePlugin import PngInfo

from .errors import OutputError
from .files import written_whole

__all__ = ["checked_picture_path", "contact_sheet", "save_picture"]

PAGE, INK, FADED = "#fbfaf8", "#1c1b1a", "#77736d"
WIDTH, GAP, MARGIN, LARGEST, SMALLEST, LEADING = 2048, 14, 44, 512, 96, 4
SUFFIXES = (".png", ".jpg", ".jpeg", ".webp")


def columns_for(n: int) -> int:
    """About twice as wide as high, and without a ragged last row where that is near."""
    ideal = math.sqrt(2 * n)
    near = sorted(range(1, n + 1), key=lambda c: abs(c - ideal))[:5]
    full = [c for c in near if n % c == 0 and abs(c - ideal) <= max(1.0, ideal / 3)]
    # Otherwise rows as even as they can be: five are three and two, not four and one.
    return full[0] if full else math.ceil(n / math.ceil(n / math.ceil(ideal)))


def contact_sheet(
    pictures: Sequence[NDArray[np.uint8]],
    captions: Sequence[str],
    title: str = "",
    subtitle: str = "",
    columns: int | None = None,
) -> Image.Image:
    """All pictures, scaled to fit, each with its caption of a line or more; the title above them if there is one."""
    columns = columns or columns_for(len(pictures))
    tile = max(min((WIDTH - GAP * (columns - 1)) // columns, LARGEST, pictures[0].shape[1]), SMALLEST)
    width = max(columns * tile + (columns - 1) * GAP, 640 if title else 0) + 2 * MARGIN
    heads = [(text, size, ink) for text, size, ink in ((title, 34, INK), (subtitle, 20, FADED)) if text]
    top = MARGIN + sum(size + 14 for _, size, _ in heads) + (12 if heads else 0)
    caption = max(12, tile // 20)
    lines = max(text.count("\n") for text in captions) + 1
    row = tile + lines * (caption + LEADING) + 20
    page = Image.new("RGB", (width, top + math.ceil(len(pictures) / columns) * row + MARGIN // 2), PAGE)
    pen, line = ImageDraw.Draw(page), MARGIN - 8
    for text, size, ink in heads:
        pen.text((MARGIN, line), fitted(text, font(size), width - 2 * MARGIN), ink, font(size))
        line += size + 14
    for k, (picture, text) in enumerate(zip(pictures, captions, strict=True)):
        left, upper = MARGIN + k % columns * (tile + GAP), top + k // columns * row
        page.paste(Image.fromarray(picture).resize((tile, tile), Image.Resampling.LANCZOS), (left, upper))
        for k_line, words in enumerate(text.split("\n")):
            place = (left + tile / 2, upper + tile + 6 + k_line * (caption + LEADING))
            pen.text(place, words, FADED if k_line or lines == 1 else INK, font(caption), anchor="ma")
    return page


def font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


def fitted(text: str, face: Any, width: int) -> str:
    """The text, cut where it would leave the page."""
    text = " ".join(text.split())
    if face.getlength(text) <= width:
        return text
    while text and face.getlength(f"{text}...") > width:
        text = text[:-1]
    return f"{text}..."


def checked_picture_path(path: Path) -> Path:
    """A path that a picture can be written to, or a sentence why not."""
    if path.suffix.lower() not in SUFFIXES:
        raise OutputError(f"'{path}' is no picture's name; end it in {', '.join(SUFFIXES)}.")
    if path.is_dir():
        raise OutputError(f"{path} is a folder; give the name of a picture.")
    return path


def save_picture(picture: Image.Image, path: Path, about: dict[str, str]) -> None:
    """Write a picture whole; a PNG carries ``about`` as text."""
    options: dict[str, Any] = {"quality": 95}
    if path.suffix.lower() == ".png":
        text = PngInfo()
        for key, value in about.items():
            text.add_text(f"lace:{key}", value)
        # Strong compression takes longer than drawing the face and saves little of it.
        options = {"compress_level": 3, "pnginfo": text}
    with written_whole(path) as beside:
        picture.save(beside, **options)
