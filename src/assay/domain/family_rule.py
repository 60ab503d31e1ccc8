"""Rule `--family-by`: derives task families from tags or metadata if the field `family` is not
set.
"""

from __future__ import annotations

from dataclasses import dataclass

from assay.domain.errors import InputError

OPTION = "--family-by"
_REMEDY = (
    "Write tag:PREFIX (tags such as PREFIX:NAME), tag (the only tag of each task), or metadata:KEY."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyRule:
    """Rule that derives a task's family from a tag with the prefix `key`, its only tag (empty
    `key`), or its metadata at `key`.
    """

    by_tag: bool
    key: str

    def family_in(self, tag: str) -> str | None:
        """Return the family in a tag, or None: for key `source`, this is x in `source:x`,
        `source=x` and `source/x`.
        """
        if not self.key:
            return tag
        rest = tag.removeprefix(self.key)
        return rest[1:].strip() or None if rest != tag and rest[:1] in (":", "=", "/") else None


def family_rule(text: str) -> FamilyRule | None:
    """Parse `tag`, `tag:PREFIX` or `metadata:KEY`; None if the text is empty.

    Raises InputError for any other text.
    """
    if not text:
        return None
    kind, _, key = text.partition(":")
    if kind == "tag" and not text.endswith(":"):
        return FamilyRule(by_tag=True, key=key.strip())
    if kind == "metadata" and key.strip():
        return FamilyRule(by_tag=False, key=key.strip())
    raise InputError(OPTION, f"{text!r} is not a rule for families.", remedy=_REMEDY)
