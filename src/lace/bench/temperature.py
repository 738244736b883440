"""The paper's smooth control of yes/no words: its editing at temperatures T, as it is written and as its code has it.

code:   only the logit asked for is divided by T: the flow goes to where p = 1/2 + 1/(2T), or on and on below T = 1
paper:  all logits are: the flow goes until p is near 1 at that temperature, which at a low one is soon
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ..drawing import Drawing
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
# Whether only the logit asked for is divided.
FORMS = {"code": True, "paper": False}
COLUMNS = ("word", "form", "temperature", "p by heads", "p by judge A", "p by judge B", "identity lost")


def measure(model: Model, quick: bool, say: Callable[[str], None]) -> Findings:
    """A row for each word and temperature; a page with one face of each."""
    n = 4 if quick else 128
    jury, identity = Jury.load(FOLDER, model.device), Identity.load().to(model.device)
    rows: list[tuple[Cell, ...]] = []
    faces, captions = [], []
    for word, sentence in WORDS.items():
        start = model.latents(sentence, n, seed=5)
        known = embedded(model, identity, start.w)
        for form, picked in FORMS.items():
            faces += list(model.pictures(start.w[:1]))
            captions.append(f"{word}, {form}\nbefore")
            for temperature in TEMPERATURES[:: 3 if quick else 1]:
                say(f"{word}, {form}: T = {temperature:g}")
                method = Paper(False, temperature, TWELVE, picked=picked)
                drawing = model.edit(start, word, method=method).drawings[1]
                lost = identity_loss(embedded(model, identity, drawing.w), known).mean()
                rows.append((word, form, temperature, *seen(model, jury, word, drawing), float(lost)))
                faces += list(model.pictures(drawing.w[:1]))
                captions.append(f"{word}, {form}\nT = {temperature:g}")
    note = f"{n} faces a row, one edit each, without reweighting. Judge A labelled what the heads learned from."
    page = contact_sheet(faces, captions, ABOUT, "", len(captions) // len(WORDS) // len(FORMS))
    return Findings({"temperature": Table("Smooth control by temperature", COLUMNS, rows, note)}, page)


@torch.inference_mode()
def embedded(model: Model, identity: Identity, w: Tensor) -> Tensor:
    return torch.cat([identity.embed(model.generator.to_picture(some)) for some in w.split(4)])


def seen(model: Model, jury: Jury, word: str, drawing: Drawing) -> tuple[float, ...]:
    """How sure the heads and each judge are of a word, on average."""
    attribute = model.schema[word]
    verdict = judged(model.generator, jury, drawing.w)
    heads = drawing.readings[:, model.schema.slice(word)][:, 1].exp()
    return float(heads.mean()), *(float(verdict.soft(attribute, name)[:, 1].mean()) for name in jury.judges)  # type: ignore[arg-type]


def draw(tables: dict[str, Table]) -> Figure:
    """p of each word against T: the code's form in full, the paper's dashed."""
    table = tables["temperature"]
    figure, (left, right) = panels(2)
    for color, word in zip(COLORS, WORDS, strict=False):
        for form, line, label in (("code", "o-", word), ("paper", "o--", f"{word}, as written")):
            own: list[Any] = [row for row in table.rows if row[:2] == (word, form)]
            temperatures = [row[2] for row in own]
            left.plot(temperatures, [row[5] for row in own], line, color=color, label=label)
            right.plot(temperatures, [row[6] for row in own], line, color=color, label=label)
    for axis, title, y in ((left, "How clearly the word shows", "p by judge B"), (right, "Identity", "identity lost")):
        axis.invert_xaxis()
        tidy(axis, title, "temperature", y)
    return figure
