"""What the steps of this recipe share: which latents are labelled, and what the judges' answers mean."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors import safe_open
from torch import Tensor

from lace import rng
from lace.attributes.schema import Attribute, Continuous, Discrete, Schema
from lace.generators.mobilestylegan import MobileStyleGAN

# The labelled latents have a seed of their own, so that no picture that people draw was trained on.
SEED = 20211206
PSI = (0.5, 1.0)

# The paper's twelve first; then what CelebA's labels allow: words on which two judges agree with kappa >= 0.55.
PAPER = (
    Discrete("smile", about="a smile"),
    Discrete("glasses", about="eyeglasses or sunglasses"),
    Discrete("gender", ("female", "male"), about="how the face is read, as two classes"),
    Discrete("beard", about="a beard of any kind"),
    Discrete("haircolor", ("black", "brown", "blond", "gray", "other"), about="other: red, dyed, hidden or none"),
    Discrete("bald", about="a bald head"),
    Continuous("yaw", -50, 50, "degrees", about="positive looks to the viewer's right"),
    Continuous("pitch", -30, 30, "degrees", about="positive looks up"),
    Continuous("age", 0, 80, "years", about="apparent age"),
    Continuous("width", 0.7, 1.05, about="the face's width over its height"),
    Continuous("light0", 0.2, 0.8, about="how bright the face is, 0 to 1"),
    Continuous("light3", -0.35, 0.35, about="light from the side, positive from the viewer's right"),
)
FURTHER = {
    "hat": ("Wearing_Hat", "a hat or cap"),
    "bangs": ("Bangs", "hair over the forehead"),
    "wavyhair": ("Wavy_Hair", "wavy hair"),
    "makeup": ("Heavy_Makeup", "heavy make-up"),
    "lipstick": ("Wearing_Lipstick", "lipstick"),
    "mouthopen": ("Mouth_Slightly_Open", "an open mouth, teeth shown"),
    "earrings": ("Wearing_Earrings", "earrings"),
    "goatee": ("Goatee", "a beard on the chin"),
    "sideburns": ("Sideburns", "sideburns"),
    "stubble": ("5_o_Clock_Shadow", "a day's beard"),
    "bushybrows": ("Bushy_Eyebrows", "bushy eyebrows"),
    "cheekbones": ("High_Cheekbones", "high cheekbones"),
}
STRENGTH = Continuous("smilestrength", 0, 1, about="how strong the smile is, 0 to 1")
SCHEMA = Schema((*PAPER, *(Discrete(name, about=about) for name, (_, about) in FURTHER.items()), STRENGTH))
HAIR = ("Black_Hair", "Brown_Hair", "Blond_Hair", "Gray_Hair")


def latents(generator: MobileStyleGAN, index: Tensor) -> Tensor:
    """Truncated w of the labelled faces, each with its own psi."""
    w = generator.mapping(rng.normal(SEED, index, generator.latent_dim))
    psi = PSI[0] + (PSI[1] - PSI[0]) * rng.uniform(SEED, index, rng.TRUNCATION)
    return generator.truncate(w, psi[:, None])


class Answers:
    """What the judges said, from the files of label.py, by the judges' own names for things."""

    def __init__(self, paths: list[Path]) -> None:
        parts: list[dict[str, Tensor]] = []
        for path in paths:
            with safe_open(path, "pt") as file:
                parts.append({name: file.get_tensor(name).float() for name in file.keys()})  # noqa: SIM118
                about = file.metadata()
        self.tensors = {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
        self.attributes = about["attributes"].split(",")
        self.landmarks = about["landmarks"].split(",")

    def attribute(self, name: str, judge: str = "labeller") -> Tensor:
        return self.tensors[judge][:, self.attributes.index(name)]

    def landmark(self, name: str) -> Tensor:
        return self.tensors["landmarks"][:, self.landmarks.index(name)]


def logit(p: Tensor) -> Tensor:
    return torch.logit(p.clamp(1e-3, 1 - 1e-3))


def hair(answers: Answers, judge: str) -> Tensor:
    """Four independent yes/no answers as five exclusive classes, the last one for none of them."""
    p = torch.stack([answers.attribute(name, judge) for name in HAIR], dim=1).clamp(1e-4, 1 - 1e-4)
    odds = torch.cat([p / (1 - p), torch.ones(len(p), 1)], dim=1)
    return odds / odds.sum(dim=1, keepdim=True)


def probability(answers: Answers, name: str, judge: str) -> Tensor:
    """p(yes) of a yes/no attribute, p(male) of gender; the mean of two judges if there are two."""
    if name == "smile":
        smile = answers.attribute("Smiling", judge)
        if judge != "labeller":
            return smile
        # The blendshape is a strength: shifted so that it says yes as often as the judge does.
        strength = logit(answers.landmark("smile").nan_to_num(0.5))
        shift = strength.quantile(1 - float((smile > 0.5).float().mean()))
        return (0.5 * (logit(smile) + strength - shift)).sigmoid()
    if name == "gender":
        male = answers.attribute("Male", judge)
        return male if judge != "labeller" else (0.5 * (logit(male) + logit(answers.tensors["faceres_male"]))).sigmoid()
    if name == "beard":
        return 1 - answers.attribute("No_Beard", judge)
    return answers.attribute({"glasses": "Eyeglasses", "bald": "Bald"}.get(name) or FURTHER[name][0], judge)


def number(answers: Answers, name: str, judge: str) -> Tensor:
    """A continuous attribute in its own unit; age is the mean of two networks, or the first alone as second opinion."""
    if name == "age":
        first, second = answers.tensors["age_v1"], answers.tensors["faceres_age"]
        return (first + second) / 2 if judge == "labeller" else second
    return answers.landmark("smile" if name == "smilestrength" else name)


def labels(answers: Answers, judge: str = "labeller") -> Tensor:
    """Labels [N, columns] in the schema's layout."""
    return torch.cat([_columns(answers, attribute, judge) for attribute in SCHEMA], dim=1)


def _columns(answers: Answers, attribute: Attribute, judge: str) -> Tensor:
    if isinstance(attribute, Continuous):
        return ((number(answers, attribute.name, judge) - attribute.low) / attribute.span)[:, None]
    if attribute.name == "haircolor":
        return hair(answers, judge)
    yes = probability(answers, attribute.name, judge)
    return torch.stack([1 - yes, yes], dim=1)
