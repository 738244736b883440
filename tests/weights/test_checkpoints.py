"""Checkpoints in every form, against StyleGAN2 worked out from its definition."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from lace.errors import ValueRangeError, WeightsError
from lace.generators.stylegan2 import Config, StyleGAN2
from lace.weights.checkpoints import read
from tests.generators.plain_stylegan2 import Plain
from tests.weights import made


def generator(path: Path, **options: Any) -> StyleGAN2:
    card, state = read(path)
    net = StyleGAN2(Config.from_json(card["config"]), **options)
    net.load_state_dict(state)
    return net


@torch.inference_mode()
def agree(net: StyleGAN2, plain: Plain, label: int | None = None) -> None:
    """Two pictures, alone and together, with and without truncation and noise."""
    z = torch.randn(2, net.latent_dim, generator=torch.Generator().manual_seed(3))
    width = net.config.z_dim
    classes = [label if label is not None else int(row[width:].argmax()) if net.config.classes else 0 for row in z]
    for psi in (1.0, 0.6):
        net.psi = psi
        w = net.to_w(z)
        for noise in (True, False):
            kind = "fixed" if noise else "none"
            expected = np.stack(
                [plain.picture(row[:width].numpy(), c, psi, noise=noise) for row, c in zip(z, classes, strict=True)]
            )
            for pictures in (net.to_picture(w, kind), net.synthesis(w, kind)):
                assert np.abs(pictures.numpy() - expected).max() < 1e-5 * np.abs(expected).max()


FORMS = {
    "nvidia": made.nvidia,
    "nvidia, protocol 2": lambda path, state: made.nvidia(path, state, protocol=2),
    "nvidia, protocol 5": lambda path, state: made.nvidia(path, state, protocol=5),
    "tensorflow": made.tensorflow,
    "tensorflow, protocol 2": lambda path, state: made.tensorflow(path, state, protocol=2),
    "rosinality": made.rosinality,
    "rosinality, legacy": lambda path, state: made.rosinality(path, state, legacy=True),
    "safetensors": lambda path, state: (save_file({k: v.contiguous() for k, v in state.items()}, path), path)[1],
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_pictures_of_the_definition(tmp_path: Path, form: str) -> None:
    state = made.weights()
    agree(generator(FORMS[form](tmp_path / "net", state)), Plain(state))


CONFIGS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "conditional": ({"classes": 5, "embedding": 7}, {}),
    "residual": ({"architecture": "resnet"}, {"residual": True}),
    "picture after the last block": ({"architecture": "orig"}, {}),
    "three taps": ({"taps": (1, 2, 3), "architecture": "resnet"}, {"taps": (1, 2, 3), "residual": True}),
    "one tap": ({"taps": (1,)}, {"taps": (1,)}),
    "eight taps": ({"taps": (1, 2, 3, 4, 4, 3, 2, 1)}, {"taps": (1, 2, 3, 4, 4, 3, 2, 1)}),
    "kernels of five": ({"kernel": 5}, {}),
    "kernels of one": ({"kernel": 1}, {}),
    "4 pixels": ({"channels": (9,)}, {}),
    "64 pixels": ({"channels": (4, 4, 4, 4, 4), "mapping": (8, 8)}, {}),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_every_config_gives_the_pictures_of_the_definition(tmp_path: Path, name: str) -> None:
    config, plain = CONFIGS[name]
    state = made.weights(**config)
    agree(generator(made.nvidia(tmp_path / "net.pkl", state)), Plain(state, **plain))


def test_clamps_rates_and_half_blocks(tmp_path: Path) -> None:
    """A clamp that bites, and blocks in half precision, which only a GPU draws so."""
    state = made.weights(seed=1)
    net = generator(made.nvidia(tmp_path / "net.pkl", state, rate=0.02, clamp=0.8, half=(16, 32)))
    assert (net.config.clamp, net.config.half) == (0.8, 2)
    assert [block.in_half for block in net.synthesis.blocks] == [False, False, True, True]
    agree(net, Plain(state, clamp=0.8, rate=0.02))


def test_a_class_is_fixed_or_drawn_evenly(tmp_path: Path) -> None:
    state = made.weights(classes=5, embedding=7)
    path = made.nvidia(tmp_path / "net.pkl", state)
    agree(generator(path, label=3), Plain(state), label=3)
    free = generator(path)
    z = free.prior(0, torch.arange(20_000))
    counts = torch.bincount(z[:, free.config.z_dim :].argmax(dim=1), minlength=5)
    assert ((counts - 4000).abs() < 4 * (20_000 * 0.2 * 0.8) ** 0.5).all()
    assert free.identity != generator(path, label=3).identity


@torch.inference_mode()
def test_a_row_of_w_for_each_layer(tmp_path: Path) -> None:
    state = made.weights()
    net = generator(made.nvidia(tmp_path / "net.pkl", state))
    rows = torch.randn(1, net.synthesis.rows, 12, generator=torch.Generator().manual_seed(0))
    expected = Plain(state).synthesis(rows[0].double().numpy(), noise=True)
    assert np.abs(net.to_picture(rows)[0].numpy() - expected).max() < 1e-5 * np.abs(expected).max()


@torch.inference_mode()
def test_random_noise_comes_out_of_a_generator(tmp_path: Path) -> None:
    """The same generator gives the same picture; the mean over many comes near to the picture without noise's size."""
    net = generator(made.nvidia(tmp_path / "net.pkl", made.weights()))
    w = net.to_w(net.prior(0, torch.arange(1)))
    one, two = (net.to_picture(w, "random", torch.Generator().manual_seed(7)) for _ in range(2))
    assert torch.equal(one, two)
    assert not torch.equal(one, net.to_picture(w, "random", torch.Generator().manual_seed(8)))
    with pytest.raises(ValueRangeError, match="Generator"):
        net.to_picture(w, "random")
    with pytest.raises(ValueRangeError, match="fixed"):
        net.to_picture(w, "loud")


def test_gradients_equal_differences(tmp_path: Path) -> None:
    """Pictures are differentiable in w, in double precision against central differences."""
    net = generator(made.nvidia(tmp_path / "net.pkl", made.weights())).double()
    w = torch.randn(2, 12, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    direction = torch.randn(2, 12, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    for rows in (w, w[:1]):
        along = direction[: len(rows)]
        rows = rows.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(net.synthesis(rows).square().mean(), rows)
        with torch.no_grad():
            ends = [net.synthesis(rows + sign * 1e-6 * along).square().mean() for sign in (1, -1)]
        assert torch.allclose((gradient * along).sum(), (ends[0] - ends[1]) / 2e-6, rtol=1e-4)


@torch.inference_mode()
def test_what_a_file_may_lack(tmp_path: Path) -> None:
    """Without its mean, w's mean is worked out; without noise there is none; without the maps of it, they are drawn."""
    state = made.weights()
    full = generator(made.nvidia(tmp_path / "full.pkl", state))
    bare = {name: value for name, value in state.items() if name != "mapping.w_avg"}
    net = generator(made.nvidia(tmp_path / "bare.pkl", bare))
    w = full.map(full.prior(5, torch.arange(4096)))
    assert ((w.mean(dim=0) - net.w_mean).abs() < 5 * w.std(dim=0) * (1 / 4096 + 1 / 65536) ** 0.5).all()
    quiet = {name: value for name, value in state.items() if "noise" not in name}
    net = generator(made.nvidia(tmp_path / "quiet.pkl", quiet))
    assert (net.to_picture(w[:1]) - full.to_picture(w[:1], "none")).abs().max() < 1e-5
    mapless = {name: value for name, value in state.items() if "noise_const" not in name}
    one, two = (generator(made.rosinality(tmp_path / f"{k}.pt", mapless)) for k in range(2))
    assert torch.equal(one.to_picture(w[:1]), two.to_picture(w[:1]))
    noise = torch.cat([layer.noise.flatten() for layer in one.synthesis.modules() if hasattr(layer, "noise")])
    assert abs(float(noise.mean())) < 4 / len(noise) ** 0.5
    assert abs(float(noise.std()) - 1) < 4 / (2 * len(noise)) ** 0.5


def test_the_parameters_are_as_many_as_nvidia_counts() -> None:
    """The configs of CIFAR-10, FFHQ and AFHQ have 19,947,539, 30,370,060 and 30,276,583 parameters in NVIDIA's code."""
    with torch.device("meta"):
        for resolution, depth, truth in ((32, 2, 19_947_539), (1024, 8, 30_370_060), (512, 8, 30_276_583)):
            sizes = [4 * 2**k for k in range(resolution.bit_length() - 2)]
            net = StyleGAN2(Config(tuple(min(32768 // size, 512) for size in sizes), (512,) * (depth + 1)))
            assert sum(parameter.numel() for parameter in net.parameters()) == truth


def test_half_precision_files_are_folded_in_single(tmp_path: Path) -> None:
    state = {name: value.half() for name, value in made.weights().items()}
    save_file(state, tmp_path / "net")
    agree(generator(tmp_path / "net"), Plain({name: value.double() for name, value in state.items()}))


def test_layouts_other_than_rows(tmp_path: Path) -> None:
    """Channels-last kernels, and storages that several tensors share, as GPUs and checkpoints like to have them."""
    state = made.weights()
    kernels = [name for name, value in state.items() if value.dim() == 4]
    changed = state | {name: state[name].contiguous(memory_format=torch.channels_last) for name in kernels}
    both = torch.cat([state["synthesis.b8.conv0.bias"], state["synthesis.b8.conv1.bias"]])
    changed["synthesis.b8.conv0.bias"], changed["synthesis.b8.conv1.bias"] = both[:10], both[10:]
    agree(generator(made.nvidia(tmp_path / "net.pkl", changed)), Plain(state))


def refusal(path: Path) -> str:
    with pytest.raises(WeightsError) as error:
        read(path)
    message = str(error.value)
    assert message.startswith(path.name)
    assert message.count("\n") == 0
    return message


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda s: s.pop("synthesis.b8.conv0.weight"), "b8.conv0.weight"),
        (lambda s: s.pop("mapping.fc0.weight"), "no StyleGAN2|strange|has mapping"),
        (lambda s: s.update({"synthesis.b8.attention.weight": torch.ones(3)}), "attention"),
        (lambda s: s.update({"synthesis.b8.conv0.weight": torch.ones(3, 3, 3, 3)}), "shape"),
        (lambda s: s.update({"synthesis.b8.conv0.bias": torch.full((10,), float("nan"))}), "not finite"),
        (lambda s: s.update({"synthesis.b32.torgb.weight": torch.ones(4, 6, 1, 1)}), "picture"),
        (lambda s: s.update({"synthesis.b8.resample_filter": torch.rand(4, 4)}), "both directions"),
        (lambda s: s.update({"synthesis.b8.resample_filter": torch.ones(2, 2)}), "filters differ"),
    ],
)
def test_what_is_no_stylegan2_is_refused_by_name(tmp_path: Path, change: Any, words: str) -> None:
    state = made.weights()
    change(state)
    assert re.search(words, refusal(made.nvidia(tmp_path / "net.pkl", state)))


def test_settings_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    state = made.weights()
    assert "scaled" in refusal(made.nvidia(tmp_path / "rate", state, rate=None))
    assert "half precision" in refusal(made.nvidia(tmp_path / "half", state, half=(8,)))
    assert "fmap_decay" in refusal(made.tensorflow(tmp_path / "kwarg", state, fmap_decay=2))
    assert "swish" in refusal(made.tensorflow(tmp_path / "activation", state, nonlinearity="swish"))
