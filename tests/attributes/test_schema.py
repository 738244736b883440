"""Schemas: columns, words, units, and names that would break sentences."""

from __future__ import annotations

import json

import pytest
import torch

from lace.attributes.schema import Continuous, Discrete, Schema, nearest
from lace.errors import DataError, UnknownNameError


def test_columns_follow_each_other(schema: Schema) -> None:
    assert schema.columns == 2 + 2 + 3 + 1 + 1
    assert [schema.slice(a.name) for a in schema] == [slice(0, 2), slice(2, 4), slice(4, 7), slice(7, 8), slice(8, 9)]


def test_units(schema: Schema) -> None:
    readings = torch.zeros(3, schema.columns)
    readings[:, 8] = torch.tensor([0.0, 0.5, 1.0])
    yaw = schema["yaw"]
    assert isinstance(yaw, Continuous)
    assert schema.natural(readings, yaw).tolist() == [-50, 0, 50]


def test_a_class_of_one_attribute_is_a_word(schema: Schema) -> None:
    assert schema.words() == ["smile", "glasses", "hair", "age", "yaw", "black", "blond", "brown"]


def test_json_keeps_everything(schema: Schema) -> None:
    again = Schema.from_json(json.loads(json.dumps(schema.to_json())))
    assert again.attributes == schema.attributes
    assert [a.sigma for a in again if isinstance(a, Continuous)] == [5.0, 2.0]


@pytest.mark.parametrize("name", ["and", "or", "not", "in", "Smile", "two words", "1st", "", "é", "a-b"])
def test_names_that_are_no_words_are_refused(name: str) -> None:
    with pytest.raises(DataError):
        Schema([Discrete(name)])
    with pytest.raises(DataError):
        Schema([Discrete("fine", ("a", name))])


def test_impossible_schemas_are_refused() -> None:
    with pytest.raises(DataError, match="same name"):
        Schema([Discrete("a"), Discrete("a")])
    for classes in (("only",), ("twice", "twice"), ()):
        with pytest.raises(DataError, match="two classes"):
            Schema([Discrete("a", classes)])
    with pytest.raises(DataError, match="below"):
        Schema([Continuous("a", 1, 1)])
    with pytest.raises(DataError):
        Schema.from_json([{"name": "a"}])


def test_unknown_names_get_a_hint(schema: Schema) -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'glasses'"):
        schema["glases"]
    assert nearest("zzz", ["a", "b"]) == "; known are a, b."
