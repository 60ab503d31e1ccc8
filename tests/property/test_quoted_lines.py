"""A `Page` says the same of a text in blocks as of its lines one by one, wherever the blocks
end.
"""

from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from assay.scoring import evidence

TEXTS = st.text(alphabet="ab=() \t\n\r\x0b\x0c\x1c\x85\u2028é", max_size=120)


def lines_of(code: str, quoted: str) -> tuple[int, int] | None:
    """The plain way: the lines of the first and the last character of a quotation that stands
    somewhere.
    """
    wanted = "".join(quoted.split())
    lines = ["".join(line.split()) for line in code.splitlines()]
    place = "".join(lines).find(wanted)
    if place < 0:
        return None
    ends = [*accumulate(map(len, lines))]
    first, last = (
        next(n for n, end in enumerate(ends, 1) if end > at)
        for at in (place, place + len(wanted) - 1)
    )
    return first, last


@pytest.mark.parametrize("block", [1, 7, 1 << 15])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(code=TEXTS, start=st.integers(0, 60), size=st.integers(4, 40))
def test_lines_are_those_of_the_plain_way(
    block: int, code: str, start: int, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evidence, "_BLOCK", block)
    page = evidence.Page(code)
    assert page.lines == len(code.splitlines())
    quoted = code[start : start + size].strip()
    if sum(not sign.isspace() for sign in quoted) > 1:
        assert page.where(quoted) == lines_of(code, quoted)
