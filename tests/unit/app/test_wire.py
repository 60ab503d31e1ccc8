"""Documents: filled by name, written in field order, and described by their class."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pkgutil import walk_packages

import pytest

import assay.app
import assay.web
from assay.app.wire import (
    ABSENT,
    Absent,
    document,
    fill,
    inlined,
    optional,
    plain,
    schema,
    source,
    to_json,
)


@document
class WheelDocument:
    spokes: int
    maker: str | None = source("made.by")


@document
class CarDocument:
    name: str
    from_: str = source("origin")
    wheels: tuple[WheelDocument, ...]
    spare: WheelDocument | None
    toll: float | Absent = optional()


@dataclass
class Made:
    by: str


@dataclass
class Wheel:
    spokes: int
    made: Made


@dataclass
class Car:
    name: str
    origin: str
    wheels: tuple[Wheel, ...]
    spare: Wheel | None


CAR = Car("beetle", "Ulm", (Wheel(5, Made("x")), Wheel(6, Made("y"))), None)


def test_document_is_filled_by_name_and_written_in_field_order() -> None:
    text = json.dumps(fill(CarDocument, CAR), default=to_json)
    assert text == (
        '{"name": "beetle", "from": "Ulm", "wheels": [{"spokes": 5, "maker": "x"}, {"spokes": 6, "maker": "y"}], "spare": null}'
    )


def test_given_value_replaces_the_record_and_an_absent_one_is_left_out() -> None:
    car = fill(CarDocument, CAR, name="van", wheels=(), spare=Wheel(1, Made("z")), toll=1.5)
    assert plain(car)["toll"] == 1.5
    assert plain(fill(CarDocument, car, toll=ABSENT, from_="Bonn")) == {
        "name": "van",
        "from": "Bonn",
        "wheels": [],
        "spare": plain(car)["spare"],
    }


def test_missing_attribute_is_an_error_and_not_null() -> None:
    with pytest.raises(AttributeError):
        fill(CarDocument, Made("x"))


def test_schema_names_the_keys_and_requires_what_cannot_be_absent() -> None:
    described = schema(CarDocument)
    assert described["required"] == ["name", "from", "wheels", "spare"]
    assert described["properties"]["toll"] == {"title": "Toll", "type": "number"}  # type: ignore[index]


def documents() -> Iterator[type[object]]:
    for package in (assay.app, assay.web):
        for module in walk_packages(package.__path__, f"{package.__name__}."):
            for made in vars(import_module(module.name)).values():
                if (
                    isinstance(made, type)
                    and "__pydantic_config__" in vars(made)
                    and made.__module__ == module.name
                ):
                    yield made


@pytest.mark.parametrize("made", list(documents()), ids=lambda made: made.__name__)
def test_every_document_has_a_schema_and_says_what_it_is(made: type[object]) -> None:
    described = schema(made)
    assert described.get("description")
    assert described["type"] == "object"


@document
class ParkedCarDocument:
    """A car and its place."""

    car: Car = inlined()
    wheel: WheelDocument = inlined()
    place: int


def test_keys_of_inlined_records_are_written_and_described_in_their_place() -> None:
    parked = ParkedCarDocument(car=CAR, wheel=WheelDocument(spokes=5, maker=None), place=3)
    keys = ["name", "origin", "wheels", "spare", "spokes", "maker", "place"]
    assert list(plain(parked)) == keys
    assert schema(ParkedCarDocument)["required"] == keys
    assert schema(ParkedCarDocument)["description"] == "A car and its place."
