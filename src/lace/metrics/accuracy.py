"""ACC: whether pictures show what was asked, by what a judge reads from them.

    match of a class    1 if the judge's likeliest class is the one asked, else 0
    match of a number   1 - |d|,  d the difference on the attribute's scale from 0 to 1, as in the paper
    match of all asked  the product of the matches: for classes, whether all are right

ACC is the mean match. 1 - |d| forgives much: a constant guess has about 0.8, so the mean |d| in years or degrees stands
beside it. Values, judged and asked, are rows in the layout of labels (:mod:`lace.attributes.training`): class
probabilities or a scaled number; NaN is what was not asked, or what the judge could not read. Such a picture counts for
the other attributes only, so see how many were read.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ..attributes.schema import Continuous, Discrete, Schema
from .bootstrap import Estimate, estimate, mean

__all__ = ["ALL", "Score", "accuracy", "matches"]

# The name of the score of everything that was asked at once; no attribute can be called so.
ALL = "(all)"


class Score(NamedTuple):
    """ACC; the mean absolute error of a number, in its own unit; and the pictures both are taken over."""

    acc: Estimate
    error: Estimate | None
    pictures: int


def matches(judged: Tensor, asked: Tensor, schema: Schema) -> Tensor:
    """How well pictures [N, columns] match what was asked [N, columns] (or of all, [columns]): [N, attributes]."""
    asked = asked.expand_as(judged)
    return torch.stack([_match(judged, asked, schema, attribute) for attribute in schema], dim=1)


def accuracy(judged: Tensor, asked: Tensor, schema: Schema, seed: int = 0) -> dict[str, Score]:
    """The score of every attribute that was asked of any picture, and of all at once, with bootstrap intervals."""
    asked = asked.expand_as(judged)
    match = matches(judged, asked, schema)
    scores = {}
    for k, attribute in enumerate(schema):
        column = schema.slice(attribute.name).start
        if asked[:, column].isfinite().any():
            known = match[:, k].isfinite()
            error = None
            if isinstance(attribute, Continuous):
                error = estimate(attribute.span * (judged - asked)[known, column].abs(), mean, seed)
            scores[attribute.name] = Score(estimate(match[known, k], mean, seed), error, int(known.sum()))
    together = _together(match, asked, schema)
    return scores | {ALL: Score(estimate(together, mean, seed), None, len(together))}


def _match(judged: Tensor, asked: Tensor, schema: Schema, attribute: Discrete | Continuous) -> Tensor:
    own, wanted = (values[:, schema.slice(attribute.name)] for values in (judged, asked))
    if isinstance(attribute, Continuous):
        return 1 - (own - wanted)[:, 0].abs()
    right = own.argmax(dim=1) == wanted.argmax(dim=1)
    return right.to(judged).where((own + wanted).isfinite().all(dim=1), torch.nan)


def _together(match: Tensor, asked: Tensor, schema: Schema) -> Tensor:
    """The product of all matches of the pictures of which all that was asked could be read."""
    wanted = torch.stack([asked[:, schema.slice(attribute.name).start].isfinite() for attribute in schema], dim=1)
    known = (match.isfinite() | ~wanted).all(dim=1) & wanted.any(dim=1)
    # A number off by more than its whole scale is no match, and no minus turns two of them into one.
    return match.clamp_min(0).where(wanted, 1)[known].prod(dim=1)
