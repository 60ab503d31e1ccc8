"""Reads the key `review` of a suite: a policy by name, or the share of trials that are drawn for
review by a person.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from assay.domain.errors import InputError, did_you_mean
from assay.domain.lifecycle import Policy
from assay.domain.review_sample import LEAST_SHARE, ReviewRule, ReviewSample, SampledBy, parsed_rule
from assay.suites.grammar import Keys, Kind, ReadContext, key, made_of, member, number
from assay.suites.located_yaml import Value, shown
from assay.suites.problems import Path


class ReviewKeys(Keys):
    """A review sample in a suite: {sample: 0.2, by: tag}."""

    sample = key(
        number(LEAST_SHARE, 1 - LEAST_SHARE),
        "Share of trials chosen at random for a person to review.",
        required="",
    )
    by = key(member(SampledBy), "Groups over which the random sample is spread.")


def _review_rule(keys: ReviewKeys) -> ReviewRule | None:
    if keys.sample is None:
        return None
    sample = ReviewSample(share=keys.sample, by=keys.by or SampledBy.TASK)
    return ReviewRule(policy=Policy.SAMPLE, sample=sample)


_SAMPLED: Final = made_of(ReviewKeys, _review_rule)


def _read_review(value: Value, path: Path, context: ReadContext) -> ReviewRule | None:
    """Read a policy by name, `sample:0.2`, or a mapping with `sample`."""
    if isinstance(value, Mapping):
        return _SAMPLED.read(value, path, context)
    try:
        return parsed_rule(value if isinstance(value, str) else "", where="review")
    except InputError as error:
        word = value.partition(":")[0] if isinstance(value, str) else ""
        hint = (
            "" if word == "sample" else did_you_mean(word, ("every", "flagged", "none", "sample"))
        )
        remedy = error.remedy if word == "sample" else ""
        context.report(
            path, f"is {shown(value)}, expected every, flagged, none or sample:0.2.{hint}", remedy
        )
        return None


REVIEW: Final = Kind(
    _read_review,
    {
        "anyOf": [
            {"enum": ["every", "flagged", "none"]},
            {"type": "string", "pattern": r"^sample:0?\.\d+(:task|:tag)?$"},
            _SAMPLED.schema,
        ]
    },
)
