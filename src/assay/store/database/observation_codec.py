"""Convert an observation's content to stored JSON, and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from assay.domain.decisions import Place
from assay.domain.lifecycle import Verb
from assay.domain.observations import (
    Arm,
    AuthorsDisclosed,
    BlindVerdict,
    CheckAnswered,
    DecisionTaken,
    DisputeSettled,
    GradesShown,
    ObservationBody,
    ObservationKind,
    OpinionGiven,
    OpinionWithdrawn,
    ProtocolSwitched,
    SecondRequested,
    SessionEnded,
)
from assay.domain.protocol import protocol_of
from assay.store.database.codec import bytes_json, json_bytes


def encoded(body: ObservationBody) -> bytes:
    """Serialise the record as JSON by field name; scores by (candidate, criterion) become triples."""
    content: dict[str, Any] = {field.name: getattr(body, field.name) for field in fields(body)}
    match body:
        case BlindVerdict():
            content["scores"] = _triples(body.scores)
        case OpinionGiven():
            content["corrections"] = _triples(body.corrections)
        case OpinionWithdrawn():
            content["withdrawn"] = True
        case ProtocolSwitched():
            content["protocol"] = body.protocol.as_json()
        case _:
            pass
    return json_bytes(content)


def decoded(kind: ObservationKind, stored: bytes) -> ObservationBody:
    """Parse the record of a stored observation."""
    content = bytes_json(stored)
    match kind:
        case ObservationKind.SHOWN:
            return GradesShown()
        case ObservationKind.VERDICT:
            return BlindVerdict(scores=_places(content["scores"]), overall=content["overall"])
        case ObservationKind.DECISION:
            return DecisionTaken(**{**content, "verb": Verb(content["verb"]), "arm": Arm(content["arm"])})
        case ObservationKind.SECOND:
            return SecondRequested(**content)
        case ObservationKind.OPINION:
            if content.get("withdrawn"):
                return OpinionWithdrawn()
            corrections = _places(content["corrections"])
            return OpinionGiven(**{**content, "verb": Verb(content["verb"]), "corrections": corrections})
        case ObservationKind.CHECK:
            return CheckAnswered(**{**content, "verb": Verb(content["verb"])})
        case ObservationKind.PROTOCOL:
            return ProtocolSwitched(protocol=protocol_of(content["protocol"]), decided_before=content["decided_before"])
        case ObservationKind.ENDED:
            return SessionEnded()
        case ObservationKind.SETTLED:
            return DisputeSettled(**content)
        case ObservationKind.DISCLOSED:
            return AuthorsDisclosed(**content)


def _triples(scores: Mapping[Place, float]) -> list[tuple[str, str | None, float]]:
    return [(candidate, criterion, value) for (candidate, criterion), value in scores.items()]


def _places(triples: Iterable[tuple[str, str | None, float]]) -> dict[Place, float]:
    return {(candidate, criterion): value for candidate, criterion, value in triples}
