"""What the steps of this recipe share: the words, and which latents are labelled."""

from __future__ import annotations

from lace.attributes.schema import Continuous, Discrete, Schema
from lace.learning.draws import PSI, SEED, latents, truncation

__all__ = ["FURTHER", "PAPER", "PSI", "SCHEMA", "SEED", "STRENGTH", "latents", "truncation"]

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
    "hat": "a hat or cap",
    "bangs": "hair over the forehead",
    "wavyhair": "wavy hair",
    "makeup": "heavy make-up",
    "lipstick": "lipstick",
    "mouthopen": "an open mouth, teeth shown",
    "earrings": "earrings",
    "goatee": "a beard on the chin",
    "sideburns": "sideburns",
    "stubble": "a day's beard",
    "bushybrows": "bushy eyebrows",
    "cheekbones": "high cheekbones",
}
STRENGTH = Continuous("smilestrength", 0, 1, about="how strong the smile is, 0 to 1")
SCHEMA = Schema((*PAPER, *(Discrete(name, about=about) for name, about in FURTHER.items()), STRENGTH))
