"""The recipe's judges, one for each of its words, as ``lace learn`` takes them.

    lace learn cap --judge recipes/ffhq/words.py:hat
    lace learn turn --judge recipes/ffhq/words.py:yaw --range -50 50 --unit degrees

What ships was labelled by label.py, which asks all judges at once, on a GPU; smile and gender got a second opinion
there (merge.py), which one judge by itself does not have.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from common import SCHEMA
from lace.attributes.annotators.age import AgeV1, FaceRes
from lace.attributes.annotators.celeba import class_probabilities
from lace.attributes.annotators.judge import Judge
from lace.attributes.annotators.landmarks import COLUMNS, Landmarker
from lace.attributes.schema import Discrete

LABELLER = Path(__file__).parent / "judges" / "labeller.safetensors"
# What the schema calls otherwise than the landmarker.
LANDMARKS = {"smilestrength": "smile"}

# Networks are loaded when a word first needs them.
labeller, landmarker = cache(lambda: Judge.load(LABELLER)), cache(Landmarker)
age_networks = cache(lambda: (AgeV1(), FaceRes()))


def judged(pictures: NDArray[np.uint8], name: str) -> NDArray[Any]:
    """Class probabilities, years, or what the landmarks say; NaN where no face is found."""
    faces = torch.from_numpy(pictures).permute(0, 3, 1, 2).float() / 127.5 - 1
    attribute = SCHEMA[name]
    with torch.inference_mode():
        if isinstance(attribute, Discrete):
            judge = labeller()
            return class_probabilities(attribute, judge.probabilities(faces), judge.names).numpy()
        if name == "age":
            first, second = age_networks()
            return ((first(faces) + second(faces)[0]) / 2).numpy()
    return landmarker()(pictures)[:, COLUMNS.index(LANDMARKS.get(name, name))]


def __getattr__(name: str) -> Callable[[NDArray[np.uint8]], NDArray[Any]]:
    """The judge of a word by its name."""
    if name not in SCHEMA:
        raise AttributeError(name)

    def judge(pictures: NDArray[np.uint8]) -> NDArray[Any]:
        return judged(pictures, name)

    return judge
