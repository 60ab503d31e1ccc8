"""Build the demo's package data from the sources beside this file.

    python tools/demo/build.py            write
    src/assay/demo/{architects.json,judge.jsonl,review.json} python tools/demo/build.py --check
    exit 1 when a committed file differs from what would be written

Nothing here is random: the same sources always give the same bytes.
"""

import argparse
import copy
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).resolve().parent
TARGET = HERE.parents[1] / "src" / "assay" / "demo"
WEIGHTS = {"integrity": 2, "data_flow": 1, "maintainability": 1, "fitness": 1}
# Instructions, rubric and schema of a judge's prompt come to about this many characters beside the
# code.
PROMPT_OVERHEAD_CHARS = 4200
CHARS_PER_TOKEN = 4


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--check", action="store_true", help="only compare with the committed files"
    )
    check = parser.parse_args().check
    stale = [
        path
        for path, text in built_files().items()
        if not path.is_file() or path.read_text("utf-8") != text
    ]
    if check:
        for path in stale:
            print(
                f"{path.name} differs from what build.py gives; run python tools/demo/build.py",
                file=sys.stderr,
            )
        return 1 if stale else 0
    for path, text in built_files().items():
        path.write_text(text, encoding="utf-8")
    return 0


def built_files() -> dict[Path, str]:
    """The text of each package file, by its path."""
    return {
        TARGET / "architects.json": json.dumps(set_file(), indent=2, ensure_ascii=False) + "\n",
        TARGET / "judge.jsonl": "".join(
            json.dumps(line, ensure_ascii=False) + "\n" for line in replies()
        ),
        TARGET / "review.json": json.dumps(decisions(), indent=2, ensure_ascii=False) + "\n",
    }


def set_file() -> list[dict[str, Any]]:
    """The set file: every Thing with the code of each candidate."""
    catalogue = _yaml("things.yaml")
    return [
        {
            "thingName": thing["thing"],
            "context": thing["context"].strip(),
            "language": catalogue["language"],
            "trialsNeeded": catalogue["trials_needed"],
            "snippets": [
                {"name": name, "content": source(thing["id"], name)}
                for name in catalogue["candidates"]
            ],
        }
        for thing in catalogue["things"]
    ]


def source(task: str, candidate: str) -> str:
    return (HERE / "sources" / task / f"{candidate}.py").read_text("utf-8")


def judgements(task: str) -> list[dict[str, Any]]:
    return list(_yaml(f"judgements/{task}.yaml")["judgements"])


def messes() -> dict[str, list[dict[str, Any]]]:
    return dict(_yaml("messes.yaml"))


def weighted(grades: dict[str, dict[str, Any]]) -> float:
    """A candidate's score in one assessment, on the judge's own scale."""
    return sum(WEIGHTS[name] * float(grade["score"]) for name, grade in grades.items()) / sum(
        WEIGHTS.values()
    )


def replies() -> Iterator[dict[str, Any]]:
    """One recorded answer after another, in the order of tasks, trials and attempts."""
    book = messes()
    for thing in _yaml("things.yaml")["things"]:
        task = thing["id"]
        input_tokens = (
            len(json.dumps(thing)) + _code_length(task) + PROMPT_OVERHEAD_CHARS
        ) // CHARS_PER_TOKEN
        for judgement in judgements(task):
            trial, attempt = judgement["trial"], judgement["attempt"]
            mess = _entry(book["messes"], task, trial) if attempt == 1 else None
            oddity = _entry(book["oddities"], task, trial) if attempt == 1 else None
            changes = mess["change"] if mess else []
            match = {"role": "judge", "task": task, "trial": trial, "attempt": attempt}
            if oddity and oddity["kind"] == "unreadable_first":
                yield _line(match, oddity["text"].strip(), "stop", input_tokens)
            text = _text(
                _changed(judgement, changes), loose=bool(oddity and oddity["kind"] == "loose_json")
            )
            cut = next((change["cut_after"] for change in changes if "cut_after" in change), None)
            if cut is None:
                yield _line(match, text, "stop", input_tokens)
            else:
                yield _line(match, text[: text.index(cut) + len(cut)], "length", input_tokens)


def decisions() -> list[dict[str, Any]]:
    """What the recorded reviewer decides: first attempts in order, then what came back from the
    reruns.
    """
    book = messes()
    first: list[dict[str, Any]] = []
    later: list[dict[str, Any]] = []
    for thing in _yaml("things.yaml")["things"]:
        task = thing["id"]
        for judgement in judgements(task):
            trial = judgement["trial"]
            if judgement["attempt"] > 1:
                continue
            entry = _entry(book["messes"] + book["overlooked"], task, trial)
            for step in entry["review"] if entry else [{"decision": "approve"}]:
                (later if "attempt" in step else first).append(
                    {"task": task, "trial": trial, **step}
                )
    return first + later


def _text(judgement: dict[str, Any], *, loose: bool) -> str:
    """The raw answer.

    The candidates come in another order from trial to trial, as they do behind shuffled labels.
    """
    names = list(judgement["grades"])
    turn = (judgement["trial"] - 1) % len(names)
    document = {
        "report": judgement["report"].strip(),
        "ranking": [_label(name) for name in judgement["ranking"]],
        "candidates": {
            _label(name): {
                criterion: {key: grade[key] for key in ("score", "reason", "evidence")}
                for criterion, grade in judgement["grades"][name].items()
            }
            for name in names[turn:] + names[:turn]
        },
    }
    return _loosened(document) if loose else json.dumps(document, ensure_ascii=False)


def _loosened(document: dict[str, Any]) -> str:
    text = json.dumps(document, indent=2, ensure_ascii=False).replace('"score":', '"Score":')
    text = text.replace('"candidates": {', '// integrity counts twice\n  "candidates": {')
    text = re.sub(r"([}\]])(\n\s*[}\]])", r"\1,\2", text)
    return f"Here is my assessment of the candidates.\n\n```json\n{text}\n```\n\nI hope this helps with the decision."


def _changed(judgement: dict[str, Any], changes: list[dict[str, Any]]) -> dict[str, Any]:
    ranking = sorted(judgement["grades"], key=lambda name: -weighted(judgement["grades"][name]))
    changed = copy.deepcopy(judgement) | {"ranking": ranking}
    for change in changes:
        if "at" not in change:
            continue
        *path, last = change["at"].split("/")
        place = changed
        for key in path:
            place = place[key]
        if "set" in change:
            place[last] = change["set"]
        elif "replace" in change:
            if change["replace"] not in place[last]:
                raise ValueError(f"messes.yaml: {change['at']} does not hold {change['replace']!r}")
            place[last] = place[last].replace(change["replace"], change["with"])
        else:
            del place[last]
    return changed


def _line(
    match: dict[str, Any], text: str, finish_reason: str, input_tokens: int
) -> dict[str, Any]:
    usage = {"input_tokens": input_tokens, "output_tokens": len(text) // CHARS_PER_TOKEN}
    reply = {
        "text": text,
        "finish_reason": finish_reason,
        "usage": usage,
        "model": "recorded-judge-1",
    }
    return {"match": match, "reply": reply}


def _label(name: str) -> str:
    return f"{{{{label:{name}}}}}"


def _code_length(task: str) -> int:
    return sum(len(source(task, name)) for name in _yaml("things.yaml")["candidates"])


def _entry(entries: list[dict[str, Any]], task: str, trial: int) -> dict[str, Any] | None:
    return next(
        (entry for entry in entries if (entry["task"], entry["trial"]) == (task, trial)), None
    )


def _yaml(name: str) -> Any:
    return yaml.safe_load((HERE / name).read_text("utf-8"))


if __name__ == "__main__":
    sys.exit(main())
