"""The command line. It parses arguments and turns errors into one sentence and exit code 2; commands/ does the work.

Nothing heavy is imported until a command needs it: ``lace --help`` answers at once.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from . import __version__, commands
from .bench import BENCHES
from .errors import LaceError

__all__ = ["main"]

EXAMPLES = """examples:
  lace sample "glasses & smile & ~male"              eight faces on a sheet, faces.png
  lace sample "age in 50..60 | gray" -n 100 --dir old    one PNG a picture, with run.json
  lace explain "bald & female"                       how likely, and how it would be drawn
  lace show 0:48213                                  that face again
  lace edit 0:48213 "yaw=25" "age=60" "glasses"      that face turned, aged, and with glasses
  lace learn dark --judge mine.py:dark               a word of your own, by a function that looks at pictures

a sentence: words, = > < and "in 50..60" for numbers, ~ (not), & (and), | (or), 2*word to insist
"""

SAMPLERS = """auto; an exact one: rejection, level-set, smc, elliptical, pcnl; or one of the paper's: ode, euler,
langevin, pc, with -authors behind it as the released code does it"""


JUDGE = """labels by a function that takes pictures, uint8 [N, H, W, 3], and gives an answer for each; or
package.module:function"""
EXAMPLE_FOLDERS = "labels by a probe on your own pictures: YES_DIR NO_DIR, or a folder for each class"
EXPORT = "write n pictures and the table to fill in for --labels"


class Help(argparse.ArgumentDefaultsHelpFormatter):
    """Help with the defaults of options that have one."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        return super()._get_help_string(action) if action.default not in (None, False, "") else action.help


class Parser(argparse.ArgumentParser):
    """Argument errors as one sentence."""

    def error(self, message: str) -> NoReturn:
        message = message.removeprefix("argument ").rstrip(".")
        self.exit(2, f"lace: {message}. See {self.prog} --help.\n")


def parser() -> Parser:
    """All commands and their options."""
    top = Parser(
        prog="lace",
        description="Words for a frozen image generator.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"lace {__version__}")
    commands_of = top.add_subparsers(metavar="COMMAND", required=True, parser_class=Parser)

    def command(name: str, run: Callable[[argparse.Namespace], None], about: str) -> Parser:
        sub: Parser = commands_of.add_parser(name, help=about, description=about, formatter_class=Help)
        sub.set_defaults(run=run)
        sub.add_argument("--json", action="store_true", help="print one JSON object")
        return sub

    sub = command("sample", commands.sample, "draw pictures that obey a sentence")
    add_sentence(sub)
    sub.add_argument("--seed", type=whole, default=0, help="another seed gives other pictures")
    add_output(sub, "faces.png")
    add_model(sub, "ffhq")
    sub = command("explain", commands.explain, "say what a sentence means, how likely it is, and how it would be drawn")
    add_sentence(sub)
    add_model(sub, "ffhq")
    sub = command("show", commands.show, "draw the pictures at addresses (0:48213) or of a folder (DIR#3)")
    sub.add_argument(
        "addresses", nargs="+", metavar="ADDRESS", help="seed:index, or DIR#k for the k-th picture of a folder"
    )
    add_output(sub, "shown.png")
    add_model(sub, None)
    sub = command("edit", commands.edit, "change a picture by one sentence after the other, and keep the rest of it")
    sub.add_argument(
        "addresses", nargs=1, metavar="START", help="seed:index, or DIR#k for the k-th picture of a folder"
    )
    sub.add_argument("edits", nargs="+", metavar="EDIT", help="what the picture shall show next")
    sub.add_argument("--method", default="neighbourhood", help="neighbourhood, or paper: its flow")
    sub.add_argument("--amount", type=float, default=None, help="how much may change, from 0 to 1 (neighbourhood: 0.1)")
    sub.add_argument(
        "--temperature",
        type=float,
        default=None,
        help="with --method paper: from 2, a word hardly, to 0.7, very clearly (1)",
    )
    sub.add_argument("--subset", action="store_true", help="change only the styles that the paper gives to an edit")
    sub.add_argument("--seed", type=whole, default=0, help="another seed gives other edits")
    add_output(sub, "edited.png")
    add_model(sub, None)
    command("models", commands.models, "list the models")
    sub = command("import", commands.import_, "make a StyleGAN2 checkpoint a model; nothing in the file is run")
    sub.add_argument("file", metavar="FILE", type=Path, help="NVIDIA's .pkl, rosinality's .pt, or safetensors")
    sub.add_argument("--name", default=None, help="what to call the model (default: the file's name)")
    sub = command("attributes", commands.attributes, "list the words of a model; take in or forget a taught one")
    sub.add_argument("--model", default="ffhq", help="a model's name")
    change = sub.add_mutually_exclusive_group()
    change.add_argument("--add", type=Path, metavar="FILE", default=None, help="take in a word that lace learn wrote")
    change.add_argument("--remove", metavar="NAME", default=None, help="forget a taught word; its labels stay")
    add_learn(command("learn", commands.learn, "teach a model a new word"))
    sub = command("bench", commands.bench, "measure, and write numbers, a table and a figure")
    sub.add_argument("name", metavar="NAME", choices=BENCHES, help=", ".join(BENCHES))
    sub.add_argument("--quick", action="store_true", help="a small run, minutes on a CPU")
    sub.add_argument("--out", type=Path, default=Path("benchmarks"), help="the folder for what is measured")
    add_model(sub, None)
    return top


def add_sentence(sub: Parser) -> None:
    sub.add_argument("sentence", metavar="SENTENCE", help="what the pictures shall show")
    sub.add_argument("-n", type=positive, default=8, help="how many pictures")
    sub.add_argument("--sampler", default="auto", help=SAMPLERS)
    sub.add_argument("--strictness", type=float, default=0.0, help="0 draws exactly, 1 takes only the clearest cases")
    sub.add_argument("--reading", default="probability", help="probability, or energy: the paper's operators")
    sub.add_argument("--max-draws", type=positive, default=2**20, help="give up after so many draws")


def add_learn(sub: Parser) -> None:
    sub.add_argument("name", metavar="NAME", nargs="?", default=None, help="the new word")
    sub.add_argument("--judge", metavar="FILE.py:FUNCTION", default=None, help=JUDGE)
    sub.add_argument("--onnx", type=Path, metavar="MODEL", default=None, help="labels by an ONNX network")
    sub.add_argument("--card", type=Path, default=None, help="how to use that network, JSON (default: MODEL's .json)")
    sub.add_argument("--labels", type=Path, metavar="FILE", default=None, help="labels from a CSV or Parquet file")
    sub.add_argument("--text", nargs="+", metavar="PROMPT", default=None, help="labels by CLIP: pictures with the word")
    sub.add_argument("--against", nargs="+", metavar="PROMPT", default=None, help="and those without it")
    sub.add_argument("--prompts", default=None, help="CLIP prompts from a JSON file; afhq-cats has the paper's")
    sub.add_argument("--clip", default="openai/clip-vit-base-patch16", help="CLIP's weights: a folder or a hub's name")
    sub.add_argument("--threshold", type=float, default=0.3, help="CLIP's answers below this are no labels")
    sub.add_argument("--examples", nargs="+", type=Path, metavar="DIR", default=None, help=EXAMPLE_FOLDERS)
    sub.add_argument("--classes", metavar="A,B,C", default=None, help="the word is one of these (default: yes or no)")
    sub.add_argument("--range", nargs=2, type=float, metavar=("LOW", "HIGH"), default=None, help="the word is a number")
    sub.add_argument("--unit", default="", help="what the number counts, such as years")
    sub.add_argument("--about", default="", help="a few words for lace attributes")
    sub.add_argument("-n", type=positive, default=2000, help="how many pictures are drawn and labelled")
    sub.add_argument(
        "--work", type=Path, metavar="DIR", default=None, help="where labels are kept (default: the cache)"
    )
    sub.add_argument("--restart", action="store_true", help="throw away labels that are there, and begin again")
    sub.add_argument("--out", type=Path, metavar="FILE", default=None, help="write the word to this file too")
    sub.add_argument("--export-pictures", type=Path, metavar="DIR", default=None, help=EXPORT)
    add_model(sub, "ffhq")


def add_output(sub: Parser, default: str) -> None:
    sub.add_argument("--out", type=Path, default=None, help=f"a picture file for all of them (default: {default})")
    sub.add_argument("--dir", type=Path, default=None, help="a folder for one PNG a picture, run.json and the latents")


def add_model(sub: Parser, default: str | None) -> None:
    sub.add_argument("--model", default=default, help="a model's name")
    sub.add_argument("--device", default="auto", help="auto, cpu or cuda")
    sub.add_argument(
        "--psi",
        type=float,
        default=None,
        help="truncation: below 1 better and more alike pictures (default: the model's own)",
    )
    sub.add_argument("--label", type=whole, default=None, help="the class, of a conditional generator")


def whole(text: str) -> int:
    """A seed."""
    return bounded(text, 0, 2**64 - 1)


def positive(text: str) -> int:
    """A count."""
    return bounded(text, 1, 2**40)


def bounded(text: str, low: int, high: int) -> int:
    """A whole number in a range."""
    if not text.strip().lstrip("+-").isdecimal():
        raise argparse.ArgumentTypeError(f"a whole number is needed, not '{text}'")
    if not low <= int(text) <= high:
        raise argparse.ArgumentTypeError(f"a number from {low} to {high} is needed, not {text}")
    return int(text)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    args = parser().parse_args(arguments)
    try:
        args.run(args)
        print(end="", flush=True)
    except LaceError as error:
        print(f"lace: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("lace: stopped.", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # Whoever read our output has stopped reading.
        forget_output()
        return 1
    except OSError as error:
        # What nobody foresaw: a name that is too long; or, without a name, no space for standard output.
        if error.filename is None:
            forget_output()
        place = error.filename or "standard output"
        print(f"lace: {place} cannot be used ({error.strerror or error}); choose another.", file=sys.stderr)
        return 2
    return 0


def forget_output() -> None:
    """Drop what is still on its way to a standard output that takes no more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


if __name__ == "__main__":
    raise SystemExit(main())
