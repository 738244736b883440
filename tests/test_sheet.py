"""Contact sheets: every picture in its place, every caption under it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lace.errors import OutputError
from lace.sheet import GAP, MARGIN, columns_for, contact_sheet, fitted, font, save_picture


@pytest.mark.parametrize(
    ("n", "columns"), [(1, 1), (2, 2), (4, 2), (5, 3), (8, 4), (11, 4), (12, 4), (16, 4), (18, 6), (50, 10)]
)
def test_columns(n: int, columns: int) -> None:
    assert columns_for(n) == columns


@pytest.mark.parametrize("n", [1, 3, 8, 17])
def test_every_picture_is_on_the_page(n: int) -> None:
    colours = [(10 * k + 20, 250 - 12 * k, 40) for k in range(n)]
    pictures = [np.full((64, 64, 3), colour, np.uint8) for colour in colours]
    page = np.asarray(contact_sheet(pictures, [f"0:{k}" for k in range(n)], "title", "subtitle"))
    found = {tuple(colour) for colour in page.reshape(-1, 3)[::7].tolist()}
    assert set(colours) <= found


def test_reading_order() -> None:
    pictures = [np.full((256, 256, 3), 60 * k + 30, np.uint8) for k in range(4)]
    page = np.asarray(contact_sheet(pictures, ["a", "b", "c", "d"], "t"))
    rows = [row for row in range(page.shape[0]) if page[row, MARGIN + 100].tolist() in ([30] * 3, [150] * 3)]
    first, last = rows[50], rows[-50]
    assert page[first, MARGIN + 10, 0] == 30
    assert page[first, MARGIN + 256 + GAP + 10, 0] == 90
    assert page[last, MARGIN + 10, 0] == 150
    assert page[last, MARGIN + 256 + GAP + 10, 0] == 210


def test_long_titles_are_cut() -> None:
    face = font(34)
    text = fitted("glasses & smile & " * 40, face, 600)
    assert text.endswith("...")
    assert face.getlength(text) <= 600


def test_a_png_says_what_it_is(tmp_path: Path) -> None:
    save_picture(Image.new("RGB", (4, 4)), tmp_path / "a.png", {"address": "0:1", "sentence": "smile & ~male"})
    with Image.open(tmp_path / "a.png") as picture:
        assert picture.text == {"lace:address": "0:1", "lace:sentence": "smile & ~male"}


def test_a_folder_that_refuses(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError):
        save_picture(Image.new("RGB", (4, 4)), tmp_path / "file" / "a.png", {})
