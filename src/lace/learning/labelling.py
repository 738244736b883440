"""The loop of labelling: rounds are planned, pictures drawn, the judge asked, and every batch kept before the next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from tqdm import tqdm

from ..attributes.schema import Attribute, Continuous, Discrete
from .answers import rows_of
from .draws import latents, truncation
from .journal import Journal, Kept
from .judges.base import Judge
from .lesson import Labelled, quick_heads, shares
from .rounds import Chooser, Round, choose, is_rare, read_rounds, weights

if TYPE_CHECKING:
    from ..model import Model

__all__ = ["Labelling"]

# Pictures that a judge sees at once.
BATCH = {"cpu": 16, "cuda": 64}
# A round that looks for rare classes meets its number only on average; short of the total by less than this is enough.
ENOUGH = 0.95


@dataclass
class Labelling:
    """n pictures of a model on their way to a judge and into a journal."""

    model: Model
    attribute: Attribute
    journal: Journal
    n: int
    rounds: list[Round] = field(default_factory=list)
    _taken: dict[int, tuple[Tensor, Tensor]] = field(default_factory=dict)

    def run(self, judge: Judge) -> Labelled:
        """Label until there are n; what the journal holds already is never asked about again."""
        self.rounds = read_rounds(self.journal.folder)
        kept = self.journal.read()
        while len(kept.index) < self.n:
            pending = self._pending(kept)
            if pending is None:
                if kept.index.size >= ENOUGH * self.n and self.rounds[-1].chooser is not None:
                    break
                self._plan(kept)
                continue
            self._label(judge, len(self.rounds) - 1, *pending, len(kept.index))
            kept = self.journal.read()
        return self.labelled(kept)

    def latents(self, index: Tensor) -> Tensor:
        return latents(self.model.generator, index)

    def labelled(self, kept: Kept) -> Labelled:
        """The journal as what heads learn from."""
        device = self.model.device
        index = torch.from_numpy(kept.index).to(device)
        w, rows = self.latents(index), torch.from_numpy(kept.rows).to(device)
        if isinstance(self.attribute, Continuous):
            rows = (rows - self.attribute.low) / self.attribute.span
        considered = [(one, self._considered(number, kept)) for number, one in enumerate(self.rounds)]
        return Labelled(w, rows.float(), weights(considered, index, w).float())

    def taken(self, number: int) -> tuple[Tensor, Tensor]:
        """The addresses that a round labels, with chances."""
        if number not in self._taken:
            self._taken[number] = self.rounds[number].taken(self.latents, self.model.device)
        return self._taken[number]

    def _considered(self, number: int, kept: Kept) -> int:
        """How many addresses of a round are settled: all before the first that still waits for its label."""
        one, taken = self.rounds[number], self.taken(number)[0].cpu().numpy()
        waiting = taken[~np.isin(taken, kept.index)]
        return int(waiting[0]) - one.first if len(waiting) else one.count

    def _pending(self, kept: Kept) -> tuple[Tensor, Tensor] | None:
        """What the last round has still to label, with chances."""
        if not self.rounds:
            return None
        index, chance = self.taken(len(self.rounds) - 1)
        left = torch.from_numpy(~np.isin(index.cpu().numpy(), kept.index)).to(index.device)
        return (index[left], chance[left]) if bool(left.any()) else None

    def _plan(self, kept: Kept) -> None:
        """One round more: half of all pictures come as they are, the others in two rounds where a class is rare."""
        first = self.rounds[-1].first + self.rounds[-1].count if self.rounds else 0
        missing = self.n - len(kept.index)
        if not self.rounds:
            one = Round(0, -(-self.n // 2))
        elif (chooser := self._chooser(kept)) is not None:
            one = choose(chooser, first, min(-(-self.n // 4), missing), self.latents, self.model.device)
        else:
            one = Round(first, missing if len(self.rounds) > 1 else min(-(-self.n // 4), missing))
        one.save(self.journal.folder, len(self.rounds))
        self.rounds.append(one)

    def _chooser(self, kept: Kept) -> Chooser | None:
        """Heads that know what is rare, where something is; each fold is judged by what the other taught."""
        if not isinstance(self.attribute, Discrete) or not len(kept.index):
            return None
        data, fold = self.labelled(kept), torch.from_numpy(kept.index % 2).to(self.model.device)
        share, seen = shares(self.attribute, data)
        if not is_rare(self.attribute, share, seen):
            return None
        halves = [
            Labelled(data.w[rows], data.labels[rows], data.weights[rows]).known() for rows in (fold == 1, fold == 0)
        ]
        even, odd = (quick_heads(self.attribute, half) for half in halves)
        return Chooser((even, odd), share.clamp_min(1 / (2 * len(kept.index))))

    def _label(self, judge: Judge, number: int, index: Tensor, chance: Tensor, done: int) -> None:
        """Ask about the draws of a round in order, one batch after the other."""
        batch = BATCH.get(self.model.device.type, BATCH["cpu"])
        limit = self.n - done if self.rounds[number].chooser is None else len(index)
        with tqdm(
            desc=f"Labelling {self.attribute.name}", total=self.n, initial=done, unit="", disable=None, leave=False
        ) as bar:
            for rows, chances in zip(index[:limit].split(batch), chance[:limit].split(batch), strict=True):
                pictures = np.stack(list(self._pictures(rows, bar)))
                answers = rows_of(self.attribute, judge(pictures), len(rows))
                psi = [None] * len(rows) if self.model.generator.psi is None else truncation(rows).cpu().numpy()
                self.journal.write(rows.cpu().numpy(), psi, number, chances.cpu().numpy(), answers)

    def _pictures(self, index: Tensor, bar: Any) -> Iterator[NDArray[np.uint8]]:
        """The pictures of a batch, counted as they are drawn."""
        for picture in self.model.pictures(self.latents(index)):
            bar.update()
            yield picture
