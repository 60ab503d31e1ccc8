"""YAML and JSON as values with lines."""

from __future__ import annotations

import json

import pytest

from assay.suites.located_yaml import UnreadableText, as_written, read_json, read_yaml


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("on", "on"),
        ("Yes", "Yes"),
        ("2024-01-01", "2024-01-01"),
        ("12:30:45", "12:30:45"),
        ("1_000", "1_000"),
        ("true", True),
        ("~", None),
        ("7", 7),
        ("0x1F", 31),
        ("0o17", 15),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("-3", -3),
        ("-", "-"),
        ("'7'", "7"),
        ("!!str 7", "7"),
        ("!!float 7", 7),
        ("v1.0", "v1.0"),
    ],
)
def test_plain_words_of_yaml_stay_words(text: str, value: object) -> None:
    if text == "-":
        assert read_yaml("a: '-'").value == {"a": "-"}
        return
    assert read_yaml(f"a: {text}").value == {"a": value}


@pytest.mark.parametrize("text", ["1.0", "007", "1e3", "+5", "0x1F", "6.02e23"])
def test_numbers_remember_how_they_were_written(text: str) -> None:
    document = read_yaml(f"a: {text}").value
    assert isinstance(document, dict)
    value = document["a"]
    assert isinstance(value, int | float)
    assert as_written(value) == text


def test_json_numbers_remember_how_they_were_written() -> None:
    value = read_json("[1.0, 1e3, 12]").value
    assert isinstance(value, list)
    assert [as_written(number) for number in value if isinstance(number, int | float)] == [
        "1.0",
        "1e3",
        "12",
    ]


def test_lines_are_those_of_the_values_and_keys() -> None:
    text = "name: a\ntasks:\n  - id: x\n    prompt: |\n      one\n      two\n  - {id: y,\n     prompt: z}\n"
    document = read_yaml(text)
    assert document.line_of(("tasks", 0, "prompt"), False) == 4
    assert document.line_of(("tasks", 1, "prompt"), True) == 8
    assert document.line_of(("tasks", 1, "absent"), False) == 7
    assert document.line_of((), False) == 1


def test_json_lines_agree_with_the_text() -> None:
    value = {
        "tasks": [{"id": 'quo"te\\', "prompt": "[{,:"}, {"id": "y", "tags": ["a", "b"]}],
        "name": "ü",
    }
    text = json.dumps(value, indent=1)
    document = read_json(text)
    lines = text.split("\n")
    for path, needle in [
        (("tasks", 0, "id"), "quo"),
        (("tasks", 0, "prompt"), "prompt"),
        (("tasks", 1, "tags", 1), '"b"'),
        (("name",), "name"),
    ]:
        assert needle in lines[document.line_of(path, False) - 1]


def test_merge_keys_lay_the_source_below() -> None:
    document = read_yaml("a: &d {x: 1, y: 2}\nb: {<<: *d, y: 3}\nc: {<<: [*d, {z: 9, x: 8}]}\n")
    assert document.value == {
        "a": {"x": 1, "y": 2},
        "b": {"x": 1, "y": 3},
        "c": {"x": 1, "y": 2, "z": 9},
    }
    assert document.misuses == ()


@pytest.mark.parametrize(
    "text",
    [
        "a: *b",
        "a: &a [*a]",
        "a: !!python/object:os.system x",
        "--- a\n--- b",
        "? [1, 2]\n: 3",
        "a: !!int x",
        "<<: 3",
        "a: \x07",
        "[" * 5000,
        "{" * 5000,
        "- " * 5000,
        "".join(" " * depth + "a:\n" for depth in range(200)),
        'a: "\\ud800"',
    ],
)
def test_hostile_yaml_is_unreadable_and_nothing_else(text: str) -> None:
    with pytest.raises(UnreadableText):
        read_yaml(text)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "[" * 90 + "]" * 90,
        '{"a": ' * 100_000,
        "[1" + "0" * 5000 + "]",
        "{,}",
        '{"a"}',
        "[1] 2",
        "",
    ],
)
def test_hostile_json_is_unreadable_and_nothing_else(text: str) -> None:
    with pytest.raises(UnreadableText):
        read_json(text)
