"""``lace learn``: teach a model a new word."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..attributes.schema import Attribute
from ..errors import DataError
from .common import load, say, schema_of

if TYPE_CHECKING:
    from ..learning.judges.base import Judge
__all__ = ["learn"]

SOURCES = ("judge", "onnx", "labels", "text", "prompts", "examples")


def learn(args: argparse.Namespace) -> None:
    """Teach a model a new word."""
    if args.export_pictures is not None:
        export(args)
        return
    source = chosen_source(args)
    attribute = wanted(args, source)
    from ..attributes.words import check_new
    from ..learning.parquet import require_parquet

    check_new(attribute, schema_of(args.model))
    if source != "labels":
        require_parquet()
    judge = None if source == "labels" else judge_of(source, args, attribute)
    model = load(args.model, args)
    assert model.shelf is not None
    work = args.work or model.shelf / args.name
    try:
        report = model.teach(attribute, judge, labels=args.labels, n=args.n, work=work, restart=args.restart)
    except KeyboardInterrupt:
        stopped(work, attribute)
    written = model.shelf / f"{args.name}.safetensors"
    if args.out is not None:
        report.save(args.out)
        written = args.out
    facts = {"word": args.name, "model": args.model, "written": str(written), **report.card}
    say(args, facts, [*report.lines(), f"Say it: lace sample {spoken(report.attribute)}", str(written)])


def export(args: argparse.Namespace) -> None:
    """The pictures and the table to fill in."""
    from ..learning.tables import export_pictures

    table = export_pictures(load(args.model, args), args.export_pictures, args.n)
    lines = [f"Fill in the column 'label' of {table}, then: lace learn NAME --labels {table}"]
    say(args, {"model": args.model, "pictures": args.n, "table": str(table)}, lines)


def chosen_source(args: argparse.Namespace) -> str:
    """The one source of labels that was given."""
    if args.name is None:
        raise DataError("Give the word a NAME, or a folder by --export-pictures DIR to label pictures by hand.")
    given = [source for source in SOURCES if getattr(args, source) is not None]
    if len(given) != 1:
        listed = ", ".join(f"--{source}" for source in SOURCES)
        were = f"{' and '.join(given)} were" if given else "none was"
        raise DataError(f"Labels come from one of {listed}; {were} given.")
    return given[0]


def wanted(args: argparse.Namespace, source: str) -> Attribute:
    """The word, from its options; prompts bring their own classes."""
    from ..learning.teaching import asked

    classes = None if args.classes is None else [name.strip() for name in args.classes.split(",")]
    if source == "prompts" and classes is None:
        from ..learning.judges.clip import read_prompts

        classes = list(read_prompts(args.prompts, args.name))
    if source == "text" and classes is None and args.against is None:
        raise DataError("Say what the pictures without the word show, by --against, or give --classes.")
    return asked(args.name, classes, args.range, args.unit, args.about)


def judge_of(source: str, args: argparse.Namespace, attribute: Attribute) -> Judge:
    """The judge that was asked for."""
    if source == "judge":
        from ..learning.judges.function import FunctionJudge

        return FunctionJudge.named(args.judge)
    if source == "onnx":
        from ..learning.judges.onnx import OnnxJudge, read_card

        return OnnxJudge(args.onnx, attribute, None if args.card is None else read_card(args.card))
    from ..model import pick_device

    if source == "examples":
        from ..learning.judges.examples import Backbone, ExamplesJudge

        return ExamplesJudge(attribute, args.examples, Backbone(pick_device(args.device)))
    from ..learning.judges.clip import ClipJudge, prompts_of, read_prompts

    prompts = (
        read_prompts(args.prompts, args.name) if source == "prompts" else prompts_of(attribute, args.text, args.against)
    )
    return ClipJudge(attribute, prompts, args.clip, args.threshold, pick_device(args.device))


def stopped(work: Path, attribute: Attribute) -> None:
    """What Ctrl-C leaves behind, and how to go on."""
    from ..learning.draws import SEED
    from ..learning.journal import Journal

    kept = len(Journal(work, attribute, SEED).read().index)
    print(
        f"lace: stopped. {kept:,} pictures are labelled, and kept in {work}: the same command goes on from there, and "
        f"with -n {kept} it learns from these.",
        file=sys.stderr,
    )
    raise SystemExit(130)


def spoken(attribute: Attribute) -> str:
    """The shortest sentence with the word."""
    facts: Any = attribute
    if hasattr(facts, "classes"):
        return attribute.name if facts.is_yes_no else f"{attribute.name}={facts.classes[0]}"
    return f'"{attribute.name}>{(facts.low + facts.high) / 2:g}"'
