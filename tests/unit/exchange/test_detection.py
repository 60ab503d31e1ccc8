"""The reader that explains most of a file reads it, and a draw is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.domain.import_records import Found
from assay.exchange.detection import AmbiguousFormat, recognise_format
from assay.exchange.importers import ReadOptions
from assay.exchange.parsing.explained import Shape, explained_share
from assay.exchange.parsing.input_files import FileSample, InputFile, input_file


class Claims:
    """A reader that explains a fixed share of any file."""

    def __init__(self, name: str, share: float | None) -> None:
        self.NAME = name
        self._share = share

    def recognise(self, sample: FileSample, /) -> float | None:
        return self._share

    def read(self, source: InputFile, options: ReadOptions, /) -> Iterator[Found]:
        yield from ()


@pytest.fixture
def sample(tmp_path: Path) -> FileSample:
    path = tmp_path / "results.json"
    path.write_text("{}")
    return input_file(path).sample


def test_the_reader_that_explains_most_is_chosen_in_any_order(sample: FileSample) -> None:
    readers = [Claims("little", 0.4), Claims("most", 0.9), Claims("none", None)]
    for order in (readers, readers[::-1]):
        chosen = recognise_format(sample, order)
        assert chosen is not None
        assert chosen.NAME == "most"


def test_two_readers_that_explain_about_as_much_are_refused(sample: FileSample) -> None:
    with pytest.raises(
        AmbiguousFormat, match=r"`one` \(95% of it\) and `two` \(90%\).*--format"
    ) as caught:
        recognise_format(sample, [Claims("two", 0.9), Claims("one", 0.95)])
    assert caught.value.formats == ("one", "two")


def test_a_reader_that_explains_little_reads_nothing(sample: FileSample) -> None:
    assert recognise_format(sample, [Claims("swe", 0.02)]) is None


SHAPE: Shape = {"id": None, "rows": {"task": None, "by": {"*": {"score": None}}}}


@pytest.mark.parametrize(
    ("value", "share"),
    [
        ({"id": "abcd"}, 1.0),
        ({"id": "abcd", "no": "efgh"}, 0.5),
        ({"rows": [{"task": "abcd"}, {"tusk": "abcd"}]}, 12 / 20),
        (
            {"rows": [{"by": {"ann": {"score": 1, "extra": 1}}}]},
            (4 + 2 + 3 + 6) / (4 + 2 + 3 + 6 + 6),
        ),
        ([{"id": "abcd"}] * 500, 1.0),
        (
            {"rows": [{"task": "abcd"}] * 500, "no": "x" * 4000},
            (4 + 500 * 8) / (4 + 500 * 8 + 2 + 4000),
        ),
        ([], 0.0),
        ("text", 0.0),
    ],
)
def test_a_share_is_the_characters_under_known_keys(value: object, share: float) -> None:
    assert explained_share(value, SHAPE) == pytest.approx(share)
