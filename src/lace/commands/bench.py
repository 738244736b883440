"""``lace bench``: measure one thing and write it down."""

from __future__ import annotations

import argparse

from .common import load, say

__all__ = ["bench"]


def bench(args: argparse.Namespace) -> None:
    """Measure one thing and write it down."""
    from tqdm import tqdm

    from ..bench import model_for, run
    from ..files import writable_folder

    folder, model = writable_folder(args.out), load(args.model or model_for(args.name), args)
    with tqdm(desc=args.name, bar_format="{desc}: {postfix} ({elapsed})", disable=None, leave=False) as bar:
        files = list(run(args.name, model, folder, args.quick, lambda stage: bar.set_postfix_str(stage)))
    say(args, {"written": [str(file) for file in files]}, [str(file) for file in files])
