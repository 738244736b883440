"""A model: a frozen generator and the attributes read from it, asked in sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .attributes.card import read_card
from .attributes.heads import FunctionHeads, Heads, JoinedHeads, MlpHeads
from .attributes.schema import Attribute
from .attributes.words import attribute_of, check_new, files_of, shelf_of
from .bank import SIZE, Bank, Estimate
from .catalog import Entry, find
from .conditions.formula import And, Formula, leaves
from .conditions.language import parse
from .conditions.probability import log_probability
from .drawing import Drawing
from .editing.likeness import Likeness
from .errors import DataError, UnknownNameError, UnsatisfiableCondition, ValueRangeError
from .generators.base import Generator
from .gpu.recorded import Recorded
from .planning import DOUBT, Plan, Wish, percent, plan, unsatisfiable
from .rng import Address
from .samplers.base import Callback, Filter, Sampler, Target
from .target import SentenceTarget

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .editing.album import Album
    from .editing.scene import Method
    from .editing.start import Start
    from .learning.judges.base import Judge
    from .learning.teaching import Report
    from .planning import Wishes

__all__ = ["Explanation", "Model", "load"]

# Latents that are held in memory at once.
MOST = 2**20
# Sentences whose plans are kept for when they are asked again; and whose recordings, which take memory of a GPU.
KNOWN, RECORDED = 64, 8


@dataclass(frozen=True)
class Explanation:
    """What a sentence means to a model, before anything is drawn."""

    formula: Formula
    probability: Estimate
    terms: dict[str, float]
    plan: Plan


class Model:
    """Draw from a generator what sentences ask for.

    ``attributes`` are heads, or a list of (attribute, callable of w) pairs: a callable gives class logits [N, C] for a
    :class:`lace.Discrete`, or numbers [N] in natural units for a :class:`lace.Continuous`. ``shelf`` is the folder
    where words that it is taught are kept, with their labels; without one they live as long as the model. ``likeness``
    gives w a unit vector [N, k] for whom its picture shows, which edits then keep.
    """

    def __init__(
        self,
        generator: Generator,
        attributes: Heads | Iterable[tuple[Attribute, Callable[[Tensor], Tensor]]],
        device: str | torch.device = "cpu",
        name: str = "model",
        bank_size: int = SIZE,
        shelf: Path | None = None,
        likeness: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        self.name = name
        self.shelf = shelf
        self.likeness = likeness
        self.device = torch.device(device)
        self.generator = generator.to(self.device).eval()
        self._bank_size = bank_size
        self._know(attributes if isinstance(attributes, Heads) else FunctionHeads(attributes))

    def _know(self, heads: Heads) -> None:
        self.heads = heads.to(self.device)
        self.schema = heads.schema
        self._bank: Bank | None = None
        self._target = lru_cache(RECORDED)(lambda formula, reading: SentenceTarget(self, formula, reading))
        self._remembered = lru_cache(KNOWN)(self._planned)
        self._seen = Recorded(self._see) if self.generator.is_pure and self.heads.is_pure else self._see

    def __repr__(self) -> str:
        return f"<lace.Model {self.name}: {', '.join(attribute.name for attribute in self.schema)}>"

    def __getitem__(self, sentence: str) -> Formula:
        """A sentence, or a single word, as a formula to combine by &, |, ~ and factors."""
        return parse(sentence, self.schema)

    def formula(self, sentence: str | Formula) -> Formula:
        """A sentence as a formula of this model; a formula is checked to be one."""
        if isinstance(sentence, str):
            return parse(sentence, self.schema)
        for leaf in leaves(sentence):
            if leaf.attribute.name not in self.schema or self.schema[leaf.attribute.name] != leaf.attribute:
                raise UnknownNameError(
                    f"The model '{self.name}' has no attribute {leaf.attribute.name} as '{leaf}' means it."
                )
        return sentence

    @property
    def bank(self) -> Bank:
        """The readings of the first draws of seed 0, computed when first needed."""
        if self._bank is None:
            self._bank = Bank.joined(self._bank_of(part) for part in self.heads.parts or (self.heads,))
        return self._bank

    def _bank_of(self, part: Heads) -> Bank:
        """One file of heads has one bank: a new word leaves those of the others as they are."""
        named = self.generator.identity and part.identity
        return Bank.of(
            f"{self.generator.identity}-{part.identity}" if named else "",
            lambda index: part(self.generator.to_w(self.generator.prior(0, index))),
            self.device,
            self._bank_size,
        )

    def read(self, z: Tensor) -> Tensor:
        """What the heads say of latents: readings [N, columns]."""
        return self.heads(self.generator.to_w(z))

    def target(self, sentence: str | Formula, reading: str = "probability") -> Target:
        """A sentence as samplers see it."""
        return self._target(self.formula(sentence), reading)

    @torch.inference_mode()
    def probability(self, sentence: str | Formula) -> Estimate:
        """P(sentence) under the generator's own distribution, from the bank."""
        return Estimate.of(log_probability(self.formula(sentence), self.bank.readings, self.schema).exp())

    def terms(self, sentence: str | Formula) -> dict[str, float]:
        """The probability of each part of an AND, or of each leaf of anything else."""
        formula = self.formula(sentence)
        parts = formula.operands if isinstance(formula, And) else leaves(formula)
        return {str(part): self.probability(part).probability for part in dict.fromkeys(parts)}

    @torch.inference_mode()
    def plan(self, sentence: str | Formula, n: int = 16, **wish: Unpack[Wishes]) -> Plan:
        """The sampler that n pictures of a sentence get, and why."""
        asked = Wish(**wish)
        # A sampler of somebody's own may be nothing to remember a plan by.
        planned = self._planned if isinstance(asked.sampler, Sampler) else self._remembered
        return planned(self.formula(sentence), asked, n)

    def _planned(self, formula: Formula, wish: Wish, n: int) -> Plan:
        return plan(formula, self.bank.readings, self.schema, wish, n)

    def explain(self, sentence: str | Formula, n: int = 16, **wish: Unpack[Wishes]) -> Explanation:
        """What a sentence means here, how likely it is, and how it would be drawn."""
        formula = self.formula(sentence)
        return Explanation(formula, self.probability(formula), self.terms(formula), self.plan(formula, n, **wish))

    def latents(
        self,
        sentence: str | Formula,
        n: int = 16,
        seed: int = 0,
        callback: Callback | None = None,
        **wish: Unpack[Wishes],
    ) -> Drawing:
        """Draw latents that obey a sentence, without their pictures."""
        if not 1 <= n <= MOST:
            raise ValueRangeError(f"n must be at least 1 and at most {MOST:,}, not {n}; several seeds draw more.")
        formula = self.formula(sentence)
        chosen = self.plan(formula, n, **wish)
        limit = Wish(**wish).max_draws
        # Ten times the limit by the bank's estimate is hopeless; short of that it is tried.
        if isinstance(chosen.sampler, Filter) and n * chosen.draws_each > 10 * limit:
            raise self._out_of_reach(formula, n, f"they would take far more than {limit:,} draws")
        try:
            samples = chosen.sampler(self.target(formula, chosen.reading), n, seed, callback)
        except UnsatisfiableCondition as error:
            raise self._out_of_reach(formula, n, str(error).rstrip(".")) from None
        drawing = self._read_out(samples.z, samples.addresses, formula)
        if wish.get("sampler", "auto") == "auto" and not samples.addresses:
            self._check_faith(drawing, formula, n)
        return replace(drawing, info=samples.info, plan=chosen)

    def _check_faith(self, drawing: Drawing, formula: Formula, n: int) -> None:
        """Refuse particles that ended where the sentence is hardly true: nobody asked for those."""
        log_prob = drawing.log_prob
        mean = 0.0 if log_prob is None else float(log_prob.exp().mean())
        if mean < DOUBT:
            raise self._out_of_reach(formula, n, f"the nearest that was found obeys with {percent(mean)} on average")

    def sample(
        self,
        sentence: str | Formula,
        n: int = 16,
        seed: int = 0,
        callback: Callback | None = None,
        **wish: Unpack[Wishes],
    ) -> Drawing:
        """Draw n pictures that obey a sentence; the same arguments give the same pictures.

        Keywords say how: ``sampler`` (a name, or a sampler), ``strictness`` from 0 to 1, ``reading`` (probability, or
        the paper's energy), ``max_draws``.
        """
        drawing = self.latents(sentence, n, seed, callback, **wish)
        return replace(drawing, images=np.stack(list(self.pictures(drawing.w))))

    def learn(
        self,
        name: str,
        judge: Callable[[Any], Any] | Judge | str | None = None,
        *,
        labels: Path | str | None = None,
        classes: Iterable[str] | None = None,
        range: tuple[float, float] | None = None,
        unit: str = "",
        about: str = "",
        n: int = 2000,
        work: Path | str | None = None,
        restart: bool = False,
    ) -> Report:
        """Teach the model a word; from then on it stands in sentences.

        ``judge`` takes pictures, uint8 [N, H, W, 3], and gives an answer for each: yes or no, a probability, one of
        ``classes``, or a number in ``range``; None where it cannot say. FILE.py:FUNCTION names one. ``labels`` is a
        file (CSV or Parquet: address, label) in its place. n pictures are drawn for a judge; what it says is kept in
        ``work``, so that the same call goes on where it was stopped. A word that cannot be read raises
        :class:`lace.UnreadableWord` with the reason.
        """
        from .learning.teaching import asked

        attribute = asked(name, classes, range, unit, about)
        return self.teach(attribute, judge, labels=labels, n=n, work=work, restart=restart)

    def teach(
        self,
        attribute: Attribute,
        judge: Callable[[Any], Any] | Judge | str | None = None,
        *,
        labels: Path | str | None = None,
        n: int = 2000,
        work: Path | str | None = None,
        restart: bool = False,
    ) -> Report:
        """:meth:`learn`, for a word that is described as an attribute."""
        from .learning.teaching import taught_by

        check_new(attribute, self.schema)
        folder = Path(work) if work is not None else self.shelf and self.shelf / attribute.name
        report = taught_by(self, attribute, judge, labels, n, folder, restart)
        if self.shelf is not None:
            report.save(self.shelf / f"{attribute.name}.safetensors")
        self._know(JoinedHeads([self.heads, report.heads]))
        return report

    def add(self, path: Path | str) -> None:
        """Take in a word that :meth:`learn` made and its report saved, until the model is gone."""
        card, heads = read_card(Path(path)), MlpHeads.load(Path(path))
        if card.get("model") != self.generator.weights_identity:
            raise DataError(f"{path} was made for '{card.get('model')}', not for '{self.generator.weights_identity}'.")
        check_new(attribute_of(card, Path(path)), self.schema)
        self._know(JoinedHeads([self.heads, heads]))

    def at(self, addresses: Iterable[Address | str]) -> Drawing:
        """The latents at addresses, whatever they show."""
        places = [Address.parse(place) if isinstance(place, str) else place for place in addresses]
        if not places:
            raise ValueRangeError("Give at least one address, for example 0:48213.")
        z = torch.cat([self.generator.prior(a.seed, torch.tensor([a.index], device=self.device)) for a in places])
        return self._read_out(z, places)

    def given(self, z: Tensor, w: Tensor | None = None) -> Drawing:
        """Latents as they are given [n, latent_dim], and w where it was edited; they have no addresses."""
        if z.dim() != 2 or z.shape[1] != self.generator.latent_dim:
            raise ValueRangeError(
                f"Latents of '{self.name}' are [n, {self.generator.latent_dim}], not {list(z.shape)}: "
                "they were drawn from another model."
            )
        drawing = self._read_out(z.to(self.device), [])
        return drawing if w is None else replace(drawing, w=self.fitting(w, drawing.w), is_edited=True)

    def fitting(self, w: Tensor, own: Tensor) -> Tensor:
        """w as this model's own is, if its shape is [n, dim], or [n, styles, dim] with a row for each style."""
        styles = len(self.generator.style_layers or ())
        if w.shape[1:] not in (own.shape[1:], (styles, *own.shape[1:])):
            raise ValueRangeError(
                f"w of shape {list(w.shape)} does not fit: that of '{self.name}' is {list(own.shape)}."
            )
        return w.to(own)

    def edit(
        self,
        start: Start,
        edits: str | Formula | Iterable[str | Formula] = (),
        seed: int = 0,
        method: str | Method = "neighbourhood",
        amount: float | None = None,
        temperature: float | None = None,
        subset: bool = False,
        space: str = "z",
    ) -> Album:
        """Change pictures by one sentence after the other, and keep the rest of them.

        ``start`` is an address or several, a drawing, or latents [n, dim] of the ``space`` z or w (a w may also have a
        row for each style). ``amount`` from 0 to 1 says how much may change; ``subset`` changes only those styles that
        the paper's table gives to an edit. The pictures are made when asked for: ``album.images``.
        """
        from .editing.album import Album, listed, method_of
        from .editing.start import begun

        subjects, drawing = begun(self, start, space)
        album = Album.opened(self, subjects, drawing, method_of(method, amount, temperature), subset)
        for sentence in listed(edits):
            album = album.then(sentence, seed)
        return album

    @torch.inference_mode()
    def pictures(self, w: Tensor, batch: int = 16) -> Iterator[NDArray[np.uint8]]:
        """The pictures of w, one uint8 [H, W, 3] after the other."""
        for rows in w.split(1 if self.device.type == "cpu" else batch):
            pictures = (self.generator.to_picture(rows) * 127.5 + 128).clamp(0, 255).to(torch.uint8)
            yield from pictures.permute(0, 2, 3, 1).cpu().numpy()

    @torch.inference_mode()
    def _read_out(self, z: Tensor, addresses: list[Address], formula: Formula | None = None) -> Drawing:
        # Matrix products round differently in batches; on a CPU every row goes alone, so that an address always gives
        # the same picture to the last bit.
        rows = z.split(1) if self.device.type == "cpu" else (z,)
        w, readings = (torch.cat(part) for part in zip(*(self._seen(row) for row in rows), strict=True))
        log_prob = None if formula is None else self._log_prob(formula, z, readings)
        return Drawing(z, w, readings, self.schema, addresses, log_prob)

    def _log_prob(self, formula: Formula, z: Tensor, readings: Tensor) -> Tensor:
        """log p(formula | z): from the readings, or on a GPU by what was recorded, which is sooner done."""
        target = self.target(formula)
        return target.value(z) if target.draft else log_probability(formula, readings, self.schema)

    def _see(self, z: Tensor) -> tuple[Tensor, Tensor]:
        w = self.generator.to_w(z)
        return w, self.heads(w)

    def _out_of_reach(self, formula: Formula, n: int, tried: str) -> UnsatisfiableCondition:
        return unsatisfiable(formula, n, self.probability(formula).probability, self.terms(formula), tried)


def load(name: str | Path = "ffhq", device: str = "auto", psi: float | None = None, label: int | None = None) -> Model:
    """A model by its name, or by a checkpoint's path; weights are downloaded, or imported, on first use.

    A smaller psi gives better, more alike pictures. ``label`` fixes the class of a conditional generator, which else is
    drawn with all the rest.
    """
    entry = find(name)
    psi = entry.psi if psi is None else psi
    if not 0 < psi <= 1:
        raise ValueRangeError(f"psi must be above 0 and at most 1, not {psi:g}.")
    place = pick_device(device)
    if label is not None and not entry.classes:
        raise ValueRangeError(f"'{entry.name}' has no classes; leave out the label {label}.")
    generator = entry.load_generator(psi) if label is None else entry.load_generator(psi, label)
    likeness = Likeness.load(entry.likeness).to(place) if entry.likeness else None
    return Model(generator, heads_of(entry), place, entry.name, shelf=shelf_of(entry.name), likeness=likeness)


def heads_of(entry: Entry) -> Heads:
    """The heads that came with a model and those of the words that it was taught; there may be none."""
    parts = [MlpHeads.load(path) for path in files_of(entry.heads, entry.name)]
    if not parts:
        return FunctionHeads([])
    return parts[0] if len(parts) == 1 else JoinedHeads(parts)


def pick_device(name: str) -> torch.device:
    """A device by name; auto takes a CUDA GPU where there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        # A device that gives no number back (meta) is no place for a model.
        torch.zeros((), device=device).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ValueRangeError(f"The device '{name}' cannot be used here; take auto, cpu or cuda.") from error
    return device
