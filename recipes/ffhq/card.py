"""The model card of the heads, written from what was measured."""

from __future__ import annotations

from typing import Any

from lace.attributes.schema import Attribute, Continuous, Schema

__all__ = ["model_card"]

HEAD = """# Heads for the FFHQ generator: model card

Small networks that read attributes of a face from the generator's latent w, written by `recipes/ffhq/train_heads.py`.

- **Reads:** w of `{model}`, truncated with any psi from 0.5 to 1.
- **Is:** {members} networks 512-384-256-128 with leaky ReLUs, averaged; half precision.
- **Trained on:** {train:,} generated faces (seed 20211206, psi uniform in [0.5, 1]), labelled by judges of pictures;
  {epochs} epochs on {device}. {held_out:,} further faces calibrated it, and {held_out:,} others measured it.
- **Labelled by:** an EfficientNet-Lite0 trained on three fifths of the identities of 42,160 CelebA faces (yes/no words
  and hair colour); MediaPipe's face landmarker (yaw, pitch, width, smile strength); spherical harmonics fitted to
  luminance at the landmarks' normals (light); the mean of two age networks. Smile is the mean of CelebA's judge and the
  landmarker's smile, gender the mean of CelebA's judge and of a network trained elsewhere.
- **Not for:** judging real people. These are words for steering a generator. "gender" is how two networks read a face,
  in two classes, as their training data did; age is apparent age. The judges are less sure of children, and inherit
  CelebA's skew.
- **Licences:** the code is MIT. The generator's weights are Apache-2.0 as packaged and were trained on FFHQ
  (CC BY-NC-SA 4.0, non-commercial); CelebA is for non-commercial research; MediaPipe's model and EfficientNet-Lite0 are
  Apache-2.0; age-v1 is CC0, FaceRes MIT as packaged. Pictures made with these weights should keep to the narrowest of
  these terms.

## Held-out figures

*Heads* is agreement with the labels on faces never trained on. *Judges* is how often the labels agree with a second
judge, trained on other identities: where it is below *heads*, the labels themselves limit the attribute. *Heads by
second judge* is what somebody with a judge of their own would measure on random faces. *ECE* is the calibration error.
*Labels' own noise* is by how much a judge contradicts itself in a mirror (age: by how much its two networks differ).

"""


def model_card(card: dict[str, Any], schema: Schema) -> str:
    """The card as Markdown."""
    shipped = card["measured"][card["kind"]]["attributes"]
    head = HEAD.format(
        model=card["model"],
        members=card["settings"]["members"],
        train=card["latents"] - 2 * card["held_out"],
        held_out=card["held_out"],
        epochs=card["settings"]["epochs"],
        device=card["device"],
    )
    tables = [
        discrete_table(schema, shipped, card["judges_agree"]),
        continuous_table(schema, shipped, card["noise"]),
    ]
    return head + "\n\n".join([*tables, arrangements(card)])


def discrete_table(schema: Schema, rows: dict[str, dict[str, float]], agree: dict[str, float]) -> str:
    lines = [
        "| attribute | heads | commonest class | judges | heads by second judge | ECE | about |",
        "|---|---|---|---|---|---|---|",
    ]
    for attribute in schema:
        if not isinstance(attribute, Continuous):
            row = rows[attribute.name]
            cells = [row["accuracy"], row["commonest"], agree[attribute.name], row["accuracy_independent"], row["ece"]]
            lines.append(
                f"| {attribute.name} | {' | '.join(f'{100 * cell:.1f} %' for cell in cells)} | {described(attribute)} |"
            )
    return "\n".join(lines)


def continuous_table(schema: Schema, rows: dict[str, dict[str, float]], noise: dict[str, float]) -> str:
    lines = [
        "| attribute | mean error | sigma | R2 | labels' own noise | range | about |",
        "|---|---|---|---|---|---|---|",
    ]
    for attribute in schema:
        if isinstance(attribute, Continuous):
            row, own = rows[attribute.name], noise[attribute.name]
            span = f"{attribute.low:g} to {attribute.high:g} {attribute.unit}".strip()
            cells = [f"{row['mae']:.3g}", f"{row['sigma']:.3g}", f"{row['r2']:.3f}", f"{own:.3g}", span]
            lines.append(f"| {attribute.name} | {' | '.join(cells)} | {attribute.about} |")
    return "\n".join(lines)


def described(attribute: Attribute) -> str:
    classes = "" if isinstance(attribute, Continuous) or attribute.is_yes_no else f"{', '.join(attribute.classes)}; "
    return classes + attribute.about


def arrangements(card: dict[str, Any]) -> str:
    """The three arrangements side by side on the paper's attributes."""
    kinds = list(card["measured"])
    names = list(card["measured"][kinds[0]]["attributes"])
    lines = [
        "## Arrangements of the network",
        "",
        f"| attribute | {' | '.join(kinds)} |",
        "|---" * (len(kinds) + 1) + "|",
    ]
    for name in names:
        lines.append(f"| {name} | {' | '.join(figure(card['measured'][kind]['attributes'][name]) for kind in kinds)} |")
    seconds = " | ".join(f"{card['measured'][kind]['seconds']:.0f} s" for kind in kinds)
    return "\n".join([*lines, f"| training time | {seconds} |"])


def figure(row: dict[str, float]) -> str:
    return f"{100 * row['accuracy']:.1f} %" if "accuracy" in row else f"{row['mae']:.3g}"
