"""Write a log of Inspect (`inspect_ai`) as JSON, version 2, which `read_eval_log` of Inspect can
read.

Based on inspect_ai's `log/_log.py`, `log/_recorders/json.py`, `scorer/_metric.py` and
`model/_model_output.py` (0.3.285). An Inspect log contains one task and one model; Assay writes one
suite and one candidate. The header precedes the samples, because Inspect stops reading after the
header if it needs nothing else.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean as mean_of
from tempfile import SpooledTemporaryFile
from typing import IO, Final

from assay.domain.conversation import ASSISTANT
from assay.domain.digest import JsonValue
from assay.domain.suite import Message
from assay.domain.unescaped_json import unescaped_json

_IN_MEMORY: Final = 8 << 20
VERSION: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class LogScore:
    """One grader's score of a sample, from 0 to 1; `reply` is a model's text, None for a rule or a
    person.
    """

    value: float
    explanation: str | None
    reply: str | None
    metadata: Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSample:
    """One task in one epoch, with its scores by grader.

    `prompt`: the messages sent first. `replies`: later messages as (role, text); the last one is
    the model's answer.
    """

    id: str
    epoch: int
    uuid: str
    prompt: Sequence[Message]
    context: str
    expected: str | None
    replies: Sequence[tuple[str, str]]
    truncated: bool
    model: str
    scores: Mapping[str, LogScore]
    metadata: Mapping[str, JsonValue]

    def as_json(self) -> dict[str, JsonValue]:
        prompt: list[JsonValue] = [_message(turn) for turn in self.prompt]
        if not prompt:
            prompt = [{"role": "user", "content": self.context}]
        replies: list[JsonValue] = [
            {"role": role, "content": text, **({"source": "generate"} if role == ASSISTANT else {})}
            for role, text in self.replies
        ]
        stop = "max_tokens" if self.truncated else "stop"
        choices: list[JsonValue] = [
            {"message": reply, "stop_reason": stop} for reply in replies[-1:]
        ]
        unsent = self.prompt and not any(self.context in turn.content for turn in self.prompt)
        return {
            "id": self.id,
            "epoch": self.epoch,
            "uuid": self.uuid,
            "input": prompt,
            "target": self.expected or "",
            "messages": [*prompt, *replies],
            "output": {
                "model": self.model,
                "choices": choices,
                "completion": self.replies[-1][1] if self.replies else "",
            },
            "scores": {name: _score(score) for name, score in self.scores.items()},
            "metadata": {**self.metadata, **({"context": self.context} if unsent else {})},
        }


def _message(turn: Message) -> JsonValue:
    if not turn.images:
        return {"role": turn.role, "content": turn.content}
    parts: list[JsonValue] = [{"type": "text", "text": turn.content}]
    for image in turn.images:
        if image.caption:
            parts.append({"type": "text", "text": image.caption})
        parts.append({"type": "image", "image": f"data:{image.media_type};base64,{image.data}"})
    return {"role": turn.role, "content": parts}


def _score(score: LogScore) -> JsonValue:
    metadata = dict(score.metadata)
    if score.reply is not None:
        # Where Inspect's own model_graded_qa keeps the grader's messages.
        metadata["grading"] = [{"role": "assistant", "content": score.reply}]
    return {"value": score.value, "explanation": score.explanation, "metadata": metadata}


class InspectLog:
    """Collects the samples of one log on disk and writes the log at the end, because its header
    summarises the samples.
    """

    def __init__(self) -> None:
        self._samples: IO[str] = SpooledTemporaryFile(_IN_MEMORY, "w+", encoding="utf-8")  # noqa: SIM115 # closed by close
        self._values: defaultdict[str, defaultdict[str, list[float]]] = defaultdict(
            lambda: defaultdict(list)
        )
        self._ids: dict[str, None] = {}
        self._epochs = 0
        self.n_samples = 0

    def add(self, sample: LogSample) -> None:
        self._samples.write(unescaped_json(sample.as_json(), allow_nan=False) + "\n")
        self._ids[sample.id] = None
        self._epochs = max(self._epochs, sample.epoch)
        self.n_samples += 1
        for name, score in sample.scores.items():
            self._values[name][sample.id].append(score.value)

    def write(
        self, write: Callable[[str], object], spec: Mapping[str, JsonValue], *, finished: str | None
    ) -> None:
        """Write the log.

        `spec`: fields of Inspect's `EvalSpec`, without data set, epochs and scorers. `finished`:
        ISO 8601 end of the last run, or None.
        """
        ids: list[JsonValue] = [*self._ids]
        header: dict[str, JsonValue] = {
            "version": VERSION,
            "status": "success",
            "eval": {
                **spec,
                "dataset": {"name": spec["task"], "samples": len(ids), "sample_ids": ids},
                "config": {"epochs": self._epochs, "epochs_reducer": ["mean"]},
                # Without its metrics, Inspect drops the results when somebody edits a score.
                "scorers": [
                    {"name": name, "metrics": [{"name": "inspect_ai/mean"}]}
                    for name in self._values
                ],
            },
            "plan": {"name": "plan", "steps": [], "config": {}},
            "results": {
                "total_samples": self.n_samples,
                "completed_samples": self.n_samples,
                "scores": [self._result(name) for name in self._values],
            },
            "stats": {"started_at": spec["created"], "completed_at": finished or ""},
        }
        # The brace on a separate line shows readers of JSON Lines that the file is one document.
        write("{\n" + unescaped_json(header, allow_nan=False)[1:-1] + ', "samples": [')
        self._samples.seek(0)
        for number, line in enumerate(self._samples):
            write((",\n" if number else "\n") + line.rstrip("\n"))
        write("\n]}\n")

    def _result(self, name: str) -> JsonValue:
        """Return a scorer's mean as Inspect computes it: the mean over samples of each sample's
        mean over epochs.
        """
        by_sample = self._values[name]
        mean = mean_of(mean_of(values) for values in by_sample.values())
        return {
            "name": name,
            "scorer": name,
            "reducer": "mean",
            "scored_samples": len(by_sample),
            "unscored_samples": len(self._ids) - len(by_sample),
            "metrics": {"mean": {"name": "mean", "value": mean}},
        }

    def close(self) -> None:
        self._samples.close()
