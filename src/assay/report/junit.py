"""Writes results as JUnit XML, for pipelines that show tests: one testcase per candidate and task,
and one per candidate.

The caller chooses one of two rules; the file states which.

* threshold: a task passes if the candidate's mean over its counted trials is at least T. The
  candidate passes as a whole if its mean over tasks is at least T.
* against: a task passes if the candidate's mean on it is not lower than the other candidate's by
  more than the margin. The testcase `as a whole` is the gate: it passes if non-inferiority is
  shown, fails if the candidate is shown to be worse, and is skipped if the data show neither.

A task without counted trials is skipped, with the reason; it neither passes nor fails.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from xml.sax.saxutils import escape, quoteattr

if TYPE_CHECKING:
    from collections.abc import Mapping

# Characters that XML 1.0 cannot carry even as references; a parser would refuse the whole file.
NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One testcase.

    A sentence explains why the test failed or was skipped; it passed if both sentences are None.
    """

    candidate: str
    name: str
    failure: str | None = None
    skipped: str | None = None


def junit(
    *,
    title: str,
    rule: str,
    approvals: str,
    cases: tuple[Case, ...],
    notes: tuple[str, ...],
    verdicts: Mapping[str, str],
    written: str,
) -> str:
    """Write the XML document, with a testsuite for each candidate; its properties and output
    contain `rule` and `notes`.

    `approvals` is a property too. `verdicts`: the rates of a candidate's verdicts as a sentence;
    candidates without verdicts are missing.
    """
    suites: dict[str, list[Case]] = {}
    for case in cases:
        suites.setdefault(case.candidate, []).append(case)
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f"<testsuites name={_attribute(title)} {_counts(cases)}>",
    ]
    for candidate, own in suites.items():
        rates = [verdicts[candidate]] if candidate in verdicts else []
        properties = [
            ("rule", rule),
            ("approvals", approvals),
            *(("verdicts", text) for text in rates),
        ]
        output = [*rates, *notes]
        lines += [
            f"  <testsuite name={_attribute(candidate)} {_counts(own)} timestamp={_attribute(written[:19])}>",
            f"    <properties>{''.join(_property(name, value) for name, value in properties)}</properties>",
            *(_testcase(case) for case in own),
            *([f"    <system-out>{_text(chr(10).join(output))}</system-out>"] if output else []),
            "  </testsuite>",
        ]
    return "\n".join([*lines, "</testsuites>"]) + "\n"


def _property(name: str, value: str) -> str:
    return f"<property name={_attribute(name)} value={_attribute(value)}/>"


def _counts(cases: tuple[Case, ...] | list[Case]) -> str:
    failed = sum(case.failure is not None for case in cases)
    skipped = sum(case.skipped is not None for case in cases)
    return f'tests="{len(cases)}" failures="{failed}" errors="0" skipped="{skipped}"'


def _testcase(case: Case) -> str:
    start = f"    <testcase classname={_attribute(case.candidate)} name={_attribute(case.name)}"
    if case.failure is not None:
        return f'{start}><failure type="score" message={_attribute(case.failure)}/></testcase>'
    if case.skipped is not None:
        return f"{start}><skipped message={_attribute(case.skipped)}/></testcase>"
    return f"{start}/>"


def _attribute(text: str) -> str:
    return quoteattr(NOT_XML.sub("\ufffd", text), {"\n": "&#10;", "\t": "&#9;", "\r": "&#13;"})


def _text(text: str) -> str:
    return escape(NOT_XML.sub("\ufffd", text))
