"""Table 1 on a small world whose judges and heads are made up: what its rows say can be worked out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

import lace
from lace.attributes.annotators.classes import ClassJudge
from lace.attributes.heads import MlpHeads
from lace.attributes.schema import Discrete, Schema
from lace.baselines.latent_jem import LatentJem, Walks
from lace.bench import cifar10, spaces
from lace.bench.contest import Contender
from lace.errors import DataError, UnknownNameError
from lace.samplers.euler import Euler

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
WORD = Discrete("class", CLASSES)
DIM = 24


@pytest.fixture(autouse=True)
def one_thread(two_threads: None) -> None:
    """Small networks are quickest on one thread."""
    torch.set_num_threads(1)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with judges, whose reference is what the model itself draws, and two baselines."""
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    judges = tmp_path / "recipes" / "cifar10" / "judges"
    for name, network in (("labeller", "residual"), ("independent", "plain")):
        judge = ClassJudge(list(CLASSES), network, [8, 8, 8])
        for layer in judge.modules():
            if isinstance(layer, torch.nn.BatchNorm2d):
                layer.momentum = 1.0
        with torch.no_grad():
            judge(torch.randn(64, 3, 32, 32).tanh())
        judge.classify.weight.data *= 20
        judge.save(judges / f"{name}.safetensors", {})
    save_file({"mean": torch.zeros(8), "covariance": torch.eye(8)}, judges / "reference.safetensors")
    for name, size in (("replay-0.1", 30), ("noise-0.01", 0)):
        jem = LatentJem(Schema([WORD]), DIM, Walks(steps=2), size)
        jem.heads.initialise(torch.Generator().manual_seed(0))
        jem.save(tmp_path / "recipes" / "cifar10" / "baselines" / f"{name}.safetensors", {"model": "", "seconds": 7.0})
    return tmp_path


@pytest.fixture
def model() -> lace.Model:
    def draw(w: torch.Tensor) -> torch.Tensor:
        return w.unflatten(1, (3, 2, 4)).repeat_interleave(16, dim=2).repeat_interleave(8, dim=3).tanh()

    heads = MlpHeads(Schema([WORD]), DIM, torch.ones(2, 1)).initialise(torch.Generator().manual_seed(1))
    heads.weights[-1].data *= 10
    return lace.Model(lace.FunctionGenerator(draw, DIM), heads.requires_grad_(False), name="cifar10", bank_size=2**14)


def test_the_table_has_a_line_for_each(checkout: Path, model: lace.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    def compared(model: lace.Model, quick: bool, say: object) -> cifar10.Findings:
        return cifar10.Findings({"spaces": cifar10.Table("Spaces", ("a",), [(1,)])})

    def contenders(quick: bool) -> Iterator[Contender]:
        yield Contender("exact 0", {"max_draws": 2**14})
        # Nobody can be that strict within so few draws.
        yield Contender("exact 1", {"strictness": 1.0, "max_draws": 2**10})
        yield Contender("ode", {"sampler": Euler(0.05)})

    monkeypatch.setattr(spaces, "measure", compared)
    monkeypatch.setattr(cifar10, "contenders", contenders)
    monkeypatch.setattr(cifar10, "page", lambda model: None)
    monkeypatch.setattr(cifar10, "Ode", lambda: Euler(0.05))
    found = cifar10.measure(model, True, lambda stage: None)
    table = found.tables["table"]
    rows = {str(row[0]): dict(zip(table.columns[1:9], row[1:9], strict=True)) for row in table.rows}
    assert rows["Latent-JEM, replay, eta=0.1"]["training s"] == 7.0
    assert rows["JEM (quoted)"]["FD to CIFAR-10"] is None
    # Judge A sorted those by itself.
    assert rows["chosen by A"]["right by A"] == 1.0
    for name in ("exact 0", "ode", "Latent-JEM, noise, eta=0.01"):
        assert 0 <= rows[name]["low"] <= rows[name]["right by B"] <= rows[name]["high"] <= 1
        assert rows[name]["64, ms"] > 0
    # Drawn exactly, the model stays as near to itself as it is; a flow to the peaks does not.
    assert rows["exact 0"]["FD to its own"] < rows["ode"]["FD to its own"]
    said = {str(row[0]): row[9:] for row in table.rows}
    assert said["ode"] == said["ode, one network"] == (4, 0.50, 6.63, 0.972)
    assert said["VE-SDE (quoted)"] == (52800, 448, 2.97, 0.662)
    assert rows["exact 1"]["right by B"] is None
    assert cifar10.draw(found.tables).axes


def test_spaces_are_compared_on_classes(checkout: Path, model: lace.Model) -> None:
    """The same bench serves both models; on the picture the labelling judge is asked itself, so it is right."""
    gallery = spaces.Gallery.opened(model, 40)
    seen = spaces.on_picture(model, gallery)
    assert [word.name for word in seen.schema] == ["class"]
    z = model.generator.prior(3, torch.arange(20))
    named = seen.read(z).argmax(dim=1)
    sides, _ = gallery.jury.judges["labeller"].sides(model.generator.to_picture(z))
    assert torch.equal(named, sides[0].argmax(dim=1))


def test_what_does_not_fit_is_refused(checkout: Path, model: lace.Model, toy: lace.Model) -> None:
    with pytest.raises(UnknownNameError, match="ffhq and cifar10"):
        cifar10.measure(toy, True, lambda stage: None)
    other = checkout / "recipes" / "cifar10" / "baselines" / "replay-0.1.safetensors"
    bench = cifar10.opened(model, True)
    LatentJem.load(other).save(other, {"model": "another", "seconds": 1.0})
    with pytest.raises(DataError, match="another generator"):
        cifar10.baseline(bench, other)
    (checkout / "recipes" / "cifar10" / "judges" / "reference.safetensors").unlink()
    with pytest.raises(DataError, match="judge_generator"):
        cifar10.opened(model, True)
