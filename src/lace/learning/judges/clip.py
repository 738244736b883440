"""CLIP as a judge: the class whose words lie nearest to the picture (Radford et al., arXiv:2103.00020).

    t_c = mean over the prompts of class c of text(prompt) / |text(prompt)|,   x = image(picture)
    p(c | picture) = softmax_c(s <x, t_c> / (|x| |t_c|)),                       s is CLIP's own scale

A picture whose likeliest class has less than ``threshold`` stays without a label: 0.3 is the paper's (appendix).
Weights are the user's own: a folder, or a name on the hub that transformers looks names up on.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ...attributes.schema import Attribute, Continuous, nearest
from ...errors import DataError, MissingExtraError, WeightsError
from .base import Judge, Pictures

__all__ = ["CLIP", "THRESHOLD", "ClipJudge", "prompts_of", "read_prompts"]

# The paper's: ViT-B/16.
CLIP = "openai/clip-vit-base-patch16"
THRESHOLD = 0.3
MEAN, STD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
PRESETS = Path(__file__).parent / "prompts"

Prompts = dict[str, list[str]]


def read_prompts(source: str, word: str) -> Prompts:
    """Classes and their prompts for a word, from a preset or a JSON file {word: {class: [prompt, ...]}}."""
    presets = {path.stem: path for path in sorted(PRESETS.glob("*.json"))}
    path = presets.get(source, Path(source))
    try:
        words = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(
            f"No prompts are called '{source}', and no such file is there{nearest(source, presets)}"
        ) from None
    except (OSError, ValueError) as error:
        raise DataError(f"The prompts {source} cannot be read ({error}).") from error
    if not isinstance(words, dict) or word not in words:
        known = nearest(word, words) if isinstance(words, dict) and words else "."
        raise DataError(f"The prompts {source} have no word '{word}'{known}")
    return checked_prompts(words[word])


def prompts_of(attribute: Attribute, texts: list[str], against: list[str] | None) -> Prompts:
    """Prompts from --text and --against, or from templates in which {} stands for a class."""
    if isinstance(attribute, Continuous):
        raise DataError("CLIP tells classes apart, not numbers; leave out --range.")
    if attribute.is_yes_no:
        return {"no": against or [], "yes": texts}
    if against or not all("{}" in text for text in texts):
        raise DataError('For several classes write {} where the class stands, as in --text "a cat with {} hair".')
    return {name: [text.replace("{}", name.replace("_", " ")) for text in texts] for name in attribute.classes}


def checked_prompts(prompts: Any) -> Prompts:
    """Two classes or more, each with a text or several."""
    if not isinstance(prompts, dict) or len(prompts) < 2:
        raise DataError('Prompts are an object of two classes or more: {"class": ["a text", ...], ...}.')
    listed = {name: [texts] if isinstance(texts, str) else texts for name, texts in prompts.items()}
    for name, texts in listed.items():
        if not isinstance(texts, list) or not texts or not all(isinstance(one, str) and one.strip() for one in texts):
            raise DataError(f"The class '{name}' needs at least one prompt, each a text.")
    return listed


class ClipJudge(Judge):
    """Prompts against pictures, by CLIP of transformers."""

    def __init__(
        self,
        attribute: Attribute,
        prompts: Prompts,
        weights: str = CLIP,
        threshold: float = THRESHOLD,
        device: torch.device | str = "cpu",
    ) -> None:
        if isinstance(attribute, Continuous):
            raise DataError("CLIP tells classes apart, not numbers; leave out --range.")
        if not 0 <= threshold < 1:
            raise DataError(f"The threshold is a probability from 0 to below 1, not {threshold:g}.")
        self._prompts = checked_prompts(prompts)
        if tuple(self._prompts) != attribute.classes:
            raise DataError(f"Prompts are needed for {', '.join(attribute.classes)}, not {', '.join(self._prompts)}.")
        self._threshold, self._device = threshold, torch.device(device)
        self._model, tokenizer = load_clip(weights)
        self._model.to(self._device)
        self._side = int(self._model.config.vision_config.image_size)
        self._texts = torch.stack([self._text(tokenizer, texts) for texts in self._prompts.values()])
        self.about = {"kind": "clip", "name": weights, "threshold": threshold, "prompts": self._prompts}

    @torch.inference_mode()
    def _text(self, tokenizer: Any, texts: list[str]) -> Tensor:
        """The mean direction of a class's prompts."""
        tokens = tokenizer(texts, padding=True, truncation=True, return_tensors="pt").to(self._device)
        hidden = self._model.text_model(**tokens).pooler_output
        return F.normalize(F.normalize(self._model.text_projection(hidden), dim=1).mean(dim=0), dim=0)

    @torch.inference_mode()
    def probabilities(self, pictures: Pictures) -> Tensor:
        """p(class | picture) [N, classes]."""
        hidden = self._model.vision_model(pixel_values=self._shown(pictures)).pooler_output
        seen = F.normalize(self._model.visual_projection(hidden), dim=1)
        return (self._model.logit_scale.exp() * seen @ self._texts.T).softmax(dim=1)

    def __call__(self, pictures: Pictures) -> Any:
        found = self.probabilities(pictures)
        unsure = found.max(dim=1, keepdim=True).values < self._threshold
        return found.masked_fill(unsure, float("nan")).cpu().numpy()

    def _shown(self, pictures: Pictures) -> Tensor:
        """Shorter side to CLIP's size, the middle cut out, its mean and spread."""
        x = torch.tensor(pictures, device=self._device).permute(0, 3, 1, 2).float() / 255
        height, width = x.shape[-2:]
        factor = self._side / min(height, width)
        size = (max(round(height * factor), self._side), max(round(width * factor), self._side))
        x = F.interpolate(x, size=size, mode="bicubic", antialias=True).clamp(0, 1)
        top, left = (size[0] - self._side) // 2, (size[1] - self._side) // 2
        x = x[..., top : top + self._side, left : left + self._side]
        mean, std = (torch.tensor(values, device=x.device)[:, None, None] for values in (MEAN, STD))
        return (x - mean) / std


def load_clip(weights: str) -> tuple[Any, Any]:
    """The model and its tokenizer, from a folder or by name."""
    try:
        from transformers import AutoTokenizer, CLIPModel
    except ImportError as error:
        raise MissingExtraError("CLIP", "clip") from error
    try:
        model = CLIPModel.from_pretrained(weights)
        return model.float().requires_grad_(False).eval(), AutoTokenizer.from_pretrained(weights)
    except Exception as error:
        raise WeightsError(
            f"The CLIP weights '{weights}' could not be had ({str(error).splitlines()[0].rstrip('.')}). Check the "
            "network, or give a folder that holds them: --clip DIR."
        ) from error
