"""The judge's framing, padding and files; TensorFlow.js weights."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch

from lace.attributes.annotators.age import tfjs_weights
from lace.attributes.annotators.efficientnet import Conv, EfficientNetLite0
from lace.attributes.annotators.judge import Judge, celeba_framing


def test_framing_takes_the_stated_rows_and_columns() -> None:
    """A picture of its own coordinates: the crop runs from column 88 to 939 and from row 41 to 892."""
    ramp = torch.arange(1024) + 0.5
    faces = torch.stack([ramp.expand(1024, -1), ramp[:, None].expand(-1, 1024), torch.zeros(1024, 1024)])[None]
    columns, rows = celeba_framing(faces)[0, 0, 80], celeba_framing(faces)[0, 1, :, 80]
    pixel = 851 / 160
    assert torch.allclose(columns[[10, 149]], torch.tensor([88 + 10.5 * pixel, 939 - 10.5 * pixel]), atol=1.0)
    assert torch.allclose(rows[[10, 149]], torch.tensor([41 + 10.5 * pixel, 892 - 10.5 * pixel]), atol=1.0)


def test_framing_is_the_same_at_any_size() -> None:
    coarse = torch.rand(1, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    large, small = (torch.nn.functional.interpolate(coarse, size=size, mode="bilinear") for size in (1024, 512))
    assert (celeba_framing(large) - celeba_framing(small)).abs().max() < 0.02


def test_same_padding_is_tensorflows() -> None:
    """Stride 2, kernel 3: even sizes are padded right and bottom only, odd sizes on both sides."""
    kernel = torch.ones(1, 1, 3, 3)
    conv = Conv(1, 1, 3, 2)
    conv.weight.data.copy_(kernel)
    even, odd = torch.ones(1, 1, 4, 4), torch.ones(1, 1, 5, 5)
    assert conv(even)[0, 0].tolist() == [[9, 6], [6, 4]]
    assert conv(odd)[0, 0].tolist() == [[4, 6, 4], [6, 9, 6], [4, 6, 4]]


def test_the_backbone_has_the_published_size() -> None:
    """4.65 million weights in all, 1.28 million of them in the ImageNet classifier that is left out."""
    count = sum(p.numel() for p in EfficientNetLite0().parameters())
    assert count == 4_652_008 - 1000 * 1281


def test_a_judge_reads_back(tmp_path: Path) -> None:
    torch.manual_seed(0)
    judge = Judge(["smile", "hat"]).half().float().eval()
    judge.save(tmp_path / "judge.safetensors", {})
    again = Judge.load(tmp_path / "judge.safetensors")
    faces = torch.rand(2, 3, 96, 96) * 2 - 1
    assert again.names == ["smile", "hat"]
    assert torch.equal(again.probabilities(faces), judge.probabilities(faces))


def test_tfjs_weights_follow_the_manifest(tmp_path: Path) -> None:
    arrays = {"a/kernel": np.arange(6, dtype="<f4").reshape(2, 3), "b": np.array([7.0], dtype="<f4")}
    (tmp_path / "m.bin").write_bytes(b"".join(array.tobytes() for array in arrays.values()))
    entries = [{"name": name, "shape": list(array.shape), "dtype": "float32"} for name, array in arrays.items()]
    (tmp_path / "m.json").write_text(json.dumps({"weightsManifest": [{"weights": entries}]}))
    found = tfjs_weights(tmp_path / "m.json")
    assert all(np.array_equal(found[name].numpy(), array) for name, array in arrays.items())
