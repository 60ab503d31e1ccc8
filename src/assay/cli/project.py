"""`assay init`, `validate`, `config` and `doctor`: set up a project and check it."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from assay.cli.options import common, file_option, workspace
from assay.cli.output import answer, print_json, say, say_table, tell
from assay.cli.parameters import argument, option
from assay.domain.errors import InputError, SettingsError

if TYPE_CHECKING:
    from assay.app.table_suite import TableSuite
    from assay.domain.errors import AssayError


@click.command()
@argument("folder", default=".", metavar="[DIR]", type=click.Path(path_type=Path))
@option(
    "--rubric",
    type=click.Choice(["correctness", "helpfulness", "faithfulness", "style", "code"]),
    help="Also create a suite that a judge grades by this ready-made rubric.",
)
@option(
    "--scenario",
    metavar="SUITE/NAME",
    help="Instead, create a scenario for coding agents below DIR/suites.",
)
@option(
    "--example",
    metavar="NAME",
    help="With --scenario: bug-fix, dependency-update, migration or refactoring.",
)
@option(
    "--specialist",
    metavar="NAME",
    help="Instead, write a template of a specialist to DIR/templates.",
)
@file_option(
    "--from",
    "rows",
    about="Instead, propose a suite for a table: CSV, TSV, JSON, JSONL or Parquet.",
)
@option(
    "--prompt",
    "prompts",
    multiple=True,
    metavar="FILE",
    help="With --from: prompt of a candidate. Repeatable.",
)
@option(
    "--model",
    "models",
    multiple=True,
    metavar="MODEL",
    help="With --from: model to ask. Repeatable.",
)
@option(
    "--judge", metavar="MODEL", help="With --from: model that grades; a person reviews its grades."
)
@option(
    "--map",
    "mapped",
    multiple=True,
    metavar="KEY=COLUMN",
    help="With --from: column of a task's key, as prompt=q. Repeatable.",
)
@option("--yes", is_flag=True, help="With --from: write the proposed suite without asking.")
@common
def init(
    folder: Path,
    rubric: str | None,
    scenario: str | None,
    example: str | None,
    specialist: str | None,
    rows: Path | None,
    prompts: tuple[str, ...],
    models: tuple[str, ...],
    judge: str | None,
    mapped: tuple[str, ...],
    yes: bool,
    store: str | None,
    as_json: bool,
) -> int:  # every command takes --store
    """Create a project in DIR with a suite that runs without a key, or a suite for a table, a
    scenario or a specialist.
    """
    from assay.app import table_suite
    from assay.app.scaffold import start_project, start_scenario, start_specialist

    go = "" if folder == Path() else f"cd {folder} && "
    of_table = prompts or models or judge or mapped
    if specialist is not None:
        if rubric or rows is not None or scenario or example or of_table:
            raise InputError(
                "--specialist", "creates one template.", remedy="Leave the other options out."
            )
        path = start_specialist(folder, specialist)
        following = f"next: edit it, then assay validate {path}"
        return answer(
            {"folder": str(path.parent), "files": [str(path)]},
            f"made {path}\n{following}",
            as_json=as_json,
        )
    if scenario is not None:
        if rubric or rows is not None or of_table:
            raise InputError(
                "--scenario", "creates one scenario.", remedy="Use no other option than --example."
            )
        place = start_scenario(folder, scenario, example=example or "minimal")
        files = sorted(str(path) for path in place.rglob("*") if path.is_file())
        command = f"{go}assay bench {scenario.replace('/', ' ')} --agent echo --agent solution"
        lines = [
            f"made {place} ({len(files)} files)",
            f"next: {command}",
            "`echo` must fail, and `solution` must succeed.",
        ]
        return answer({"folder": str(place), "files": files}, "\n".join(lines), as_json=as_json)
    if example:
        raise InputError("--example", "needs --scenario.", remedy="Add --scenario SUITE/NAME.")
    if rows is not None:
        if folder != Path() or rubric:
            raise InputError(
                "--from",
                "writes a single suite next to FILE.",
                remedy="Leave DIR and --rubric out.",
            )
        proposal = table_suite.propose(
            rows, prompts=prompts, models=models, judge=judge, mapped=mapped
        )
        return _write_suite(
            proposal, ask=not (yes or as_json) and sys.stdin.isatty(), store=store, as_json=as_json
        )
    if of_table:
        raise InputError(
            "--prompt, --model, --judge and --map",
            "need --from.",
            remedy="Add --from FILE, with your tasks.",
        )
    made = start_project(folder, rubric=rubric)
    lines = [
        *(f"made {path}" for path in made),
        f"next: {go}assay run suites/first.yaml && assay compare careful hasty",
    ]
    return answer(
        {"folder": str(folder), "files": [str(path) for path in made]},
        "\n".join(lines),
        as_json=as_json,
    )


def _write_suite(proposal: TableSuite, *, ask: bool, store: str | None, as_json: bool) -> int:
    from assay.app import table_suite

    used = {
        **proposal.mapping,
        **{f"answers of {name}": column for name, column in proposal.answers.items()},
    }
    used |= {f"option {letter}": column for letter, column in proposal.options.items()}
    if not as_json:
        left_out = [column for column in proposal.columns if column not in used.values()]
        say_table(
            ("task", "column"), [*used.items(), *(("not used", column) for column in left_out)]
        )
        score, reason = proposal.scoring
        say(f"scoring: {score}. {reason}")
        for note in proposal.notes:
            tell(f"note: {note}")
        if proposal.candidates:
            say(
                f"candidates: {', '.join(str(candidate['name']) for candidate in proposal.candidates)}"
            )
    if ask:
        click.confirm(f"Write {proposal.path}?", default=True, abort=True, err=True)
    with workspace(store) as opened:
        errors = table_suite.write(opened.settings, proposal)
    document = {
        "folder": str(proposal.path.parent),
        "files": [str(proposal.path)],
        "map": proposal.mapping,
        "answers": proposal.answers,
        "scoring": _scoring(proposal),
        "notes": proposal.notes,
        "problems": list(map(_problem, errors)),
    }
    answer(document, f"made {proposal.path}", as_json=as_json)
    for error in errors:
        tell(str(error))
    if not as_json and not errors:
        names = [*(str(candidate["name"]) for candidate in proposal.candidates), *proposal.answers]
        verdict = shlex.join(["compare", *names]) if len(names) == 2 else "stats"
        say(f"next: assay run {proposal.path} && assay {verdict if proposal.by_rule else 'review'}")
    return 2 if errors else 0


def _scoring(proposal: TableSuite) -> dict[str, object]:
    _, reason = proposal.scoring
    method = proposal.advice.method if proposal.by_rule and proposal.advice is not None else "judge"
    options = proposal.advice.options if proposal.by_rule and proposal.advice is not None else {}
    kind = None if proposal.advice is None else proposal.advice.kind
    return {"method": method, "options": dict(options), "references": kind, "reason": reason}


def _problem(error: AssayError) -> dict[str, str]:
    return {"where": error.where, "problem": error.problem, "remedy": error.remedy}


@click.command()
@argument("files", nargs=-1, metavar="FILE…", type=click.Path(path_type=Path))
@option(
    "--schema",
    type=click.Choice(["suite", "set", "scenario", "template", "snapshot"]),
    help="Print the JSON Schema of such files instead.",
)
@common
def validate(files: tuple[Path, ...], schema: str | None, store: str | None, as_json: bool) -> int:
    """Check suite and set files, scenarios and templates of specialists without running them; exit
    2 if one is wrong.
    """
    from assay.app.suites import json_schema, problems

    if schema:
        print_json(json_schema(schema))
        return 0
    if not files:
        raise InputError(
            "FILE",
            "no file was given.",
            remedy="Give a file to check: assay validate suites/first.yaml",
        )

    with workspace(store) as opened:
        checked = [(path, problems(opened.settings, path)) for path in files]
    if as_json:
        files_ = [
            {"file": str(path), "valid": not errors, "problems": list(map(_problem, errors))}
            for path, errors in checked
        ]
        print_json({"files": files_})
    for path, errors in checked:
        for error in errors:
            tell(str(error))
        if not errors and not as_json:
            say(f"{path}: valid")
    return 2 if any(errors for _, errors in checked) else 0


@click.command()
@option("--schema", is_flag=True, help="Print the JSON Schema of assay.yaml instead.")
@common
def config(schema: bool, store: str | None, as_json: bool) -> int:
    """Show the settings in effect and where each comes from.

    Keys are never shown; `assay doctor` says which are set.
    """
    from assay.app.settings import SETTINGS, settings_schema
    from assay.app.webhooks import without_secrets

    if schema:
        print_json(settings_schema())
        return 0
    with workspace(store) as opened:
        values, origins = dict(opened.settings.values), opened.settings.origins
        values["store"] = values["store"] and _without_password(str(values["store"]))
        values["webhook"] = values["webhook"] and without_secrets(str(values["webhook"]))
        for secret in ("webhook_secret", "server_token"):
            values[secret] = values[secret] and "***"
        address = opened.settings.store_url
    if as_json:
        settings = {
            s.key: {"value": values[s.key], "origin": origins[s.key], "about": s.about}
            for s in SETTINGS
        }
        print_json({"settings": settings, "store": _without_password(address)})
        return 0
    rows = [
        (s.key, "–" if values[s.key] is None else str(values[s.key]), origins[s.key], s.about)
        for s in SETTINGS
    ]
    say_table(("setting", "value", "from", "what it is"), rows)
    say(f"\nstore: {_without_password(address)}")
    return 0


@click.command()
@option(
    "--check-store",
    is_flag=True,
    help="Read every row of the store and compare it with its digests and counts.",
)
@common
def doctor(check_store: bool, store: str | None, as_json: bool) -> int:
    """Check this machine and show how to fix problems."""
    from assay.app.doctor import examine

    try:
        with workspace(store) as opened:
            findings = examine(opened, whole_store=check_store)
    except SettingsError as error:
        raise InputError("settings", str(error)) from error
    if as_json:
        print_json({"checks": findings})
    else:
        say_table(
            ("check", "state", "found", "remedy"),
            [(f.what, f.state, f.detail, f.remedy) for f in findings],
        )
    return int(any(f.state == "broken" for f in findings))


def _without_password(url: str) -> str:
    scheme, separator, rest = url.partition("://")
    if "@" not in rest:
        return url
    user, _, host = rest.rpartition("@")
    return f"{scheme}{separator}{user.partition(':')[0]}:***@{host}"
