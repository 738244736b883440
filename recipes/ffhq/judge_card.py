"""Write the model card of the two judges, from what train_judge.py measured and left inside their files.

python recipes/ffhq/judge_card.py recipes/ffhq/judges
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from lace.attributes.card import read_card
from lace.files import written_whole

HEAD = """# Judges of CelebA's attributes: model card

Two EfficientNet-Lite0 of 160 pixels, ImageNet weights as a start, one sigmoid for each of CelebA's 40 attributes; half
precision. Written by `recipes/ffhq/train_judge.py`.

- `labeller` learned from {labeller[pictures]:,} pictures ({labeller[epochs]} epochs) and labelled the faces that the
  heads learned from. `independent` learned from {independent[pictures]:,} pictures of other identities and had no part
  in any label: it says what somebody else's judge would.
- Each is measured here on the pictures of the other's identities, against CelebA's own labels, which are noisy.
- They see CelebA's tight framing; `celeba_framing` cuts the same out of an FFHQ picture.
- Not for judging real people. CelebA is for non-commercial research; its labels are one set of annotators' views of
  celebrities, and carry their bias. The ImageNet weights are Apache-2.0 as packaged.

| attribute | positive | labeller accuracy | AUC | independent accuracy | AUC |
|---|---|---|---|---|---|
"""


def row(name: str, cards: dict[str, dict[str, Any]]) -> str:
    found = [card["held_out"][name] for card in cards.values()]
    cells = [f"{100 * one['accuracy']:.1f} % | {one['auc']:.3f}" for one in found]
    return f"| {name} | {100 * found[0]['positive']:.1f} % | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    args = parser.parse_args()
    cards = {name: read_card(args.folder / f"{name}.safetensors") for name in ("labeller", "independent")}
    rows = [row(name, cards) for name in cards["labeller"]["names"]]
    with written_whole(args.folder / "MODEL_CARD.md") as beside:
        beside.write_text(HEAD.format(**cards) + "\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
