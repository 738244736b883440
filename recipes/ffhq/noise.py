"""How much the judges of numbers contradict themselves: each face is read again in a mirror.

    python recipes/ffhq/noise.py --count 500 --out recipes/ffhq/noise.json

A mirrored face looks the other way and is lit from the other side; everything else stays. The mean difference is a
floor for the error of any head that learns from these judges. Age is read once more by the second network instead.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from common import latents
from lace.attributes.annotators.age import AgeV1, FaceRes
from lace.attributes.annotators.landmarks import COLUMNS, Landmarker
from lace.files import written_whole
from lace.weights import mobilestylegan

PIXELS = 384
FLIPPED = ("yaw", "light3")
# How the landmarker's columns are called in the schema.
NAMES = {
    "yaw": "yaw",
    "pitch": "pitch",
    "width": "width",
    "light0": "light0",
    "light3": "light3",
    "smile": "smilestrength",
}


@torch.inference_mode()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    generator, landmarker = mobilestylegan.load(), Landmarker()
    age, faceres = AgeV1(), FaceRes()
    rows: list[np.ndarray] = []
    ages: list[torch.Tensor] = []
    for index in torch.arange(args.count).split(20):
        faces = generator.to_picture(latents(generator, index)).clamp(-1, 1)
        small = F.interpolate(faces, size=(PIXELS, PIXELS), mode="bilinear", antialias=True)
        pictures = (small * 127.5 + 127.5).round().to(torch.uint8).permute(0, 2, 3, 1).numpy()
        mirrored = landmarker(np.ascontiguousarray(pictures[:, :, ::-1]))
        sign = np.array([-1.0 if name in FLIPPED else 1.0 for name in COLUMNS])
        rows.append(np.abs(landmarker(pictures) - sign * mirrored))
        ages.append((age(faces) - faceres(faces)[0]).abs())
    landmarker.close()
    mean = dict(zip(COLUMNS, np.nanmean(np.concatenate(rows), axis=0), strict=True))
    noise = {ours: round(float(mean[theirs]), 4) for theirs, ours in NAMES.items()}
    noise["age"] = round(float(torch.cat(ages).mean()), 4)
    with written_whole(args.out) as beside:
        beside.write_text(json.dumps({"faces": args.count, "difference": noise}, indent=1) + "\n")
    print(noise)


if __name__ == "__main__":
    main()
