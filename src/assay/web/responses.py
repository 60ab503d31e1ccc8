"""JSON responses, files to download, and the base class of request bodies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import orjson
from fastapi import Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, model_validator

from assay.app.statistics.charts import chart_bytes
from assay.app.wire import to_json
from assay.domain.errors import UnknownName

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from assay.app.statistics.charts import Chart


MAX_UNKNOWN: Final = 5
"""Maximum number of unknown fields that an error message lists."""

CSV: Final = "text/csv; charset=utf-8"
_CHART_TYPES: Final = {
    "svg": "image/svg+xml",
    "png": "image/png",
    "csv": CSV,
    "json": "application/json",
}


class Body(BaseModel):
    """Base class of request bodies.

    Unknown fields are refused, and lone surrogates become U+FFFD.
    """

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _replace_half_characters(cls, content: Any) -> Any:
        # JSON can spell a lone surrogate (`"\\ud800"`), which no response, file name or database
        # can hold.
        return _whole(content)

    # Defined last, so that pydantic calls it first.
    @model_validator(mode="before")
    @classmethod
    def _bound_unknown_fields(cls, content: Any) -> Any:
        # pydantic lists each unknown field in its error: 5.5 MB of them blocked the server for 7.3
        # s.
        if isinstance(content, dict) and len(content) > len(cls.model_fields) + MAX_UNKNOWN:
            known = {*cls.model_fields, *(field.alias for field in cls.model_fields.values())}
            unknown = [key for key in content if key not in known][:MAX_UNKNOWN]
            return {
                key: content[key] for key in (*(key for key in content if key in known), *unknown)
            }
        return content


def _whole(content: Any) -> Any:
    match content:
        case str():
            return (
                content
                if content.isascii()
                else content.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            )
        case list():
            return [_whole(value) for value in content]
        case dict():
            return {_whole(key): _whole(value) for key, value in content.items()}
    return content


def json_bytes(content: object) -> bytes:
    """Serialise documents as JSON; `to_json` converts dataclasses, because orjson itself would
    write absent fields.
    """
    return orjson.dumps(content, default=to_json, option=orjson.OPT_PASSTHROUGH_DATACLASS)


class Answer(Response):
    """A JSON response, which is never cached because the state may change at any time."""

    media_type = "application/json"

    def __init__(
        self, content: Any, status_code: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(
            content, status_code, headers={"cache-control": "no-store", **(headers or {})}
        )

    def render(self, content: Any) -> bytes:
        return json_bytes(content)


def download(content: str | bytes | Iterator[bytes], name: str, media_type: str) -> Response:
    """Return a file that browsers save under the given name, which may contain any character, and
    never cache.
    """
    # Other names need the notation of RFC 5987, because a header is limited to ASCII.
    plain = name.isascii() and name.isprintable() and '"' not in name
    filename = f'filename="{name}"' if plain else f"filename*=UTF-8''{quote(name, safe='')}"
    headers = {"content-disposition": f"attachment; {filename}", "cache-control": "no-store"}
    if not isinstance(content, str | bytes):
        return StreamingResponse(content, media_type=media_type, headers=headers)
    body = content.encode("utf-8", "replace") if isinstance(content, str) else content
    return Response(body, media_type=media_type, headers=headers)


def chart_file(chart: Chart, name: str, ending: str, *, dark: bool) -> Response:
    """Return a chart as `svg`, `png`, `csv` (its table) or `json` (title and rows); raises
    `UnknownName` for another ending.
    """
    if ending not in _CHART_TYPES:
        raise UnknownName("ending", ending, _CHART_TYPES)
    return download(chart_bytes(chart, ending, dark=dark), f"{name}.{ending}", _CHART_TYPES[ending])
