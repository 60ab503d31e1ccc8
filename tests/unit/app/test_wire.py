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
from assay.app.wire import ABSENT, Absent, document, inlined, optional, plain, schema, to_json


@document
class WheelDocument:
    spokes: int
    maker: str | None


@document
class CarDocument:
    name: str
    from_: str
    wheels: tuple[WheelDocument, ...]
    spare: WheelDocument | None
    toll: float | Absent = optional()


@dataclass
class Owner:
    first_name: str
    second_name: str


WHEELS = (WheelDocument(spokes=5, maker="x"), WheelDocument(spokes=6, maker=None))


def test_document_is_written_in_field_order_without_absent_fields() -> None:
    car = CarDocument(name="beetle", from_="Ulm", wheels=WHEELS, spare=None, toll=ABSENT)
    text = json.dumps(car, default=to_json)
    assert text == (
        '{"name": "beetle", "from": "Ulm", "wheels": [{"spokes": 5, "maker": "x"}, {"spokes": 6, "maker": null}], "spare": null}'
    )
    toll = CarDocument(name="beetle", from_="Ulm", wheels=(), spare=WHEELS[0], toll=1.5)
    assert plain(toll)["toll"] == 1.5


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

    owner: Owner = inlined()
    car: CarDocument = inlined()
    place: int


def test_keys_of_inlined_records_are_written_and_described_in_their_place() -> None:
    car = CarDocument(name="beetle", from_="Ulm", wheels=WHEELS, spare=None, toll=ABSENT)
    parked = ParkedCarDocument(owner=Owner("Ida", "Bonn"), car=car, place=3)
    keys = ["first_name", "second_name", "name", "from", "wheels", "spare", "place"]
    assert list(plain(parked)) == keys
    described = schema(ParkedCarDocument)
    assert described["required"] == keys
    assert described["description"] == "A car and its place."
