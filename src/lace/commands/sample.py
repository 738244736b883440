"""``lace sample``: draw pictures that obey a sentence."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from .common import Stopwatch, chosen, duration, interval, likely, load, say, understood, wishes

if TYPE_CHECKING:
    from ..drawing import Drawing
    from ..model import Explanation, Model

__all__ = ["sample"]

# Below this mean p(sentence) people should be told.
SURE = 0.5


def sample(args: argparse.Namespace) -> None:
    """Draw pictures that obey a sentence."""
    understood(args)
    from ..outputs import Destination
    from ..report import run_report

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


def sample_lines(explanation: Explanation, drawing: Drawing, seconds: dict[str, float]) -> list[str]:
    """What was drawn, for people."""
    from ..report import evidence

    info = drawing.info
    lines = [str(explanation.formula), interval(explanation.probability)]
    found = evidence(info) if info else None
    if found:
        lines.append(f"{interval(found)} as the particles count")
    lines.append(chosen(explanation.plan))
    lines += doubts(drawing)
    latents, pictures = duration(seconds["latents"]), duration(seconds["pictures"])
    draws = f"{info.evaluations:,} draws" if info else "draws"
    return [*lines, f"{len(drawing)} from {draws} in {latents}, their pictures in {pictures}"]


def doubts(drawing: Drawing) -> list[str]:
    """A warning where the heads are unsure of what was drawn: the posterior of what is rare is mostly their doubt."""
    from ..planning import percent

    sure = 1.0 if drawing.log_prob is None else float(drawing.log_prob.exp().mean())
    if sure >= SURE:
        return []
    return [f"the heads are {percent(sure)} sure of these on average; a higher --strictness takes clearer ones"]


def latents(model: Model, args: argparse.Namespace) -> Drawing:
    """Latents for the sentence, with a bar that counts those found."""
    from tqdm import tqdm

    with tqdm(total=args.n, desc="Looking for latents", unit="", disable=None, leave=False) as bar:
        return model.latents(
            args.sentence, args.n, args.seed, lambda p: bar.update(p.done - bar.n) and None, **wishes(args)
        )
