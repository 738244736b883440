"""The face recipe's own parts: packing a data set, and what the judges' answers come to mean."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from lace.attributes.annotators import celeba

RECIPE = Path(__file__).parents[2] / "recipes" / "ffhq"


@pytest.fixture(autouse=True)
def on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(RECIPE))


def test_celeba_is_packed_and_read_back(tmp_path: Path) -> None:
    """Six pictures of three identities; a sample of four takes whole identities."""
    folder = tmp_path / "celeba"
    (folder / "img_align_celeba").mkdir(parents=True)
    names = [f"{k:06d}.jpg" for k in range(1, 7)]
    for k, name in enumerate(names):
        Image.new("RGB", (178, 218), (40 * k, 100, 200)).save(folder / "img_align_celeba" / name)
    rows = [f"{name}  {'1' if k % 2 else '-1'} -1" for k, name in enumerate(names)]
    (folder / "list_attr_celeba.txt").write_text("6\nSmiling Male\n" + "\n".join(rows) + "\n")
    (folder / "identity_CelebA.txt").write_text("".join(f"{name} {k // 2 + 7}\n" for k, name in enumerate(names)))
    command = [sys.executable, str(RECIPE / "pack_celeba.py"), str(folder), str(tmp_path / "out.npz"), "--count", "4"]
    subprocess.run(command, check=True, capture_output=True)

    from train_judge import read_celeba

    pictures, attributes, groups, found = read_celeba(tmp_path / "out.npz")
    assert found == ["Smiling", "Male"]
    assert pictures.shape == (4, 3, 128, 128)
    assert attributes.tolist() == [[0, 0], [1, 0]] * 2
    red = pictures[:, 0].float().mean(dim=(1, 2)).tolist()
    assert any(
        red == pytest.approx(truth, abs=6) for truth in ([0, 40, 80, 120], [0, 40, 160, 200], [80, 120, 160, 200])
    )
    assert (groups[0], groups[2]) == (groups[1], groups[3])


def answers_file(path: Path, n: int, names: list[str]) -> None:
    from lace.attributes.annotators.landmarks import COLUMNS

    rng = torch.Generator().manual_seed(0)
    probabilities = torch.rand(2, n, len(names), generator=rng)
    tensors = {
        "labeller": probabilities[0],
        "independent": probabilities[1],
        "landmarks": torch.rand(n, 16, generator=rng),
    }
    tensors |= {name: 80 * torch.rand(n, generator=rng) for name in ("age_v1", "faceres_age")}
    tensors |= {"faceres_male": torch.rand(n, generator=rng)}
    about = {"attributes": ",".join(names), "landmarks": ",".join(COLUMNS)}
    save_file({name: value.half() for name, value in tensors.items()}, path, metadata=about)


def test_labels_read_back(tmp_path: Path) -> None:
    """Class probabilities to a byte's rounding, numbers to half precision, each in its own column."""
    import merge
    from common import SCHEMA

    answers_file(tmp_path / "a.safetensors", 300, [*celeba.WORDS.values(), *celeba.HAIR])
    command = [
        sys.executable,
        str(RECIPE / "merge.py"),
        str(tmp_path / "a.safetensors"),
        "--out",
        str(tmp_path / "l.safetensors"),
    ]
    subprocess.run(command, check=True, capture_output=True)
    y, named = merge.read_labels(tmp_path / "l.safetensors")
    answers = merge.read_answers([tmp_path / "a.safetensors"])
    assert y.shape == (300, SCHEMA.columns)
    assert torch.allclose(y[:, SCHEMA.slice("glasses")][:, 1], answers.attribute("Eyeglasses"), atol=0.003)
    assert torch.allclose(y[:, SCHEMA.slice("beard")][:, 0], answers.attribute("No_Beard"), atol=0.003)
    assert torch.allclose(y[:, SCHEMA.slice("haircolor")].sum(dim=1), torch.ones(300), atol=1e-5)
    age = (answers.tensors["age_v1"] + answers.tensors["faceres_age"]) / 2
    assert torch.allclose(80 * y[:, SCHEMA.slice("age")][:, 0], age, atol=0.05)
    glasses = answers.attribute("Eyeglasses", "independent") > 0.5
    assert torch.equal(named[:, 1].bool(), glasses)


def test_labelled_latents_are_truncated_by_their_own_psi(ffhq) -> None:
    import common
    from lace import rng

    index = torch.arange(200)
    w = common.latents(ffhq.generator, index)
    with torch.inference_mode():
        full = ffhq.generator.mapping(rng.normal(common.SEED, index, 512))
    psi = (w - ffhq.generator.w_mean).norm(dim=1) / (full - ffhq.generator.w_mean).norm(dim=1)
    assert float(psi.min()) >= 0.5 - 1e-4
    assert float(psi.max()) <= 1 + 1e-4
    assert float(psi.mean()) == pytest.approx(0.75, abs=4 * 0.5 / 12**0.5 / 200**0.5)
    assert np.all(np.diff(np.sort(psi.numpy())) < 0.05)


def test_every_word_has_a_judge_that_lace_learn_finds(ffhq) -> None:
    """A word's judge says what the labeller says of the same face."""
    import common
    import words
    from lace.attributes.annotators.judge import Judge
    from lace.learning.answers import rows_of
    from lace.learning.judges.function import FunctionJudge

    picture = np.stack(list(ffhq.pictures(common.latents(ffhq.generator, torch.arange(1)))))
    hat = FunctionJudge.named(f"{RECIPE / 'words.py'}:hat")(picture)
    judge = Judge.load(words.LABELLER)
    said = judge.probabilities(torch.from_numpy(picture).permute(0, 3, 1, 2).float() / 127.5 - 1)
    assert rows_of(common.SCHEMA["hat"], hat, 1)[0, 1] == pytest.approx(
        float(said[0, judge.names.index("Wearing_Hat")])
    )
    assert all(callable(getattr(words, attribute.name)) for attribute in common.SCHEMA)
