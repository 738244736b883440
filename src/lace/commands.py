"""What the commands of ``lace`` do. Each takes the parsed arguments and prints lines for people, or one JSON object."""

from __future__ import annotations

import argparse
import contextlib
import json
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .attributes.card import read_card
from .attributes.schema import Attribute, Continuous, Schema
from .catalog import CATALOG, find
from .conditions.language import parse
from .samplers.strictness import Strictness

if TYPE_CHECKING:
    from .bank import Estimate
    from .drawing import Drawing
    from .model import Explanation, Model
    from .planning import Plan, Wishes

__all__ = ["attributes", "bench", "explain", "models", "sample", "show"]


def say(args: argparse.Namespace, report: dict[str, Any], lines: Iterable[str]) -> None:
    """Print the report as JSON, or the lines for people."""
    print(json.dumps(report) if args.json else "\n".join(lines))


def models(args: argparse.Namespace) -> None:
    """List the models."""
    rows, lines = [], []
    for entry in CATALOG.values():
        words = [attribute.name for attribute in schema_of(entry.heads)]
        facts = {"name": entry.name, "about": entry.about, "resolution": entry.resolution, "psi": entry.psi}
        rows.append({**facts, "licence": entry.licence, "attributes": words})
        lines += [f"{entry.name:8s}{entry.about}, {entry.resolution}x{entry.resolution}"]
        lines += [f"{'':8s}{len(words)} attributes: {', '.join(words)}", f"{'':8s}{entry.licence}"]
    say(args, {"models": rows}, lines)


def schema_of(heads: Path) -> Schema:
    return Schema.from_json(read_card(heads)["schema"])


def attributes(args: argparse.Namespace) -> None:
    """List the words of a model, and how well its heads know each."""
    heads = find(args.model).heads
    card, schema = read_card(heads), schema_of(heads)
    measured = card["measured"]
    rows = [{**row, "measured": measured[row["name"]]} for row in card["schema"]]
    lines = [f"{a.name:15s}{values_of(a):40s}{quality(a, measured[a.name]):22s}{a.about}" for a in schema]
    say(args, {"model": args.model, "attributes": rows}, [f"{'word':15s}{'values':40s}{'heads are':22s}about", *lines])


def values_of(attribute: Attribute) -> str:
    if isinstance(attribute, Continuous):
        return f"{attribute.low:g} .. {attribute.high:g} {attribute.unit}".strip()
    return "yes, no" if attribute.is_yes_no else ", ".join(attribute.classes)


def quality(attribute: Attribute, row: dict[str, float]) -> str:
    if isinstance(attribute, Continuous):
        return f"within {row['mae']:.2g} {attribute.unit}".strip()
    return f"right in {100 * row['accuracy']:.1f} %"


def explain(args: argparse.Namespace) -> None:
    """Say what a sentence means, how likely it is, and how it would be drawn."""
    understood(args)
    from .planning import percent
    from .report import explain_report

    model = load(args.model, args)
    explanation = model.explain(args.sentence, args.n, **wishes(args))
    draw, picture = measured_speed(model)
    expected = args.n * (explanation.plan.draws_each * draw + picture)
    report = explain_report(args.sentence, explanation, model)
    report["expected"] = {"n": args.n, "draws": args.n * explanation.plan.draws_each, "seconds": expected}
    lines = [str(explanation.formula), interval(explanation.probability)]
    lines += [f"  {percent(p):>8s}  {term}" for term, p in explanation.terms.items()]
    lines += [chosen(explanation.plan)]
    lines += [
        f"{args.n} pictures would take about {duration(expected)}, {duration(args.n * picture)} of it for the pictures"
    ]
    say(args, report, lines)


def measured_speed(model: Model) -> tuple[float, float]:
    """Seconds for one draw and for one picture, here and now."""
    import torch

    index = torch.arange(2048, device=model.device) + len(model.bank.readings)
    w = model.at(["0:0"]).w
    next(model.pictures(w))
    with torch.inference_mode():
        start = time.perf_counter()
        model.readings_at(0, index).sum().item()
        middle = time.perf_counter()
        next(model.pictures(w))
    return (middle - start) / len(index), time.perf_counter() - middle


def understood(args: argparse.Namespace) -> None:
    """Refuse what cannot be drawn before anything is downloaded or loaded for it."""
    parse(args.sentence, schema_of(find(args.model).heads))
    Strictness.of(args.strictness)


def sample(args: argparse.Namespace) -> None:
    """Draw pictures that obey a sentence."""
    understood(args)
    from .outputs import Destination
    from .report import run_report

    destination = Destination.checked(args.out, args.dir, "faces.png")
    destination.check_count(args.n)
    watch = Stopwatch()
    with watch("load"):
        model = load(args.model, args)
        explanation = model.explain(args.sentence, args.n, **wishes(args))
    with watch("latents"):
        drawing = latents(model, args)
    with watch("pictures"):
        captions = [str(address) for address in drawing.addresses] or [f"#{k}" for k in range(len(drawing))]
        about = {"model": model.name, "sentence": args.sentence}
        subtitle = f"{model.name}  ·  {likely(explanation.probability)}  ·  {chosen(explanation.plan)}"
        files = destination.write(model.pictures(drawing.w), captions, about, args.sentence, subtitle)
    report = run_report(args.sentence, explanation, drawing, model, watch.seconds)
    report |= {"seed": args.seed, "strictness": args.strictness}
    if destination.is_folder:
        destination.write_run(drawing, report)
    lines = [*sample_lines(explanation, drawing, watch.seconds), str(destination.path)]
    say(args, {**report, "written": [str(file) for file in files]}, lines)


class Stopwatch:
    """Seconds by stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextlib.contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[stage] = time.perf_counter() - start


def sample_lines(explanation: Explanation, drawing: Drawing, seconds: dict[str, float]) -> list[str]:
    """What was drawn, for people."""
    from .report import evidence

    info = drawing.info
    lines = [str(explanation.formula), interval(explanation.probability)]
    found = evidence(info) if info else None
    if found:
        lines.append(f"{interval(found)} as the particles count")
    lines.append(chosen(explanation.plan))
    latents, pictures = duration(seconds["latents"]), duration(seconds["pictures"])
    draws = f"{info.evaluations:,} draws" if info else "draws"
    return [*lines, f"{len(drawing)} from {draws} in {latents}, their pictures in {pictures}"]


def latents(model: Model, args: argparse.Namespace) -> Drawing:
    """Latents for the sentence, with a bar that counts those found."""
    from tqdm import tqdm

    with tqdm(total=args.n, desc="Looking for latents", unit="", disable=None, leave=False) as bar:
        return model.latents(
            args.sentence, args.n, args.seed, lambda p: bar.update(p.done - bar.n) and None, **wishes(args)
        )


def wishes(args: argparse.Namespace) -> Wishes:
    """How the sentence shall be drawn."""
    return {
        "sampler": args.sampler,
        "strictness": args.strictness,
        "reading": args.reading,
        "max_draws": args.max_draws,
    }


def show(args: argparse.Namespace) -> None:
    """Draw the pictures at addresses, or those of a folder."""
    from .outputs import Destination
    from .report import model_report, pictures_report

    destination = Destination.checked(args.out, args.dir, "shown.png")
    model, drawing = shown(args)
    files = destination.write(model.pictures(drawing.w), args.addresses, {"model": model.name})
    rows = pictures_report(drawing)
    report = {**model_report(model), "pictures": rows, "written": [str(file) for file in files]}
    if destination.is_folder:
        destination.write_run(drawing, report)
    lines = [f"{place}  {in_words(row['attributes'])}" for place, row in zip(args.addresses, rows, strict=True)]
    say(args, report, [*lines, str(destination.path)])


def shown(args: argparse.Namespace) -> tuple[Model, Drawing]:
    """The model and the latents of addresses; a folder's pictures are drawn by the model that made them."""
    import torch

    from .outputs import Run
    from .rng import Address

    places = [Run.of(text) if "#" in text else Address.parse(text) for text in args.addresses]
    addresses = [place for place in places if isinstance(place, Address)]
    report = next((place[0].report() for place in places if isinstance(place, tuple)), {})
    model = load(args.model or report.get("model", "ffhq"), args, report.get("psi"))
    if len(addresses) == len(places):
        return model, model.at(addresses)
    z = [model.at([place]).z.cpu() if isinstance(place, Address) else place[0].latent(place[1]) for place in places]
    return model, model.given(torch.cat(z))


def bench(args: argparse.Namespace) -> None:
    """Measure one thing and write it down."""
    from tqdm import tqdm

    from .bench import run
    from .files import writable_folder

    folder, model = writable_folder(args.out), load(args.model, args)
    with tqdm(desc=args.name, bar_format="{desc}: {postfix} ({elapsed})", disable=None, leave=False) as bar:
        files = list(run(args.name, model, folder, args.quick, lambda stage: bar.set_postfix_str(stage)))
    say(args, {"written": [str(file) for file in files]}, [str(file) for file in files])


def load(name: str, args: argparse.Namespace, psi: float | None = None) -> Model:
    """The model that a command works with; --psi goes before what a folder remembers."""
    from . import model

    return model.load(name, args.device, args.psi if args.psi is not None else psi)


def in_words(values: dict[str, Any]) -> str:
    """A face in words: what is likely, and the numbers."""
    words = []
    for name, value in values.items():
        if isinstance(value, dict):
            words.append(max(value, key=lambda key: value[key]))
        elif name in ("age", "yaw", "pitch"):
            words.append(f"{name} {value:.0f}")
        elif isinstance(value, float) and value > 0.5:
            words.append(name)
    return ", ".join(words)


def chosen(plan: Plan) -> str:
    """A sampler and why it was taken."""
    return f"{plan.sampler.name}: {plan.why}"


def likely(estimate: Estimate) -> str:
    """P = 3 %, or P < 1e-6."""
    from .planning import percent

    value = percent(estimate.probability)
    return f"P {value}" if value.startswith("<") else f"P = {value}"


def interval(estimate: Estimate) -> str:
    from .planning import percent

    return f"{likely(estimate)}  (95 % interval {percent(estimate.low)} to {percent(estimate.high)})"


def duration(value: float) -> str:
    return f"{value:.2g} s" if value < 100 else f"{value:.0f} s"
