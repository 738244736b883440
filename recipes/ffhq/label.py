"""Draw faces, show them to the judges, and keep what they say.

    python recipes/ffhq/label.py --labeller labeller.safetensors --independent independent.safetensors \\
        --first 0 --count 50000 --out labels-0.safetensors

Row i is the face at address SEED:first+i with its own truncation psi in [0.5, 1], so nothing but answers is stored.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing.util import Finalize
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import Tensor

from common import SEED, latents
from lace.attributes.annotators.age import AgeV1, FaceRes
from lace.attributes.annotators.judge import Judge
from lace.attributes.annotators.landmarks import COLUMNS, Landmarker
from lace.files import written_whole
from lace.weights import mobilestylegan

LANDMARK_PIXELS = 384
# Batches that may wait for the CPU's judges.
QUEUE = 64

_worker: tuple[Landmarker, AgeV1]


def start_worker() -> None:
    """Each process has judges of its own, on one core."""
    global _worker
    torch.set_num_threads(1)
    _worker = Landmarker(threads=1), AgeV1(threads=1)
    # MediaPipe must be closed before the interpreter stops its threads.
    Finalize(None, _worker[0].close, exitpriority=1)


def on_cpu(pictures: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The answers of the judges that run on a CPU, beside the GPU's work."""
    landmarker, age = _worker
    faces = torch.from_numpy(pictures).permute(0, 3, 1, 2).float() / 127.5 - 1
    return landmarker(pictures), age(faces).numpy()


def eight_bit(x: Tensor) -> Tensor:
    """Faces as a PNG would hold them."""
    return (x * 127.5 + 127.5).round().clamp(0, 255)


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
    waiting: list[Future[tuple[np.ndarray, np.ndarray]]] = []
    start, done = time.time(), 0
    with ProcessPoolExecutor(args.workers, multiprocessing.get_context("spawn"), start_worker) as pool:
        for rows in torch.arange(args.first, args.first + args.count).split(args.batch):
            faces = eight_bit(generator.to_picture(latents(generator, rows.to(args.device)))) / 127.5 - 1
            for name, judge in judges.items():
                columns[name].append(judge.probabilities(faces).cpu())
            for name, answer in zip(("faceres_age", "faceres_male"), faceres(faces), strict=True):
                columns[name].append(answer.cpu())
            small = eight_bit(F.interpolate(faces, size=(LANDMARK_PIXELS,) * 2, mode="bilinear", antialias=True))
            waiting.append(pool.submit(on_cpu, small.to(torch.uint8).permute(0, 2, 3, 1).cpu().numpy()))
            if len(waiting) > QUEUE:
                waiting[-QUEUE].result()
            done += len(rows)
            if done % (100 * args.batch) == 0:
                print(f"{done}/{args.count}  {time.time() - start:.0f} s", flush=True)
        answers = [future.result() for future in waiting]
    tensors = {name: torch.cat(parts).half() for name, parts in columns.items()}
    for k, name in enumerate(("landmarks", "age_v1")):
        tensors[name] = torch.from_numpy(np.concatenate([answer[k] for answer in answers])).half()
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
