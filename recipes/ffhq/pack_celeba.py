"""Pack the aligned CelebA pictures into the one file that train_judge.py reads.

    python recipes/ffhq/pack_celeba.py CelebA celeba128.npz --count 42160

Wants img_align_celeba/, list_attr_celeba.txt and identity_CelebA.txt as the data set is published. Pictures are cropped
to (25, 45, 153, 173) and kept as WebP; a sample takes whole identities, so that none is split.
"""

from __future__ import annotations

import argparse
import io
from pathlib import Path

import numpy as np
from PIL import Image

from lace.files import written_whole

CROP = (25, 45, 153, 173)


def read_attributes(path: Path) -> tuple[list[str], dict[str, list[bool]]]:
    """Attribute names, and for each picture which of them hold: a count, a line of names, then lines of 1 and -1."""
    _, names, *rows = path.read_text().splitlines()
    return names.split(), {row.split()[0]: [value == "1" for value in row.split()[1:]] for row in rows if row.strip()}


def read_identities(path: Path) -> dict[str, int]:
    """The identity of each picture."""
    return {
        name: int(number) for name, number in (line.split() for line in path.read_text().splitlines() if line.strip())
    }


def sample(identities: dict[str, int], count: int, seed: int = 0) -> list[str]:
    """Pictures of identities in random order, until there are enough."""
    order = np.random.default_rng(seed).permutation(sorted(set(identities.values())))
    by_identity: dict[int, list[str]] = {}
    for name, identity in identities.items():
        by_identity.setdefault(identity, []).append(name)
    chosen: list[str] = []
    for identity in order:
        if len(chosen) >= count:
            break
        chosen += by_identity[int(identity)]
    return sorted(chosen)


def encoded(path: Path) -> bytes:
    data = io.BytesIO()
    with Image.open(path) as picture:
        picture.convert("RGB").crop(CROP).save(data, "WEBP", quality=90)
    return data.getvalue()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--count", type=int, default=42160)
    args = parser.parse_args()
    names, attributes = read_attributes(args.folder / "list_attr_celeba.txt")
    identities = read_identities(args.folder / "identity_CelebA.txt")
    chosen = sample(identities, args.count)
    files = [encoded(args.folder / "img_align_celeba" / name) for name in chosen]
    with written_whole(args.out) as beside, beside.open("wb") as out:
        np.savez(
            out,
            data=np.frombuffer(b"".join(files), np.uint8),
            off=np.cumsum([0, *map(len, files)]),
            attr=np.array([attributes[name] for name in chosen]),
            names=np.array(names),
            ident=np.array([identities[name] for name in chosen], np.int32),
        )
    print(f"{len(chosen)} pictures of {len({identities[name] for name in chosen})} identities in {args.out}")


if __name__ == "__main__":
    main()
