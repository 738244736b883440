"""The paper's smooth control of yes/no words: its editing, with the logits divided by a temperature T.

A flow of fixed length goes less far where the energy is less steep, and how steep it is T decides: so from high T to
low a word comes slowly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from ..editing.paper import Paper
from ..metrics.identity import Identity, identity_loss
from ..metrics.jury import Jury
from ..model import Model
from ..sheet import contact_sheet
from .ffhq_editing import TWELVE
from .figures import COLORS, panels, tidy
from .gallery import FOLDER, judged
from .record import Cell, Findings, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["ABOUT", "draw", "measure"]

ABOUT = "One word, from hardly to clearly: the paper's editing at temperatures from 2 down to 0.4."

TEMPERATURES = (2.0, 1.6, 1.3, 1.0, 0.8, 0.6, 0.4)
# A word to add, and faces that lack it.
WORDS = {"glasses": "glasses=no & smile & yaw in -8..8", "smile": "smile=no & yaw in -8..8", "beard": "male & beard=no"}
COLUMNS = ("word", "temperature", "p by heads", "p by judge A", "p by judge B", "identity lost")


def measure(model: Model, quick: bool, say: Callable[[str], None]) -> Findings:
    """A row for each word and temperature; a page with one face of each."""
    n = 4 if quick else 128
    jury, identity = Jury.load(FOLDER, model.device), Identity.load().to(model.device)
    rows: list[tuple[Cell, ...]] = []
    faces, captions = [], []
    for word, sentence in WORDS.items():
        start = model.latents(sentence, n, seed=5)
        faces += list(model.pictures(start.w[:1]))
        captions.append(f"{word}\nbefore")
        attribute = model.schema[word]
        with torch.inference_mode():
            known = torch.cat([identity.embed(model.generator.to_picture(w)) for w in start.w.split(4)])
        for temperature in TEMPERATURES[:: 3 if quick else 1]:
            say(f"{word}: T = {temperature:g}")
            album = model.edit(start, word, method=Paper(False, temperature, TWELVE))
            drawing = album.drawings[1]
            heads = float(drawing.readings[:, model.schema.slice(word)][:, 1].exp().mean())
            verdict = judged(model.generator, jury, drawing.w)
            judges = [float(verdict.soft(attribute, name)[:, 1].mean()) for name in jury.judges]  # type: ignore[arg-type]
            with torch.inference_mode():
                now = torch.cat([identity.embed(model.generator.to_picture(w)) for w in drawing.w.split(4)])
            rows.append((word, temperature, heads, *judges, float(identity_loss(now, known).mean())))
            faces += list(model.pictures(drawing.w[:1]))
            captions.append(f"{word}\nT = {temperature:g}")
    note = f"{n} faces a row, one edit each, without reweighting. Judge A labelled what the heads learned from."
    page = contact_sheet(faces, captions, ABOUT, "", len(captions) // len(WORDS))
    return Findings({"temperature": Table("Smooth control by temperature", COLUMNS, rows, note)}, page)


def draw(tables: dict[str, Table]) -> Figure:
    """p of each word against T."""
    table = tables["temperature"]
    figure, (left, right) = panels(2)
    for color, word in zip(COLORS, WORDS, strict=False):
        own: list[Any] = [row for row in table.rows if row[0] == word]
        temperatures = [row[1] for row in own]
        left.plot(temperatures, [row[4] for row in own], "o-", color=color, label=word)
        right.plot(temperatures, [row[5] for row in own], "o-", color=color, label=word)
    for axis, title, y in ((left, "How clearly the word shows", "p by judge B"), (right, "Identity", "identity lost")):
        axis.invert_xaxis()
        tidy(axis, title, "temperature", y)
    return figure
