"""A word from its name to its file: labels from a judge or a table, a lesson, a card."""

from __future__ import annotations

import contextlib
import math
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from .. import __version__
from ..attributes.heads import MlpHeads
from ..attributes.schema import Attribute, Continuous, Discrete
from ..errors import DataError, ValueRangeError
from .draws import PSI, SEED, latents_at
from .journal import Journal
from .judges.base import Judge
from .judges.function import FunctionJudge
from .labelling import Labelling
from .lesson import FEWEST, Labelled, base_rate, learn_from
from .parquet import require_parquet
from .tables import read_table

if TYPE_CHECKING:
    from ..model import Model

__all__ = ["Report", "asked", "taught_by"]


@dataclass(frozen=True)
class Report:
    """A word that was learned: its head, and the card that travels with it."""

    attribute: Attribute
    heads: MlpHeads
    card: dict[str, Any]

    def save(self, path: Path | str) -> None:
        """Write the word as one file, to be given away or added elsewhere."""
        self.heads.save(Path(path), self.card)

    def lines(self) -> list[str]:
        """The report for people."""
        return [*_how_well(self.attribute, self.card), *_how_common(self.attribute, self.card), *_noise(self.card)]

    def __str__(self) -> str:
        return "\n".join(self.lines())


def asked(
    name: str, classes: Iterable[str] | None, range: tuple[float, float] | None, unit: str, about: str
) -> Attribute:
    """The word that somebody wants: yes/no, one of several classes, or a number in a unit."""
    if range is None:
        if unit:
            raise DataError("A unit belongs to a number; give its range too.")
        return Discrete(name, ("no", "yes") if classes is None else tuple(classes), about=about)
    if classes is not None:
        raise DataError("A word has either classes or a range, not both.")
    low, high = (float(end) for end in range)
    if not (math.isfinite(low) and math.isfinite(high)):
        raise DataError("A range runs from one finite number to another.")
    return Continuous(name, low, high, unit, about=about)


def taught_by(
    model: Model,
    attribute: Attribute,
    judge: Callable[[Any], Any] | Judge | str | None,
    labels: Path | str | None,
    n: int,
    folder: Path | None,
    restart: bool,
) -> Report:
    """A word learned from a judge or from a file of labels, whichever was given."""
    if (judge is None) == (labels is None):
        raise DataError("Give either a judge or a file of labels.")
    if labels is not None:
        return teach_by_table(model, attribute, Path(labels))
    if isinstance(judge, str):
        judge = FunctionJudge.named(judge)
    elif not isinstance(judge, Judge):
        judge = FunctionJudge(judge)  # type: ignore[arg-type]
    return teach_by_judge(model, attribute, judge, n, folder, restart)


def teach_by_judge(
    model: Model, attribute: Attribute, judge: Judge, n: int, folder: Path | None, restart: bool = False
) -> Report:
    """Show a judge n pictures and learn from what it says; ``folder`` keeps the labels, where there is one."""
    require_parquet()
    if n < FEWEST:
        raise ValueRangeError(f"A word needs at least {FEWEST} labelled pictures, not {n}; 2,000 are a good start.")
    about = {"word": _decides(attribute), "model": model.generator.weights_identity, "judge": judge.about}
    with _folder(folder) as place, Journal.opened(place, attribute, SEED, about, restart) as journal:
        data = Labelling(model, attribute, journal, n).run(judge)
        notes = {**journal.notes, **judge.notes()}
        journal.note(notes)
    return _report(model, attribute, data, {"judge": judge.about, "psi": list(PSI), **notes})


def teach_by_table(model: Model, attribute: Attribute, path: Path) -> Report:
    """Learn from a file of labels."""
    table = read_table(path, attribute)
    rows = torch.from_numpy(table.rows).to(model.device, torch.float32)
    if isinstance(attribute, Continuous):
        rows = (rows - attribute.low) / attribute.span
    w = latents_at(model.generator, table.addresses, table.psi.to(model.device))
    own = model.generator.psi or 1.0
    psi = table.psi.nan_to_num(own)
    about = {"judge": {"kind": "labels", "name": path.name}, "psi": [float(psi.min()), float(psi.max())]}
    again = {} if table.agreement is None else {"agreement": table.agreement}
    return _report(model, attribute, Labelled(w, rows, torch.ones(len(rows), device=model.device)), {**about, **again})


def _report(model: Model, attribute: Attribute, data: Labelled, about: dict[str, Any]) -> Report:
    lesson = learn_from(attribute, data)
    known = data.known()
    likely = known.labels.max(dim=1).values
    soft = {} if isinstance(attribute, Continuous) or bool((likely > 0.999).all()) else {"sure": float(likely.mean())}
    card = {
        "model": model.generator.weights_identity,
        "labels": len(known.labels),
        "missing": len(data.labels) - len(known.labels),
        "base_rate": base_rate(attribute, data),
        **about,
        **soft,
        **lesson.figures,
        "measured": {attribute.name: lesson.figures["measured"]},
        "lace": __version__,
    }
    return Report(lesson.heads.schema.attributes[0], lesson.heads.cpu(), card)


@contextlib.contextmanager
def _folder(folder: Path | None) -> Iterator[Path]:
    """The folder, or one that is gone afterwards."""
    if folder is not None:
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="lace-") as name:
        yield Path(name)


def _decides(attribute: Attribute) -> list[Any]:
    """What labels of a word depend on."""
    if isinstance(attribute, Continuous):
        return [attribute.name, "number"]
    return [attribute.name, *attribute.classes]


def _how_well(attribute: Attribute, card: dict[str, Any]) -> Iterator[str]:
    measured, test = card["measured"][attribute.name], card["test"]
    asked = (
        f"{test['figure']} {test['value']:.3f} ({test['low']:.3f} to {test['high']:.3f}; guessing {test['chance']:g})"
    )
    missing = f", {card['missing']:,} without an answer" if card["missing"] else ""
    yield f"{attribute.name}: {card['labels']:,} labels by {card['judge']['name']}{missing}"
    if isinstance(attribute, Continuous):
        unit = f" {attribute.unit}" if attribute.unit else ""
        yield f"held out: within {measured['mae']:.3g}{unit} on average, sigma {measured['sigma']:.3g}{unit}, {asked}"
        return
    yield (
        f"held out: right in {100 * measured['accuracy']:.1f} % (always the commonest: "
        f"{100 * measured['commonest']:.1f} %), {asked}, calibration error {100 * measured['ece']:.1f} %"
    )


def _how_common(attribute: Attribute, card: dict[str, Any]) -> Iterator[str]:
    rates = card["base_rate"]
    if isinstance(attribute, Continuous):
        unit = f" {attribute.unit}" if attribute.unit else ""
        yield f"among all draws: {rates['value']['mean']:.3g}{unit} on average"
        return
    shown = ["yes"] if attribute.is_yes_no else attribute.classes
    parts = [
        f"{name} {100 * rates[name]['mean']:.2g} % ({100 * rates[name]['interval'][0]:.2g} to "
        f"{100 * rates[name]['interval'][1]:.2g} %)"
        for name in shown
    ]
    yield f"among all draws: {', '.join(parts)}"


def _noise(card: dict[str, Any]) -> Iterator[str]:
    """What is known of the labels themselves."""
    if "sure" in card:
        yield f"the labels are soft: on average the judge is {100 * card['sure']:.1f} % sure, and no head can be surer"
    if "agreement" in card:
        agreement, is_share = card["agreement"], "accuracy" in next(iter(card["measured"].values()))
        said = f"agree in {100 * agreement:.1f} %" if is_share else f"differ by {agreement:.3g} on average"
        yield f"pictures that were labelled twice: their labels {said}; no head can do better"
    if "accuracy_on_examples" in card:
        yield f"the probe is right in {100 * card['accuracy_on_examples']:.1f} % of examples that it did not see"
    if "domain_gap" in card:
        yield (
            f"domain gap: examples and generated pictures differ with an AUC of {card['domain_gap']:.3f} (0.5: alike; "
            "1: another kind of picture, so look whether the answers are right)"
        )
