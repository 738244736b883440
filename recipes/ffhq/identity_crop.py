"""Find the square of an FFHQ picture that ArcFace looks at: lace.metrics.identity.CROP.

    python recipes/ffhq/identity_crop.py --count 40

Eyes, nose and corners of the mouth of generated faces are laid onto ArcFace's template by the scale and the shift that
leave the least squared error; FFHQ's faces stand upright, so no turn is needed.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from common import SEED
from lace import rng
from lace.attributes.annotators.landmarks import Landmarker
from lace.metrics.identity import PIXELS
from lace.weights import mobilestylegan

# Where ArcFace's training faces have their eyes, nose and corners of the mouth, in pixels of 112: x, y.
TEMPLATE = np.array(
    [(38.2946, 51.6963), (73.5318, 51.5014), (56.0252, 71.7366), (41.5493, 92.3655), (70.7299, 92.2041)]
)
# The same places among MediaPipe's landmarks: centres of the irises, tip of the nose, corners of the mouth.
LANDMARKS = [468, 473, 1, 61, 291]

Array = NDArray[Any]


def square(points: Array) -> tuple[float, float, float]:
    """Left, top and side for points [N, 5, 2] in pictures of side 1: the least |corner + side template - point|^2."""
    template = np.broadcast_to(TEMPLATE / PIXELS, points.shape).reshape(-1, 2)
    found = points.reshape(-1, 2)
    centred = template - template.mean(axis=0)
    side = (centred * found).sum() / np.square(centred).sum()
    left, top = found.mean(axis=0) - side * template.mean(axis=0)
    return float(left), float(top), float(side)


@torch.inference_mode()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--psi", type=float, default=0.7)
    args = parser.parse_args()
    generator, landmarker = mobilestylegan.load(args.psi), Landmarker()
    found: list[Array] = []
    for index in torch.arange(args.count).split(8):
        faces = generator.to_picture(generator.to_w(rng.normal(SEED, index, generator.latent_dim)))
        pictures = (faces * 127.5 + 127.5).round().clamp(0, 255).to(torch.uint8).permute(0, 2, 3, 1).numpy()
        seen = [landmarker.points(picture) for picture in pictures]
        found += [points[LANDMARKS, :2] / pictures.shape[1] for points in seen if points is not None]
    landmarker.close()
    left, top, side = square(np.array(found))
    print(f"left {left:.4f}, top {top:.4f}, side {side:.4f}: the square of {len(found)} faces")


if __name__ == "__main__":
    main()
