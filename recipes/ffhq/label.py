"""Draw faces, show them to the judges, and keep what they say.

    python recipes/ffhq/label.py --labeller labeller.safetensors --independent independent.safetensors \\
        --first 0 --count 50000 --out labels-0.safetensors

Row i is the face at address SEED:first+i with its own truncation psi in [0.5, 1], so nothing but answers is stored.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import time
from concurrent.futures import Future
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor

from common import SEED, latents
from lace.attributes.annotators.age import FaceRes
from lace.attributes.annotators.desk import ON_CPU, CpuDesk
from lace.attributes.annotators.judge import Judge, eight_bit
from lace.attributes.annotators.landmarks import COLUMNS
from lace.files import written_whole
from lace.weights import mobilestylegan

# Batches that may wait for the CPU's judges.
QUEUE = 64


@torch.inference_mode()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labeller", type=Path, required=True)
    parser.add_argument("--independent", type=Path, required=True)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=50000)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 2) - 1))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    args = parser.parse_args()
    generator = mobilestylegan.load().to(args.device)
    judges = {name: Judge.load(getattr(args, name)).to(args.device) for name in ("labeller", "independent")}
    faceres = FaceRes().to(args.device)
    columns: dict[str, list[Tensor]] = {name: [] for name in (*judges, "faceres_age", "faceres_male")}
    waiting: list[Future[dict[str, np.ndarray]]] = []
    start, done = time.time(), 0
    with contextlib.closing(CpuDesk(args.workers)) as desk:
        for rows in torch.arange(args.first, args.first + args.count).split(args.batch):
            faces = eight_bit(generator.to_picture(latents(generator, rows.to(args.device))))
            for name, judge in judges.items():
                columns[name].append(judge.probabilities(faces).cpu())
            for name, answer in zip(("faceres_age", "faceres_male"), faceres(faces), strict=True):
                columns[name].append(answer.cpu())
            waiting.append(desk.submit(faces))
            if len(waiting) > QUEUE:
                waiting[-QUEUE].result()
            done += len(rows)
            if done % (100 * args.batch) == 0:
                print(f"{done}/{args.count}  {time.time() - start:.0f} s", flush=True)
        answers = [future.result() for future in waiting]
    tensors = {name: torch.cat(parts).half() for name, parts in columns.items()}
    for name in ON_CPU:
        tensors[name] = torch.from_numpy(np.concatenate([answer[name] for answer in answers])).half()
    about = {
        "attributes": ",".join(judges["labeller"].names),
        "landmarks": ",".join(COLUMNS),
        "seed": str(SEED),
        "first": str(args.first),
    }
    with written_whole(args.out) as beside:
        save_file(tensors, beside, metadata=about)
    missed = int(tensors["landmarks"][:, 0].isnan().sum())
    print(f"{args.count} faces labelled in {time.time() - start:.0f} s; the landmarker found no face in {missed}")


if __name__ == "__main__":
    main()
