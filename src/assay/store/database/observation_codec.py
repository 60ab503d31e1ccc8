"""Convert an observation's content to stored JSON, and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from assay.domain import observations
from assay.domain.decisions import Place
from assay.domain.lifecycle import Verb
from assay.domain.protocol import protocol_of
from assay.store.database.codec import bytes_json, json_bytes


def encoded(body: observations.ObservationBody) -> bytes:
    """Serialise the record as JSON by field name; scores by (candidate, criterion) become
    triples.
    """
    content: dict[str, Any] = {field.name: getattr(body, field.name) for field in fields(body)}
    match body:
        case observations.BlindVerdict():
            content["scores"] = _triples(body.scores)
        case observations.OpinionGiven():
            content["corrections"] = _triples(body.corrections)
            # as stores of earlier versions hold it, so that a repeated request still matches
            if not body.scripted:
                del content["scripted"]
            if not body.stated_by:
                del content["stated_by"]
            if not body.login:
                del content["login"]
        case observations.OpinionWithdrawn():
            content["withdrawn"] = True
        case observations.ProtocolSwitched():
            content["protocol"] = body.protocol.as_json()
        case _:
            pass
    return json_bytes(content)


def decoded(kind: observations.ObservationKind, stored: bytes) -> observations.ObservationBody:
    content = bytes_json(stored)
    match kind:
        case observations.ObservationKind.SHOWN:
            return observations.GradesShown()
        case observations.ObservationKind.VERDICT:
            return observations.BlindVerdict(
                scores=_places(content["scores"]), overall=content["overall"]
            )
        case observations.ObservationKind.DECISION:
            return observations.DecisionTaken(
                **{
                    **content,
                    "verb": Verb(content["verb"]),
                    "arm": observations.Arm(content["arm"]),
                }
            )
        case observations.ObservationKind.SECOND:
            return observations.SecondRequested(**content)
        case observations.ObservationKind.OPINION:
            if content.get("withdrawn"):
                return observations.OpinionWithdrawn()
            corrections = _places(content["corrections"])
            return observations.OpinionGiven(
                **{**content, "verb": Verb(content["verb"]), "corrections": corrections}
            )
        case observations.ObservationKind.CHECK:
            return observations.CheckAnswered(**{**content, "verb": Verb(content["verb"])})
        case observations.ObservationKind.PROTOCOL:
            return observations.ProtocolSwitched(
                protocol=protocol_of(content["protocol"]), decided_before=content["decided_before"]
            )
        case observations.ObservationKind.ENDED:
            return observations.SessionEnded()
        case observations.ObservationKind.SETTLED:
            return observations.DisputeSettled(**content)
        case observations.ObservationKind.DISCLOSED:
            return observations.AuthorsDisclosed(**content)
        case observations.ObservationKind.MINT:
            return (
                observations.MintEnded(**content)
                if "path" in content
                else observations.MintRequested(**content)
            )


def _triples(scores: Mapping[Place, float]) -> list[tuple[str, str | None, float]]:
    return [(candidate, criterion, value) for (candidate, criterion), value in scores.items()]


def _places(triples: Iterable[tuple[str, str | None, float]]) -> dict[Place, float]:
    return {(candidate, criterion): value for candidate, criterion, value in triples}
