"""Importing: once, whole, by a name; then the model is there like any other, without words of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import lace
from lace.cli import main
from lace.errors import ConditionError, UnknownNameError, ValueRangeError, WeightsError
from lace.weights.store import home
from tests.generators.plain_stylegan2 import Plain
from tests.weights import made


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LACE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def cats(own_home: Path) -> Path:
    """A conditional generator of five classes."""
    return made.nvidia(own_home / "Cats.pkl", made.weights(classes=5, embedding=7))


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(arguments)
    out = capsys.readouterr()
    return code, out.out, out.err


def test_import_says_what_it_found(cats: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "import", str(cats), "--json")
    assert (code, err) == (0, "")
    facts = json.loads(out)
    written = facts.pop("written")
    assert facts == {
        "name": "cats",
        "kind": "StyleGAN2-ADA, NVIDIA's PyTorch pickle",
        "resolution": 32,
        "z": 16,
        "w": 12,
        "mapping_layers": 2,
        "channels": [12, 10, 8, 6],
        "architecture": "skip",
        "classes": 5,
        "half_precision_blocks": 0,
        "parameters": sum(v.numel() for k, v in made.weights(classes=5, embedding=7).items() if is_parameter(k)),
        "training_set": "/data/cats.zip",
    }
    assert Path(written) == home() / "models" / "cats" / "generator.safetensors"
    models = {row["name"]: row for row in json.loads(run(capsys, "models", "--json")[1])["models"]}
    assert list(models) == ["ffhq", "dcgan", "cats"]
    assert (models["cats"]["attributes"], models["cats"]["classes"]) == ([], 5)
    assert "cats" in run(capsys, "import", str(cats), "--name", "again")[1] + run(capsys, "models")[1]


def is_parameter(name: str) -> bool:
    return not name.endswith(("w_avg", "noise_const", "resample_filter"))


def test_a_name_is_taken_once(cats: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "import", str(cats))[0] == 0
    before = (home() / "models" / "cats" / "generator.safetensors").read_bytes()
    code, _, err = run(capsys, "import", str(cats))
    assert code == 2
    assert "--name" in err
    assert (home() / "models" / "cats" / "generator.safetensors").read_bytes() == before
    for name, words in (("ffhq", "LACE's own"), ("../cats", "cannot be"), ("Cats", "small letters"), ("", "cannot be")):
        code, _, err = run(capsys, "import", str(cats), "--name", name)
        assert code == 2
        assert words in err
    assert sorted(path.name for path in (home() / "models").iterdir()) == ["cats"]


def test_what_cannot_be_read_leaves_nothing(own_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (own_home / "bad.pkl").write_bytes(b"\x80\x04cos\nsystem\n.")
    code, out, err = run(capsys, "import", "bad.pkl")
    assert (code, out) == (2, "")
    assert "os.system" in err
    assert run(capsys, "import", "nowhere.pkl")[0] == 2
    assert not (home() / "models").exists()
    assert json.loads(run(capsys, "models", "--json")[1])["models"][-1]["name"] == "dcgan"


@torch.inference_mode()
def test_a_path_is_a_model(cats: Path) -> None:
    """load(path) imports once, under the file's name; another file of that name is refused, the same one is not."""
    model = lace.load(cats, device="cpu", psi=0.7, label=2)
    assert (model.name, model.generator.latent_dim) == ("cats", 16)
    drawing = model.at(["0:5", "3:7"])
    plain = Plain(made.weights(classes=5, embedding=7))
    for z, picture in zip(drawing.z, model.pictures(drawing.w), strict=True):
        expected = plain.picture(z.numpy(), 2, 0.7).transpose(1, 2, 0) * 127.5 + 128
        assert np.abs(picture - expected.clip(0, 255).astype(int)).max() <= 1
    again = lace.load(str(cats), device="cpu")
    assert again.generator.latent_dim == 16 + 5
    assert lace.load("cats", device="cpu").generator.identity == again.generator.identity
    made.nvidia(cats, made.weights(seed=9))
    with pytest.raises(WeightsError, match="--name"):
        lace.load(cats)
    with pytest.raises(WeightsError, match="no checkpoint"):
        lace.load("somewhere/else.pkl")
    with pytest.raises(WeightsError, match="no checkpoint"):
        lace.load(Path("ffhq"))
    with pytest.raises(ValueRangeError, match="0 to 4"):
        lace.load("cats", label=5)
    with pytest.raises(ValueRangeError, match="no classes"):
        lace.load("dcgan", label=0)


def test_the_safe_form_travels(cats: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What one machine imported, another imports: the same pictures."""
    here = lace.load(cats, device="cpu", label=1)
    file = home() / "models" / "cats" / "generator.safetensors"
    monkeypatch.setenv("LACE_HOME", str(own_home / "other"))
    there = lace.load(file, device="cpu", label=1)
    assert there.name == "generator"
    pictures = [np.stack(list(model.pictures(model.at(["0:1", "0:2"]).w))) for model in (here, there)]
    assert np.array_equal(*pictures)


def test_without_words_pictures_are_shown_and_sentences_refused(
    cats: Path, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(capsys, "import", str(cats))
    code, _, err = run(capsys, "show", "0:5", "0:6", "--model", "cats", "--label", "3", "--dir", "shown")
    assert (code, err) == (0, "")
    assert run(capsys, "show", "shown#1", "--out", "again.png")[0] == 0
    first, again = (np.asarray(Image.open(path)) for path in (sorted(Path("shown").glob("*.png"))[1], "again.png"))
    assert np.array_equal(first, again)
    for command in ("sample", "explain"):
        code, out, err = run(capsys, command, "smile", "--model", "cats")
        assert (code, out) == (2, "")
        assert "no words yet" in err
        assert "lace learn" in err
        assert "empty" in run(capsys, command, "", "--model", "cats")[2]
    assert "no words" in run(capsys, "attributes", "--model", "cats")[1]
    model = lace.load("cats", device="cpu")
    with pytest.raises(ConditionError, match="no words yet"):
        model["smile"]
    assert model.at(["0:1"]).values(0) == {}
    assert model.bank.readings.shape[1] == 0
    with pytest.raises(UnknownNameError, match="cats"):
        lace.load("catz")


def test_listing_loads_no_torch(cats: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "import", str(cats))
    program = "import sys, lace.cli; lace.cli.main(['models']); sys.exit('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "cats" in done.stdout


def test_words_on_an_imported_generator(cats: Path) -> None:
    """Attributes as functions of w: samples obey, alone and composed."""
    generator = lace.load(cats, device="cpu").generator
    centre = generator.to_w(generator.prior(1, torch.arange(4096))).median(dim=0).values
    words = [(lace.Discrete(name), yes(centre, k)) for k, name in enumerate(("first", "second"))]
    model = lace.Model(generator, words, bank_size=4096)
    assert abs(model.probability("first").probability - 0.5) < 4 * (0.25 * 2 / 4096) ** 0.5
    out = model.sample("first & ~second", n=8, seed=3)
    assert out.images is not None
    assert out.images.shape == (8, 32, 32, 3)
    assert ((out.w - centre)[:, 0] > 0).all()
    assert ((out.w - centre)[:, 1] < 0).all()


def yes(centre: torch.Tensor, k: int):
    """A yes where a number of w is above its median."""
    return lambda w: torch.stack([torch.zeros(len(w)), 1e4 * (w - centre)[:, k]], dim=1)
