"""An ONNX network as a judge, with a small card that says how to show it pictures and how to read what it says.

    x = ((picture / 255) (high - low) + low - mean) / std,    cropped and resized before
    y = scale * output + offset, then a sigmoid or a softmax; with values v_k, the number sum_k v_k y_k

The card is JSON; every line may be left out:

    {"size": [160, 160], "layout": "NHWC", "range": [0, 255], "mean": 0, "std": 1, "colours": "RGB",
     "crop": [left, top, right, bottom], "output": "name, or number from 0",
     "scale": 1, "offset": 0, "apply": "sigmoid", "classes": ["no", "yes"], "values": [...]}

``crop`` is in fractions of the picture, ``classes`` the order of the outputs where it is another than the word's.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...attributes.schema import Attribute, Continuous
from ...errors import DataError, MissingExtraError
from .base import Judge, Pictures, resized

__all__ = ["OnnxJudge", "checked_card"]

Array = NDArray[Any]

DEFAULTS: dict[str, Any] = {
    "size": None,
    "layout": None,
    "range": [0, 1],
    "mean": 0,
    "std": 1,
    "colours": "RGB",
    "crop": [0, 0, 1, 1],
    "output": 0,
    "scale": 1,
    "offset": 0,
    "apply": "none",
    "classes": None,
    "values": None,
}
CHOICES = {"layout": (None, "NCHW", "NHWC"), "colours": ("RGB", "BGR"), "apply": ("none", "sigmoid", "softmax")}
# How many numbers each line may have; 0 is a number by itself.
LENGTHS = {
    "size": (2,),
    "range": (2,),
    "crop": (4,),
    "mean": (0, 1, 3),
    "std": (0, 1, 3),
    "scale": (0,),
    "offset": (0,),
}


def checked_card(card: Any, attribute: Attribute) -> dict[str, Any]:
    """A card with every line, or a sentence about the line that is wrong."""
    if not isinstance(card, dict):
        raise DataError('The card of an ONNX judge is one JSON object, such as {"size": [224, 224]}.')
    card = {("colours" if key == "colors" else key): value for key, value in card.items()}
    unknown = set(card) - set(DEFAULTS)
    if unknown:
        raise DataError(f"The card has '{min(unknown)}', which means nothing; it may have {', '.join(DEFAULTS)}.")
    full = {**DEFAULTS, **card}
    if _length(full["size"]) == 0:
        full["size"] = [full["size"]] * 2
    _check_words(full)
    _check_numbers(full)
    _check_classes(full["classes"], attribute)
    return full


def _check_words(card: dict[str, Any]) -> None:
    for key, allowed in CHOICES.items():
        if card[key] not in allowed:
            listed = ", ".join(str(one) for one in allowed if one)
            raise DataError(f"'{key}' in the card is one of {listed}, not {card[key]}.")


def _check_numbers(card: dict[str, Any]) -> None:
    for key, lengths in LENGTHS.items():
        if not (card[key] is None and DEFAULTS[key] is None) and _length(card[key]) not in lengths:
            raise DataError(f"'{key}' in the card needs {lengths[-1] or 1} numbers, not {card[key]}.")
    left, top, right, bottom = card["crop"]
    if not (0 <= left < right <= 1 and 0 <= top < bottom <= 1):
        raise DataError("'crop' in the card is left, top, right, bottom, as fractions of the picture from 0 to 1.")
    if not np.all(np.asarray(card["std"], dtype=float)):
        raise DataError("'std' in the card divides: it cannot be 0.")
    if card["size"] is not None and not all(isinstance(side, int) and side > 0 for side in card["size"]):
        raise DataError(f"'size' in the card is a height and a width in pixels, not {card['size']}.")
    if card["values"] is not None and _length(card["values"]) < 1:
        raise DataError("'values' in the card are numbers, one for each output.")


def _check_classes(order: Any, attribute: Attribute) -> None:
    if order is None:
        return
    if isinstance(attribute, Continuous):
        raise DataError("'classes' in the card are for words with classes; this one is a number.")
    if not isinstance(order, list) or sorted(map(str, order)) != sorted(attribute.classes):
        listed = ", ".join(attribute.classes)
        raise DataError(f"'classes' in the card are {listed}, in the order of the network's outputs, not {order}.")


def _length(value: Any) -> int:
    """How many numbers a list has; 0 for a number by itself, -1 for anything else."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return 0 if np.isfinite(float(value)) else -1
    return len(value) if isinstance(value, list) and all(_length(one) == 0 for one in value) else -1


def read_card(path: Path | None) -> Any:
    if path is None:
        return {}
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"The card {path} cannot be read ({error}).") from error


class OnnxJudge(Judge):
    """A network on a CPU by ONNX Runtime."""

    def __init__(self, model: Path, attribute: Attribute, card: Any = None) -> None:
        try:
            import onnxruntime
        except ImportError as error:
            raise MissingExtraError("An ONNX judge", "learn") from error
        beside = model.with_suffix(".json")
        self._card = checked_card(read_card(beside if beside.exists() else None) if card is None else card, attribute)
        self._attribute = attribute
        try:
            content = model.read_bytes()
            self._session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
        except Exception as error:
            raise DataError(f"{model} cannot be loaded as an ONNX network ({str(error).splitlines()[0]}).") from error
        digest = hashlib.sha256(content).hexdigest()[:12]
        self.about = {"kind": "onnx", "name": model.name, "sha256": digest, "card": self._card}
        self._input = self._session.get_inputs()[0]
        self._layout, self._size = self._shape(model)
        self._output = self._output_name(model)

    def _shape(self, model: Path) -> tuple[str, tuple[int, int]]:
        """Layout and size, from the card or from the network itself."""
        shape = self._input.shape
        if len(shape) != 4:
            raise DataError(f"{model} takes {self._input.name} {shape}; a judge of pictures takes four dimensions.")
        layout = self._card["layout"] or ("NHWC" if shape[3] == 3 else "NCHW")
        size = self._card["size"] or (shape[1:3] if layout == "NHWC" else shape[2:4])
        if not all(isinstance(side, int) and side > 0 for side in size):
            raise DataError(f'{model} does not say what size of picture it takes; add "size" to its card.')
        return layout, (size[0], size[1])

    def _output_name(self, model: Path) -> str:
        names, wanted = [output.name for output in self._session.get_outputs()], self._card["output"]
        if wanted in names:
            return str(wanted)
        if isinstance(wanted, int) and 0 <= wanted < len(names):
            return str(names[wanted])
        raise DataError(f"{model} has no output '{wanted}'; it has {', '.join(names)}.")

    def __call__(self, pictures: Pictures) -> Any:
        shown = self._shown(pictures)
        fixed = self._input.shape[0]
        batches = np.split(shown, len(shown)) if fixed == 1 else [shown]
        try:
            said = [np.asarray(self._session.run([self._output], {self._input.name: batch})[0]) for batch in batches]
        except Exception as error:
            raise DataError(f"The ONNX judge failed ({str(error).splitlines()[0]}); check its card.") from error
        return self._read(
            np.concatenate([one.reshape(len(batch), -1) for one, batch in zip(said, batches, strict=True)])
        )

    def _shown(self, pictures: Pictures) -> Array:
        """Pictures as the network wants them."""
        card, (height, width) = self._card, pictures.shape[1:3]
        left, top, right, bottom = card["crop"]
        rows, columns = (
            slice(round(top * height), round(bottom * height)),
            slice(round(left * width), round(right * width)),
        )
        x = resized(pictures[:, rows, columns], *self._size).permute(0, 2, 3, 1).numpy()
        low, high = card["range"]
        x = x[..., ::-1] if card["colours"] == "BGR" else x
        x = (x / 255 * (high - low) + low - np.asarray(card["mean"])) / np.asarray(card["std"])
        if "uint8" in self._input.type:
            x = x.round()
        kind = {"tensor(uint8)": np.uint8, "tensor(float16)": np.float16}.get(self._input.type, np.float32)
        return np.ascontiguousarray(x if self._layout == "NHWC" else x.transpose(0, 3, 1, 2)).astype(kind)

    def _read(self, outputs: Array) -> Any:
        """Outputs [N, K] as answers."""
        card = self._card
        y = card["scale"] * outputs.astype(np.float64) + card["offset"]
        if card["apply"] == "sigmoid":
            y = 1 / (1 + np.exp(-y.clip(-500, 500)))
        elif card["apply"] == "softmax":
            y = np.exp(y - y.max(axis=1, keepdims=True))
            y = y / y.sum(axis=1, keepdims=True)
        if card["values"] is not None:
            if len(card["values"]) != y.shape[1]:
                raise DataError(f"The card has {len(card['values'])} values for {y.shape[1]} outputs.")
            y = (y @ np.asarray(card["values"], dtype=float))[:, None]
        if card["classes"] is not None and y.shape[1] == len(card["classes"]):
            y = y[:, [card["classes"].index(name) for name in getattr(self._attribute, "classes", ())]]
        return y[:, 0] if y.shape[1] == 1 else y
