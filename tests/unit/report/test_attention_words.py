"""Words for signs of careless reviewing."""

from __future__ import annotations

import pytest

from assay.domain.attention import Attention
from assay.report.wording import attention


@pytest.mark.parametrize(
    ("signs", "words"),
    [
        (Attention(), ""),
        (Attention(decisions=3), "time not measured for 3 decisions"),
        (
            Attention(
                decisions=119,
                timed=107,
                too_quick=41,
                unread=63,
                longest_run=58,
                planted=10,
                missed=3,
            ),
            (
                "41 of 107 decisions took under 1 s, 63 were faster than the answers can be read (600 words per minute); "
                "time not measured for 12; 58 approvals in a row by one reviewer; 3 of 10 planted errors missed"
            ),
        ),
        (
            Attention(decisions=1, timed=1, unread=1, longest_run=1),
            "0 of 1 decision took under 1 s, 1 was faster than the answers can be read (600 words per minute)",
        ),
    ],
)
def test_the_share_is_stated_beside_what_was_not_measured(signs: Attention, words: str) -> None:
    assert attention(signs) == words
