"""Sentences: what they mean, that they read back, and how they are refused."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lace.attributes.schema import Schema
from lace.conditions.formula import And, Is, Near, Not, Or, Weighted, Within, leaves
from lace.conditions.language import parse, write
from lace.errors import ConditionError, LaceError, SentenceError, UnknownNameError, ValueRangeError

from .strategies import formulas


@given(data=st.data())
def test_every_formula_reads_back(schema: Schema, data: st.DataObject) -> None:
    formula = data.draw(formulas(schema))
    assert parse(write(formula), schema) == formula


@given(text=st.text(alphabet="smilegahr()&|~=<>.*0123456789- andorti\n", max_size=40))
def test_any_text_is_understood_or_refused(schema: Schema, text: str) -> None:
    try:
        formula = parse(text, schema)
    except LaceError as error:
        assert str(error)
    else:
        assert parse(str(formula), schema) == formula


def test_precedence_and_associativity(schema: Schema) -> None:
    smile, glasses, black = (parse(word, schema) for word in ("smile", "glasses", "hair=black"))
    assert parse("smile | glasses & hair=black", schema) == Or((smile, And((glasses, black))))
    assert parse("~smile & glasses", schema) == And((Not(smile), glasses))
    assert parse("~(smile & glasses)", schema) == Not(And((smile, glasses)))
    assert parse("smile & (glasses & hair=black)", schema) == And((smile, glasses, black))
    assert parse("2*smile & glasses", schema) == And((Weighted(2, smile), glasses))
    assert parse("~2*smile", schema) == Not(Weighted(2, smile))


def test_words_and_symbols_mean_the_same(schema: Schema) -> None:
    assert parse("not smile and glasses OR blond", schema) == parse("~smile & glasses | hair=blond", schema)


def test_terms(schema: Schema) -> None:
    age = schema["age"]
    assert parse("age=55", schema) == Near(age, 55)
    assert parse("age in 50..60", schema) == Within(age, 50, 60)
    assert parse("age in 50.5..60.25", schema) == Within(age, 50.5, 60.25)
    assert parse("age>50", schema) == parse("age >= 50", schema) == Within(age, 50, math.inf)
    assert parse("yaw < -20", schema) == Within(schema["yaw"], -math.inf, -20)
    assert parse("blond", schema) == Is(schema["hair"], "blond")
    assert parse("smile=no", schema) == Is(schema["smile"], "no")


def test_operators_build_what_sentences_say(schema: Schema) -> None:
    smile, glasses, old = (parse(word, schema) for word in ("smile", "glasses", "age>50"))
    assert (smile & ~glasses | 2 * old) == parse("smile & ~glasses | 2*age>50", schema)
    assert [str(leaf) for leaf in leaves(smile & ~glasses | 2 * old)] == ["smile", "glasses", "age>50"]
    assert repr(smile & glasses) == "<smile & glasses>"


REFUSED = [
    ("", SentenceError, 0, "empty"),
    ("   ", SentenceError, 0, "empty"),
    ("(smile", SentenceError, 0, "never closed"),
    ("smile)", SentenceError, 5, "closes nothing"),
    ("smile glasses", SentenceError, 6, "Put & (and)"),
    ("smile &", SentenceError, 7, "missing"),
    ("smile ! glasses", SentenceError, 6, "means nothing"),
    ("age", SentenceError, 0, "cannot stand alone"),
    ("yes", SentenceError, 0, "class of several"),
    ("hair", SentenceError, 0, "black, brown, blond"),
    ("hair>3", SentenceError, 0, "no order"),
    ("age in 50", SentenceError, 9, "two numbers"),
    ("age>old", SentenceError, 4, "a number is missing"),
    ("hair=3", SentenceError, 5, "a class is missing"),
    ("5 & smile", SentenceError, 0, "A number stands alone"),
    ("blond=yes", SentenceError, 0, "itself a class"),
    ("glases & smile", UnknownNameError, 0, "did you mean 'glasses'?"),
    ("smile & hair=blnd", UnknownNameError, 13, "did you mean 'blond'?"),
    ("smile & brwn", UnknownNameError, 8, "did you mean 'brown'?"),
    ("qqq>3", UnknownNameError, 0, "known are"),
    ("age=-5", ValueRangeError, 0, "runs from 0 to 80 years"),
    ("smile & age in 60..50", ValueRangeError, 8, "the smaller"),
    ("0*smile", ValueRangeError, 0, "positive"),
    ("-2*smile", ValueRangeError, 0, "positive"),
    ("smile & 1e300*glasses", ValueRangeError, 8, "1,000,000"),
    ("1e-300*smile", ValueRangeError, 0, "1e-06"),
    ("age<1e999", SentenceError, 4, "too large"),
    ("age in -1e999..60", SentenceError, 7, "too large"),
    ("yaw=1e400", SentenceError, 4, "too large"),
]


@pytest.mark.parametrize(("sentence", "kind", "place", "words"), REFUSED)
def test_refusals_name_the_place(schema: Schema, sentence: str, kind: type, place: int, words: str) -> None:
    with pytest.raises(kind) as refusal:
        parse(sentence, schema)
    message, shown, caret = str(refusal.value).rsplit("\n", 2)
    assert words in message
    assert shown == f"  {sentence}"
    assert caret == f"  {' ' * place}^"


LONG = [
    ("(" * 300 + "smile" + ")" * 300, 100, "too deeply"),
    ("(" * 10_000 + "smile" + ")" * 10_000, 2000, "2,000 words and signs"),
    ("~" * 400 + "smile", 100, "too deeply"),
    ("smile | " * 5000 + "smile", 8000, "2,000 words and signs"),
    ("smile & " + "x" * 100_000, 8, "100 letters"),
    ("smile & " * 100 + "glases", 800, "did you mean 'glasses'?"),
]


@pytest.mark.parametrize(
    ("sentence", "place", "words"), LONG, ids=["deep", "brackets", "nots", "terms", "letters", "near miss"]
)
def test_long_sentences_are_shown_around_the_place(schema: Schema, sentence: str, place: int, words: str) -> None:
    with pytest.raises(ConditionError) as refusal:
        parse(sentence, schema)
    message, shown, caret = str(refusal.value).split("\n")
    assert words in message
    assert len(message) < 120
    assert len(shown) < 220
    assert shown[caret.index("^") :].removesuffix("...") == sentence[place : place + 100]


def test_python_mistakes_are_refused(schema: Schema) -> None:
    smile = parse("smile", schema)
    with pytest.raises(ConditionError, match="use &"):
        bool(smile)
    with pytest.raises(ConditionError, match="Only conditions"):
        smile & "glasses"
    with pytest.raises(ConditionError, match="two conditions"):
        And((smile,))
    with pytest.raises(ValueRangeError, match="on one side"):
        Within(schema["age"], -math.inf, math.inf)
