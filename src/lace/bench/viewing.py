"""A viewing of faces: each is drawn once, for the panel that labels and for the independent judge at the same time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from types import TracebackType

import torch
from torch import Tensor

from ..attributes.annotators.faces import FacePanel
from ..attributes.schema import Discrete, Schema
from ..metrics.jury import Jury, Verdict
from ..model import Model
from .gallery import FOLDER, WORKERS, drawn

__all__ = ["Seen", "Viewing"]


@dataclass(frozen=True)
class Seen:
    """What was said of N faces: rows [N, columns] of labels by the panel, and by the independent judge of classes.

    NaN is what nobody was asked, or could say.
    """

    labels: Tensor
    second: Tensor
    features: Tensor

    def __getitem__(self, rows: slice | Tensor) -> Seen:
        return Seen(self.labels[rows], self.second[rows], self.features[rows])


class Viewing:
    """A model and those who look at its faces; close it, or use it in a ``with``."""

    def __init__(self, model: Model, quick: bool) -> None:
        self.model, self.jury = model, Jury.load(FOLDER, model.device, ("independent",))
        self.panel = FacePanel.load(FOLDER, model.schema, model.device, workers=0 if quick else WORKERS)

    def seen(
        self,
        w: Tensor,
        names: Collection[str],
        others: Collection[str] = (),
        watch: Callable[[Tensor], object] | None = None,
    ) -> Seen:
        """What all of them say of the pictures of w, which ``watch`` is shown too.

        The panel is asked for the attributes ``names`` alone, the independent judge for ``others`` as well.
        """
        verdicts: list[Verdict] = []

        def shown() -> Iterator[Tensor]:
            for faces in drawn(self.model.generator, w):
                verdicts.append(self.jury(faces))
                if watch:
                    watch(faces)
                yield faces

        labels = self.panel.read(shown(), names)
        verdict = Verdict.joined(verdicts)
        return Seen(labels, second_opinion(verdict, (*names, *others), self.model.schema), verdict.features)

    def __enter__(self) -> Viewing:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.panel.close()


def second_opinion(verdict: Verdict, names: Collection[str], schema: Schema) -> Tensor:
    """The independent judge's class probabilities in the layout of labels."""
    rows = torch.full((len(verdict), schema.columns), torch.nan)
    for name in names:
        if isinstance(word := schema[name], Discrete):
            rows[:, schema.slice(name)] = verdict.soft(word, "independent").cpu()
    return rows
