"""Request bodies with more fields than anybody sends."""

from __future__ import annotations

import time

import pytest
from pydantic import ValidationError

from assay.web.responses import MAX_UNKNOWN, Body


class Greeting(Body):
    name: str = ""


def test_half_a_million_unknown_fields_are_refused_in_time() -> None:
    content = {"name": "Ann"} | {f"field_{number}": 1 for number in range(500_000)}
    began = time.process_time()
    with pytest.raises(ValidationError) as refused:
        Greeting.model_validate(content)
    # 7.3 s before; a tenth of a second is expected, and the machine may be busy.
    assert time.process_time() - began < 2
    assert refused.value.error_count() == MAX_UNKNOWN


def test_known_fields_are_kept_beside_unknown_ones() -> None:
    with pytest.raises(ValidationError) as refused:
        Greeting.model_validate({**{f"x{number}": 1 for number in range(50)}, "name": 5})
    assert ("name",) in {error["loc"] for error in refused.value.errors()}
