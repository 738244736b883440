"""The CIFAR-10 recipe's own parts: packing, the networks that are trained, augmentation, checkpoints, and shipping."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import lace
from lace.attributes.card import read_card, write_with_card
from lace.attributes.heads import MlpHeads
from lace.errors import DataError, UnknownNameError, ValueRangeError
from lace.generators.stylegan2 import Config, StyleGAN2
from tests.conftest import within

RECIPE = Path(__file__).parents[2] / "recipes" / "cifar10"
CHANNELS = (8, 8, 6, 4)


@pytest.fixture(autouse=True)
def one_thread(two_threads: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small networks are quickest on one thread."""
    monkeypatch.syspath_prepend(str(RECIPE))
    torch.set_num_threads(1)
    torch.manual_seed(0)


def noise(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


# --- the data set


def sheet(path: Path, count: int = 1200) -> tuple[np.ndarray, np.ndarray]:
    import pack_cifar

    rng = np.random.default_rng(0)
    pictures = rng.integers(0, 256, (count, 32, 32, 3), dtype=np.uint8)
    labels = rng.integers(0, 10, count, dtype=np.uint8)
    pack_cifar.packed(path, pictures, labels)
    return pictures, labels


def test_a_sheet_is_packed_without_loss(tmp_path: Path) -> None:
    """Three strips, the last not full."""
    from cifar import fingerprint, read_sheet

    pictures, labels = sheet(tmp_path / "a.npz")
    back, found = read_sheet(tmp_path / "a.npz", fingerprint(pictures, labels))
    assert np.array_equal(back, pictures)
    assert np.array_equal(found, labels)


def test_other_pictures_or_labels_are_refused(tmp_path: Path) -> None:
    from cifar import fingerprint, read_sheet

    pictures, labels = sheet(tmp_path / "a.npz", 40)
    labels[7] += 1
    with pytest.raises(DataError, match=r"does not hold the pictures.*pack_cifar"):
        read_sheet(tmp_path / "a.npz", fingerprint(pictures, labels))


@given(st.binary(max_size=300), st.integers(0, 200))
def test_what_is_no_sheet_ends_in_a_sentence(junk: bytes, cut: int) -> None:
    import tempfile

    from cifar import read_sheet

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.npz"
        path.write_bytes(junk)
        with pytest.raises(DataError):
            read_sheet(path, "")
        sheet(path, 3)
        path.write_bytes(path.read_bytes()[: 1 + cut * 5])
        with pytest.raises(DataError):
            read_sheet(path, "")


def test_rows_of_the_package_are_pictures(tmp_path: Path) -> None:
    """A row of 1024 pixels is a picture, line by line."""
    import pack_cifar

    rows = np.arange(2 * 1024 * 3, dtype=np.uint32).astype(np.uint8).reshape(2, 1024, 3)
    Image.fromarray(rows).save(tmp_path / "rows.png")
    pictures = pack_cifar.unrolled(tmp_path / "rows.png")
    assert np.array_equal(pictures[1, 3, 5], rows[1, 3 * 32 + 5])
    Image.fromarray(rows[:, :1000]).save(tmp_path / "short.png")
    with pytest.raises(DataError, match="1000 pixels"):
        pack_cifar.unrolled(tmp_path / "short.png")


def test_sheets_that_arrive_later_are_taken_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is only half there is waited for."""
    import cifar
    import train_generator

    for name in cifar.TRAIN[:2]:
        monkeypatch.setitem(cifar.FINGERPRINTS, name, cifar.fingerprint(*sheet(tmp_path / f"{name}.npz", 20)))
    first, second = (tmp_path / f"{name}.npz" for name in cifar.TRAIN[:2])
    whole = second.read_bytes()
    second.unlink()
    names = cifar.present(tmp_path)
    pictures = cifar.read(tmp_path, names)[0]
    assert len(pictures) == 20
    second.write_bytes(whole[:100])
    assert train_generator.taken_in(tmp_path, names, pictures, "cpu") == (names, pictures)
    second.write_bytes(whole)
    found, more = train_generator.taken_in(tmp_path, names, pictures, "cpu")
    assert (found, len(more)) == (list(cifar.TRAIN[:2]), 40)
    first.unlink()
    second.unlink()
    with pytest.raises(DataError, match="holds no sheet"):
        cifar.read(tmp_path, cifar.present(tmp_path))


# --- the networks


def test_the_filter_is_a_convolution() -> None:
    """Shifted sums against PyTorch's convolution with the same taps, and against zeros put between pixels."""
    from fir import doubled, smoothed

    x, line = noise(2, 3, 6, 8).double(), torch.tensor([1.0, 3, 3, 1], dtype=torch.double) / 8
    kernel = (line[:, None] * line).expand(3, 1, 4, 4)
    for padding, step in ((1, 1), (2, 1), (1, 2)):
        truth = torch.nn.functional.conv2d(x, kernel, padding=padding, stride=step, groups=3)
        assert torch.allclose(smoothed(x, padding, step=step), truth)
    stuffed = torch.zeros(2, 3, 12, 16, dtype=torch.double)
    stuffed[:, :, ::2, ::2] = x
    padded = torch.nn.functional.pad(stuffed, (2, 1, 2, 1))
    assert torch.allclose(doubled(x), torch.nn.functional.conv2d(padded, 4 * kernel, groups=3))


def trainee() -> torch.nn.Module:
    """Untrained networks have weights that show nothing: noise without strength, biases of zero."""
    from trainee import Trainee

    network = Trainee(CHANNELS)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
    return network


def test_what_was_trained_draws_the_same_as_lace(tmp_path: Path) -> None:
    """With no noise, and with the noise that was drawn for it."""
    network = trainee()
    config, state = network.finished()
    generator = StyleGAN2(Config(**config))
    generator.load_state_dict(state)
    z = noise(3, 512)
    with torch.no_grad():
        plain = generator.to_picture(generator.to_w(z), noise="none")
        assert torch.allclose(network(z), plain, atol=1e-4 * float(plain.abs().max()))
        maps = [value.flatten() for name, value in state.items() if name.endswith(".noise")]
        noisy = generator.to_picture(generator.to_w(z))
        assert torch.allclose(network(z, torch.cat(maps).expand(3, -1)), noisy, atol=1e-4 * float(noisy.abs().max()))
        assert float((noisy - plain).abs().mean()) > 0.01


def test_groups_hold_pictures_of_one_kind() -> None:
    """What is said of real pictures does not depend on the drawn ones behind them, and is what a pass alone says."""
    from critic import Critic

    critic = Critic(CHANNELS, group=4)
    real, fake = noise(8, 3, 32, 32), noise(8, 3, 32, 32, seed=1)
    with torch.no_grad():
        together = critic(torch.cat([real, fake]))
        assert torch.allclose(together, torch.cat([critic(real), critic(fake)]), atol=1e-5)
        # A neighbour within the group does matter.
        changed = real.clone()
        changed[1] = 0
        assert abs(float(critic(changed)[0] - together[0])) > 1e-6
        assert torch.allclose(critic(changed)[4:], together[4:8], atol=1e-5)
        with pytest.raises(ValueRangeError, match="no whole groups"):
            critic(real[:6])


def test_deviation_by_hand() -> None:
    from critic import deviation

    x = torch.tensor([0.0, 2, 5, 5])[:, None, None, None].expand(4, 2, 1, 1)
    found = deviation(x, 2)[:, 2, 0, 0]
    assert found.tolist() == pytest.approx([1, 1, 1e-4, 1e-4], rel=1e-3)


def test_the_penalty_is_the_slope_squared() -> None:
    """Of a critic that is linear in the picture, the square of its coefficients."""
    from train_generator import penalty

    weights = noise(3, 4, 4)
    found = penalty(lambda x: (x * weights).sum(dim=(1, 2, 3)), noise(5, 3, 4, 4, seed=2))
    assert float(found) == pytest.approx(float(weights.square().sum()), rel=1e-5)


# --- augmentation


def test_without_augmentation_nothing_changes() -> None:
    from augment import Augment

    pictures = noise(6, 3, 32, 32)
    assert torch.allclose(Augment("cpu", 0.0)(pictures, torch.Generator().manual_seed(0)), pictures, atol=1e-5)


def test_distortions_are_as_frequent_as_they_shall_be() -> None:
    """A picture is left as it is where none of them happens: 1 - p for each, (1 - p) for both turns together, and what
    happens may be neutral: half of the mirrors, a quarter of the quarter turns, 1 of 8 whole shifts (about)."""
    from augment import Dice, colours, places

    n, p = 20_000, torch.tensor(0.1)
    rng = torch.Generator().manual_seed(0)
    same = (places(Dice.rolled(n, p, rng), 32) - torch.eye(3)).abs().amax(dim=(1, 2)) < 1e-6
    # A shift of (u - 1/2) 8 pixels, rounded, is none with 1/8.
    truth = (1 - 0.1 / 2) * (1 - 0.1 * 3 / 4) * (1 - 0.1 * 7 / 8) ** 2 * 0.9**5
    assert within(float(same.float().mean()), truth, math.sqrt(truth * (1 - truth) / n))
    neutral = torch.cat([torch.eye(3), torch.zeros(3, 1)], dim=1)
    same = (colours(Dice.rolled(n, p, rng)) - neutral).abs().amax(dim=(1, 2)) < 1e-6
    truth = 0.9**4 * (1 - 0.1 / 2)
    assert within(float(same.float().mean()), truth, math.sqrt(truth * (1 - truth) / n))


def test_colours_keep_what_they_should() -> None:
    """Hue and saturation leave light as it is; what is grey stays grey whatever happens."""
    from augment import Dice, colours, repainted

    found = colours(Dice.rolled(500, torch.tensor(1.0), torch.Generator().manual_seed(0)))
    grey = repainted(torch.full((500, 3, 1, 1), 0.3), found)[:, :, 0, 0]
    assert torch.allclose(grey, grey[:, :1].expand(-1, 3), atol=1e-4)


def test_a_mirrored_picture_comes_back_mirrored() -> None:
    """The matrix of a mirror, applied: the same as flipping."""
    from augment import stretched

    pictures = noise(4, 3, 8, 8)
    matrix = stretched(-torch.ones(4), torch.ones(4))
    grid = torch.nn.functional.affine_grid(matrix[:, :2], [4, 3, 8, 8], align_corners=False)
    moved = torch.nn.functional.grid_sample(pictures, grid, align_corners=False)
    assert torch.allclose(moved, pictures.flip(3), atol=1e-5)


def test_p_follows_the_sign_of_what_is_said() -> None:
    """Four steps of 1,000 pictures move it by 4,000 / 500,000; down again, and never below zero."""
    from augment import Augment

    augment = Augment("cpu")
    sure, unsure = torch.ones(1000), torch.cat([torch.ones(700), -torch.ones(300)])
    for _ in range(8):
        augment.watch(sure)
    assert float(augment.p) == pytest.approx(0.016)
    assert float(augment.r) == 1.0
    for _ in range(4):
        augment.watch(unsure)
    assert (float(augment.r), float(augment.p)) == (pytest.approx(0.4), pytest.approx(0.008))
    for _ in range(20):
        augment.watch(-sure)
    assert float(augment.p) == 0.0


# --- training


def small_training(tmp_path: Path, **changed: object) -> object:
    import argparse

    from train_generator import begun

    settings = {"seed": 0, "device": "cpu", "channels": CHANNELS, "batch": 8, "gamma": 0.01, "resume": False}
    return begun(argparse.Namespace(**{**settings, "out": tmp_path, **changed}))


def test_a_step_moves_both_networks_and_the_average_follows(tmp_path: Path) -> None:
    training = small_training(tmp_path)
    before = {name: [p.clone() for p in network.parameters()] for name, network in training.networks.items()}
    pictures = torch.randint(0, 256, (20, 3, 32, 32), generator=torch.Generator().manual_seed(0)).to(torch.uint8)
    training.step(pictures)
    after = {name: list(network.parameters()) for name, network in training.networks.items()}
    for name in after:
        assert any(not torch.equal(a, b) for a, b in zip(before[name], after[name], strict=True)), name
    assert training.seen == 8
    assert all(p.grad is None for network in training.networks.values() for p in network.parameters())
    # With half its weight over 1.4 pictures, the average has gone 1 - 2^(-8 / 1.4) of the way.
    share = 1 - 0.5 ** (8 / (0.05 * 8 + 1))
    for old, new, mean in zip(before["trainee"], after["trainee"], after["average"], strict=True):
        assert torch.allclose(mean, old + share * (new - old), atol=1e-5)


def test_a_training_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    """Weights come back to half a thousandth, how far it was exactly; files of two moments are refused."""
    from checkpoint import load, save

    training = small_training(tmp_path)
    card = {"seen": 4096, "p": 0.25, "channels": CHANNELS}
    save(tmp_path, training.networks, card)
    again = small_training(tmp_path, resume=True, seed=5)
    assert (again.seen, float(again.augment.p), again.steps) == (4096, 0.25, 0)
    for name, network in training.networks.items():
        for mine, theirs in zip(network.parameters(), again.networks[name].parameters(), strict=True):
            assert torch.allclose(mine, theirs, rtol=1e-3, atol=1e-6)
    save(tmp_path, {"critic": training.critic}, {**card, "seen": 5000})
    with pytest.raises(DataError, match="different moments"):
        load(tmp_path, training.networks)
    save(tmp_path, training.networks, card)
    with pytest.raises(DataError, match="networks of this size"):
        small_training(tmp_path, resume=True, channels=(4, 4, 4, 4))


def test_a_checkpoint_of_full_size_is_small_enough() -> None:
    """Files of at most 16 MiB, at half precision, of the widest networks that the recipe speaks of."""
    from critic import Critic
    from trainee import Trainee

    for network in (Trainee((256,) * 4), Critic((256,) * 4, 32)):
        assert 2 * sum(parameter.numel() for parameter in network.parameters()) < 15 * 2**20


# --- judges and shipping


def test_views_are_shifted_mirrored_pictures_with_a_hole() -> None:
    """Every pixel of a view is a pixel of the picture's own row or column numbers, or part of the hole."""
    from train_classifiers import HOLE, SHIFT, views

    line = torch.arange(32.0) + 1
    pictures = torch.stack([line.expand(32, 32), line[:, None].expand(32, 32), torch.ones(32, 32)])
    found = views(pictures.expand(50, -1, -1, -1), torch.Generator().manual_seed(0))
    hole = found[:, 2] == 0
    assert torch.equal(hole, found[:, 0] == 0)
    assert int(hole.sum(dim=(1, 2)).max()) <= HOLE**2
    middle = found[:, :, 16, 16]
    seen = middle[middle[:, 2] > 0]
    # The middle came from at most so far away, on the mirrored side of the picture too.
    assert bool(((seen[:, 1] - 17).abs() <= SHIFT).all())
    assert bool((torch.minimum((seen[:, 0] - 17).abs(), (seen[:, 0] - 16).abs()) <= SHIFT).all())
    assert len(seen[:, 0].unique()) > 5


def test_a_judge_learns_what_is_plain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures whose colour is their class: both kinds tell them, and say the same when read back."""
    import train_classifiers
    from lace.attributes.annotators.classes import ClassJudge

    labels = torch.arange(200) % 4
    colours = torch.tensor([[230, 30, 30], [30, 230, 30], [30, 30, 230], [230, 230, 30]], dtype=torch.uint8)
    pictures = colours[labels][:, :, None, None].expand(-1, -1, 32, 32).contiguous()
    for kind, (network, _, part) in train_classifiers.KINDS.items():
        monkeypatch.setitem(train_classifiers.KINDS, kind, (network, (8, 8, 8), part))
        judge = train_classifiers.fit(train_classifiers.made(kind, 0), pictures, labels, epochs=8, batch=50)
        train_classifiers.calibrate(judge, pictures[:40], labels[:40])
        assert train_classifiers.accuracy(judge, pictures, labels) == 1.0
        judge.half().float()
        judge.save(tmp_path / "judge.safetensors", {})
        back = ClassJudge.load(tmp_path / "judge.safetensors")
        one, other = (j.look(train_classifiers.scaled(pictures[:4])) for j in (judge, back))
        assert torch.allclose(one[0], other[0], atol=1e-4)
        assert torch.allclose(one[1], other[1], atol=1e-3)


def shipped_files(folder: Path, model: str | None = None) -> tuple[Path, Path]:
    """A generator and heads as the recipe leaves them."""
    from cifar import SCHEMA
    from export_generator import ABOUT, LICENCE, identity_of

    config, state = trainee().finished()
    named = {"generator": "stylegan2", "identity": identity_of(state), "config": config}
    write_with_card(folder / "generator.safetensors", state, {**named, "about": ABOUT, "licence": LICENCE})
    heads = MlpHeads(SCHEMA, 512, torch.ones(1, 1)).initialise(torch.Generator().manual_seed(0)).signed()
    card = {"model": model or identity_of(state), "measured": {"class": {"accuracy": 0.8}}}
    heads.save(folder / "heads.safetensors", card)
    return folder / "generator.safetensors", folder / "heads.safetensors"


def test_files_in_the_folder_are_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else has to change for it to be listed, loaded and asked by its classes' names."""
    import ship
    from lace import catalog

    files = shipped_files(tmp_path)
    ship.ship(*files, tmp_path / "shipped" / "cifar10")
    (entry,) = catalog.shipped(tmp_path / "shipped")
    assert (entry.name, entry.resolution, entry.psi) == ("cifar10", 32, 1.0)
    monkeypatch.setitem(catalog.CATALOG, "cifar10", entry)
    monkeypatch.setattr("lace.attributes.words.taught", lambda model: [])
    model = lace.load("cifar10", device="cpu")
    assert str(model["ship"]) == str(model["class=ship"])
    # Its pictures are those of the file, weights rounded to half precision.
    w = model.generator.to_w(noise(2, 512))
    again = catalog._own(files[0], 1.0)
    assert torch.equal(model.generator.to_picture(w), again.to_picture(w))


def test_half_a_model_does_not_appear(tmp_path: Path) -> None:
    from lace.catalog import shipped

    generator, heads = shipped_files(tmp_path / "cifar10")
    heads.unlink()
    assert shipped(tmp_path) == []
    assert shipped(tmp_path / "nowhere") == []
    assert generator.exists()


def test_a_model_that_is_not_made_yet_names_its_recipe(monkeypatch: pytest.MonkeyPatch) -> None:
    from lace import catalog

    monkeypatch.delitem(catalog.CATALOG, "cifar10", raising=False)
    with pytest.raises(UnknownNameError, match=re.escape("recipes/cifar10/all.sh")):
        lace.load("cifar10")
    assert Path(catalog.RECIPES["cifar10"]).exists()


def test_heads_of_another_generator_are_not_shipped(tmp_path: Path) -> None:
    import ship

    with pytest.raises(DataError, match="another generator"):
        ship.ship(*shipped_files(tmp_path, "another"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_safe_form_can_be_imported_by_others(tmp_path: Path) -> None:
    from lace.weights.checkpoints import read

    generator, _ = shipped_files(tmp_path)
    card, state = read(generator)
    assert card["identity"] == read_card(generator)["identity"]
    assert json.loads(json.dumps(card["config"]))["channels"] == list(CHANNELS)
    assert all(value.isfinite().all() for value in state.values())
