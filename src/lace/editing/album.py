"""An album: pictures before, and after each of the edits that were made of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..conditions.formula import Formula
from ..conditions.probability import log_probability
from ..drawing import Drawing
from ..errors import ConditionError, ValueRangeError
from .neighbourhood import Neighbourhood
from .paper import Paper
from .scene import Method, Scene, Subjects

if TYPE_CHECKING:
    from ..model import Model

__all__ = ["METHODS", "Album", "method_of"]

METHODS = ("neighbourhood", "paper")


@dataclass(frozen=True)
class Album:
    """``drawings[0]`` is the start, ``drawings[i]`` what the i-th edit made of it; each holds the same n pictures.

    Editing goes on by :meth:`then` and back by :meth:`undo`; both give a new album.
    """

    model: Model
    drawings: tuple[Drawing, ...]
    edits: tuple[Formula, ...]
    method: Method
    subset: bool
    _subjects: tuple[Subjects, ...]

    @classmethod
    def opened(cls, model: Model, subjects: Subjects, start: Drawing, method: Method, subset: bool) -> Album:
        """An album with nothing edited yet."""
        return cls(model, (start,), (), method, subset, (subjects,))

    def __len__(self) -> int:
        return len(self.drawings)

    def then(self, sentence: str | Formula, seed: int = 0, method: Method | None = None) -> Album:
        """The album with one more edit; later edits keep what earlier ones asked for, unless about the same word."""
        now = self.model.formula(sentence)
        first, before = self._subjects[0], self._subjects[-1]
        scene = Scene(self.model, first, before, now, self.edits, self.drawings[0].readings.clone())
        # The same noise for every edit, or a draw would wander from one to the next.
        moved = (method or self.method)(scene, seed)
        after = scene.only_in_subset(moved) if self.subset else moved
        with torch.no_grad():
            readings = self.model.heads(moved.w)
            asked = log_probability(scene.sentence, readings, self.model.schema)
        drawing = Drawing(after.z, after.shown, readings, self.model.schema, [], asked, is_edited=True)
        return replace(
            self,
            drawings=(*self.drawings, drawing),
            edits=(*self.edits, now),
            _subjects=(*self._subjects, after),
        )

    def undo(self, edits: int = 1) -> Album:
        """The album without its last edits."""
        if not 0 <= edits <= len(self.edits):
            raise ValueRangeError(f"{edits} edits cannot be undone: {len(self.edits)} were made.")
        left = len(self.edits) - edits
        return replace(
            self,
            drawings=self.drawings[: left + 1],
            edits=self.edits[:left],
            _subjects=self._subjects[: left + 1],
        )

    def pictures(self) -> Album:
        """The album with the pictures of every drawing made."""
        return replace(self, drawings=tuple(map(self._pictured, self.drawings)))

    def _pictured(self, drawing: Drawing) -> Drawing:
        if drawing.images is not None:
            return drawing
        return replace(drawing, images=np.stack(list(self.model.pictures(drawing.w))))

    @property
    def joined(self) -> Drawing:
        """The start and every edit in one drawing."""
        return self.drawings[0].joined(self.drawings[1:])

    @property
    def images(self) -> NDArray[np.uint8]:
        """All pictures, uint8 [1 + edits, n, H, W, 3]."""
        made = [drawing.images for drawing in self.pictures().drawings]
        return np.stack([images for images in made if images is not None])

    def changes(self, k: int = 0) -> list[dict[str, tuple[Any, Any]]]:
        """For each edit, of the k-th picture: every word's value before it and after it."""
        values = [drawing.values(k) for drawing in self.drawings]
        return [{name: (before[name], after[name]) for name in before} for before, after in pairwise(values)]


def method_of(method: str | Method, amount: float | None, temperature: float | None) -> Method:
    """A method by its name; each has a knob that the other has not."""
    if isinstance(method, Method):
        return method
    if method not in METHODS:
        raise ConditionError(f"No way to edit is called '{method}'; there are {' and '.join(METHODS)}.")
    if method == "paper":
        if amount is not None:
            raise ConditionError("The paper's editing has no amount; leave it out, or take neighbourhood.")
        return Paper(temperature=1.0 if temperature is None else temperature)
    if temperature is not None:
        raise ConditionError("Only the paper's editing has a temperature; add --method paper.")
    return Neighbourhood() if amount is None else Neighbourhood(amount)


def listed(sentences: str | Formula | Iterable[str | Formula]) -> list[str | Formula]:
    """One edit or several, as a list."""
    return [sentences] if isinstance(sentences, str | Formula) else list(sentences)
