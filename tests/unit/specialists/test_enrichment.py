"""Enrichments are inserted into a template without a change of anything else."""

from __future__ import annotations

from typing import Any

import json5
import pytest

from assay.specialists.enrichment import with_enrichments

ABOUT: dict[str, Any] = {
    "summary": 'a "name": x',
    "key_concepts": ["a", "“b”"],
    "use_cases": [],
    "relevance_to_specialist": "r",
}


@pytest.mark.parametrize(
    "item",
    [
        "{url: 'u'}",
        "{ url: 'u', }",
        "{url: 'u' /* c */ }",
        "{url: 'u' // c\n  }",
        "{\n    url: 'u', // c\n  }",
        "{\n  url: 'u'}",
        "{url: 'u', n: -1}",
        "{url: 'u', enrichment: {a: [1]} /* c */, n: 1}",
        "{'url': 'u', \"enrichment\": null}",
        "{url: 'u', // } ]\n}",
        "{url: '}'}",
    ],
)
def test_an_enrichment_is_the_only_change(item: str) -> None:
    text = f"// head\n{{name: 'n', documentation: [ {item}, /* é */ {item} ], k: 1}} // tail\n"
    expected = json5.loads(text)
    expected["documentation"][1]["enrichment"] = ABOUT
    changed = with_enrichments(text, [], {1: ABOUT})
    assert json5.loads(changed) == expected
    assert changed.startswith(text[: text.index("/* é */")])
    assert changed.endswith("// tail\n")
    assert all(comment in changed for comment in ("/* c */", "// c") if comment in text)


def test_inherited_documentation_is_written_into_the_template() -> None:
    changed = with_enrichments(
        "{from: './base.json5', name: 'n' /* c */}", [{"url": "a"}, {"url": "b"}], {1: ABOUT}
    )
    expected = [{"url": "a"}, {"url": "b", "enrichment": ABOUT}]
    assert json5.loads(changed) == {"from": "./base.json5", "name": "n", "documentation": expected}
    assert "/* c */" in changed
