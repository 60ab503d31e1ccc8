"""The sentences of choosing how a run is reviewed."""

from __future__ import annotations

from typing import Final

TEXTS: Final[dict[str, str]] = {
    "protocol.title": "How it is reviewed",
    "protocol.about": "Whoever sees the judge's scores first tends to agree with them. A protocol has part of the review done "
    "with more care, so that you learn how far the judge, and the review, can be trusted.",
    "protocol.plain": "Plain",
    "protocol.plain_about": "You see the judge's grades and decide. Quickest; says little about whether the judge is right.",
    "protocol.suggested": "Suggested",
    "protocol.suggested_about": "{blind}% blind-first, {plants}% planted checks, {rereview}% reviewed again by you.",
    "protocol.own": "Own numbers",
    "protocol.blind": "Blind-first, % of items",
    "protocol.blind_about": "Your scores come before the judge's are sent.",
    "protocol.plants": "Planted checks, per 100 items",
    "protocol.plants_about": "Altered and unaltered copies of decided items: does the reviewer notice?",
    "protocol.rereview": "Reviewed again, per 100 items",
    "protocol.rereview_about": "Own decisions once more, later: do you agree with yourself?",
    "protocol.second": "Second opinion, % of items",
    "protocol.second_about": "Two people decide independently.",
    "protocol.gap_items": "Again after, decisions",
    "protocol.gap_hours": "Again after, hours",
    "protocol.cost": "{decisions} decisions, about {keys} keys; plain: {plain_keys} of each.",
    "protocol.cost.one": "1 decision, about {keys} keys; plain: {plain_keys} of each.",
    "protocol.cost_plain": "{decisions} decisions, a key each.",
    "protocol.cost_plain.one": "1 decision, a key.",
    "protocol.cost_most": "At most {cost}",
    "protocol.cost_none": "Nothing waits for a person.",
    "protocol.parts": "{blind} blind-first, {plants} planted, {rereview} again, {second} second opinions.",
    "protocol.nobody": "Needs at least two people who review under their own names.",
    "protocol.switch": "Change how the rest is reviewed",
    "protocol.switch_about": "A change makes version {next}. It holds for what is decided from then on; what was seen stays "
    "recorded as seen, and every number says under which versions it came to be.",
    "protocol.version": "Version {version} holds.",
    "protocol.versions": "Version {version} holds; {n} decisions came before it.",
    "protocol.versions.one": "Version {version} holds; 1 decision came before it.",
    "protocol.go": "Change it",
    "protocol.range": "From 0 to {most}.",
    "protocol.fact": "Review protocol",
}
