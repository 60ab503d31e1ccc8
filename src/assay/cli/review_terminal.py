"""Review in the terminal: one screen per item, and one key per decision.

The review service decides what a reviewer may see, as on the review page. Names are hidden while an
item is pending. A blind item shows the judge's grades only after the reviewer has entered scores.
"""

from __future__ import annotations

import secrets
import time
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from assay.cli.output import counted, say
from assay.cli.review_item import ScreenLine, item_lines
from assay.cli.review_screen import Screen
from assay.domain.errors import InputError
from assay.domain.identifiers import AssessmentKey, shown_assessment
from assay.domain.lifecycle import AssessmentState, Verb
from assay.domain.review import Via

if TYPE_CHECKING:
    from collections.abc import Callable

    from assay.app.review.item import Item, RubricRow
    from assay.app.workspace import Workspace
    from assay.domain.selection import Selection

    Scores = tuple[tuple[int, str | None, float], ...]

_KEYS: Final = "[a]pprove  [c]orrect  [x] reject  [r]erun  [s]kip  [u]ndo last  [q]uit  [?] help"
_GRADE_KEYS: Final = "[g]rade  [x] reject  [s]kip  [u]ndo last  [q]uit  [?] help"
_BLIND_KEYS: Final = "[g]rade, then see the judge's grades  [x] reject  [r]erun  [s]kip  [u]ndo last  [q]uit  [?] help"
_HELP: Final = (files(__package__) / "review_keys.txt").read_text("utf-8")


def go_through(workspace: Workspace, selection: Selection, *, reviewer: str | None) -> None:
    """Show each pending assessment and store the decision, until all are decided or the reviewer
    stops.
    """
    session = _Session(workspace, selection, reviewer or workspace.reviewer)
    try:
        with Screen().opened() as screen:
            ending = session.run(screen)
    finally:
        session.leave()
    say(ending)


class _Session:
    """One person's review session: queue, current item and decisions."""

    def __init__(self, workspace: Workspace, selection: Selection, reviewer: str) -> None:
        from assay.app.random_order import order_seeds
        from assay.app.review.concealment import Concealment
        from assay.app.review.item_view import Showcase
        from assay.app.review.queue import ReviewQueue
        from assay.app.review.service import ReviewService

        self._workspace, self._selection, self._reviewer = workspace, selection, reviewer
        self._showcase = Showcase(workspace.archive, workspace.journal)
        self._concealment = Concealment(workspace)
        self._service = ReviewService(workspace, self._showcase, self._concealment)
        self._queue = ReviewQueue(
            workspace.archive.assessments, workspace.leases, workspace.clock, order_seeds(workspace)
        )
        # two terminals of one person show different items
        self._desk = f"terminal-{secrets.token_hex(4)}"
        self._skipped: set[AssessmentKey] = set()
        self._of_others: set[AssessmentKey] = set()
        self._decided: list[AssessmentKey] = []
        # decided by this reviewer, and waiting for another person
        self._left_pending: set[AssessmentKey] = set()
        self._again: AssessmentKey | None = None

    def run(self, screen: Screen) -> str:
        """Show items until the queue is empty or the reviewer quits; return a closing sentence."""
        while (key := self._next()) is not None:
            if self._decide_item(screen, key) == "quit":
                return f"{counted(len(self._decided), 'item')} decided; {counted(self._waiting(), 'item')} still pending"
        if not self._decided and not self._skipped:
            return "no assessments are pending"
        skipped = (
            f"; {counted(len(self._skipped), 'skipped item')} still pending"
            if self._skipped
            else ""
        )
        ended = f"that was the last one: {counted(len(self._decided), 'item')} decided{skipped}"
        if not self._left_pending:
            return f"{ended}; see `assay stats`"
        waiting = f"{counted(len(self._left_pending), 'item')} {'waits' if len(self._left_pending) == 1 else 'wait'}"
        return (
            f"{ended}; {waiting} for a second person, who runs `assay review` under their own login "
            "(or an invitation: `assay reviewers invite NAME`)"
        )

    def leave(self) -> None:
        self._queue.leave(self._desk)

    def _next(self) -> AssessmentKey | None:
        if self._again is not None:
            key, self._again = self._again, None
            self._queue.keep(key, desk=self._desk)
            return key
        while keys := self._queue.take(self._selection, desk=self._desk, limit=1):
            (key,) = keys
            if key in self._skipped | self._of_others:
                return None  # items that were put back come after all others
            if not self._service.opinions.not_decidable_by(keys, reviewer=self._reviewer):
                return key
            self._of_others.add(key)
            self._queue.put_back(key, desk=self._desk)
        return None

    def _skip(self, key: AssessmentKey) -> None:
        self._skipped.add(key)
        self._queue.put_back(key, desk=self._desk)

    def _waiting(self) -> int:
        others = self._service.opinions.waits_for_others(self._selection, reviewer=self._reviewer)
        return self._concealment.tally(self._selection).get(AssessmentState.PENDING, 0) - others

    def _decide_item(self, screen: Screen, key: AssessmentKey) -> str:
        """Show one item until it is decided or skipped; return "quit" if the reviewer stops."""
        message, from_top = "", True
        place = len(self._decided) + len(self._skipped) + 1
        of = max(place, len(self._decided) + self._waiting())
        began = time.monotonic()
        while True:
            item = self._service.item(key, reviewer=self._reviewer, whole=True)
            if item.state != AssessmentState.PENDING:  # another reviewer decided it in the meantime
                self._queue.done_with(key)
                return "decided elsewhere"
            title = f"{place} of {of} · {item.thing} · trial {item.k} of {item.of} · {item.id}"
            if item.attempt > 1:
                title += f" · attempt {item.attempt}"
            keys = _GRADE_KEYS if item.person else _BLIND_KEYS if item.blind else _KEYS
            pressed = screen.show(
                title, self._lines(key, item), keys, message=message, from_top=from_top
            )
            message, from_top = "", False
            match pressed:
                case "q":
                    return "quit"
                case "?":
                    screen.show(
                        "Keys of the review",
                        [ScreenLine(line) for line in _HELP.split("\n")],
                        "any key: back",
                    )
                case "s":
                    self._skip(key)
                    return "skipped"
                case "u" if self._decided:
                    if not (message := self._undo(key)):
                        return "undone"
                case "u":
                    message = "Nothing was decided in this session."
                case _:
                    active_ms = round(1000 * (time.monotonic() - began))
                    message, done = self._act(screen, key, item, pressed, active_ms)
                    if done:
                        return "decided"

    def _lines(self, key: AssessmentKey, item: Item) -> list[ScreenLine]:
        detail = self._workspace.archive.assessments.detail(key)
        return item_lines(
            item, self._showcase.common_prompt(detail), tuple(detail.task.columns.items())
        )

    def _act(
        self, screen: Screen, key: AssessmentKey, item: Item, pressed: str, active_ms: int
    ) -> tuple[str, bool]:
        """Apply the decision of a key; return a message, and True if the item is finished."""
        grades = item.person or item.blind
        match pressed:
            case "a" if not grades:
                try:
                    self._submit(key, Verb.APPROVE, active_ms=active_ms)
                except InputError as error:
                    return str(error), False
            case "x":
                if not _repeated(
                    screen,
                    "reason",
                    lambda text: self._submit(key, Verb.REJECT, reason=text, active_ms=active_ms),
                ):
                    return "", False
            case "g" | "c" if grades or pressed == "c":
                scores = _asked_scores(screen, item)
                if scores is None:
                    return "Nothing was changed.", False
                if item.blind:
                    return self._show_grades(key, scores), False
                if not scores:
                    return "No score differs; `a` approves the grades as they are.", False
                reason = "graded" if item.person else ""
                if not _repeated(
                    screen,
                    "reason",
                    lambda text: self._submit(
                        key, Verb.CORRECT, reason=text, scores=scores, active_ms=active_ms
                    ),
                    reason,
                ):
                    return "Nothing was changed.", False
            case "r" if item.rerunnable:
                return self._rerun(screen, key)
            case _:
                return f"{pressed!r} does nothing here; ? shows the keys.", False
        self._decided.append(key)
        self._queue.done_with(key)
        return "", True

    def _submit(
        self,
        key: AssessmentKey,
        verb: Verb,
        *,
        reason: str = "",
        scores: Scores = (),
        active_ms: int | None = None,
    ) -> None:
        from assay.app.review.submitted_decision import SubmittedDecision

        state = self._service.decide(
            key,
            SubmittedDecision(
                verb=verb,
                reviewer=self._reviewer,
                idempotency_key=secrets.token_hex(8),
                reason=reason,
                corrections=scores,
                active_ms=active_ms,
                via=Via.TERMINAL,
                signed_in=self._workspace.reviewer,
            ),
        )
        if state is AssessmentState.PENDING and verb is not Verb.UNDO:
            self._left_pending.add(key)
        else:
            self._left_pending.discard(key)

    def _undo(self, key: AssessmentKey) -> str:
        """Undo the last decision, so that its item is shown next; return an error message or an
        empty text.
        """
        try:
            self._submit(self._decided[-1], Verb.UNDO)
        except InputError as error:
            return str(error)
        self._queue.put_back(key, desk=self._desk)
        self._again = self._decided.pop()
        return ""

    def _show_grades(self, key: AssessmentKey, scores: Scores) -> str:
        try:
            self._service.verdict(key, scores, reviewer=self._reviewer)
        except InputError as error:
            return str(error)
        return "Your scores are stored. Compare them with the judge's grades, then approve or correct these."

    def _rerun(self, screen: Screen, key: AssessmentKey) -> tuple[str, bool]:
        from assay.app.review import rerun

        note = screen.ask("note to the judge: what to pay attention to")
        if not (note or "").strip():
            return "A rerun needs a note to the judge.", False
        try:
            new, failure = rerun.rerun_now(
                self._workspace, key, reason=str(note), note=str(note), reviewer=self._reviewer
            )
        except InputError as error:
            return str(error), False
        if failure is not None or new is None:
            return (
                f"The judge failed: {'' if failure is None else failure.detail} The item is unchanged.",
                False,
            )
        self._service.note_rerun(key, reviewer=self._reviewer, idempotency_key=secrets.token_hex(8))
        self._queue.done_with(key)
        self._again = new
        return f"{shown_assessment(new)} is the new attempt.", True


def _asked_scores(screen: Screen, item: Item) -> Scores | None:
    """Ask for a score for each criterion and response; return the new or changed scores, or None if
    the reviewer cancels.
    """
    scores: list[tuple[int, str | None, float]] = []
    for row in item.criteria:
        for place, pane in enumerate(item.panes):
            cell = None if item.blind or item.person else row.cells[place]
            before = "" if cell is None or cell.raw is None else f"{cell.raw:g}"
            given = _asked_score(screen, f"{pane.label} · {row.name} ({row.scale})", row, before)
            if given is None:
                return None
            if given != before:
                scores.append((place, row.name, _share(given, row)))
    return tuple(scores)


def _asked_score(screen: Screen, question: str, row: RubricRow, text: str) -> str | None:
    """Ask for a score until it is valid for the criterion; None if the reviewer cancels."""
    problem = ""
    while (answer := screen.ask(f"{problem}{question}", text)) is not None:
        text = answer.strip()
        try:
            _share(text, row)
        except ValueError:
            problem = f"{text!r} is not a score. "
        else:
            return text
    return None


def _share(text: str, row: RubricRow) -> float:
    """Convert `7` on the criterion's scale, `7/10` or a label to a score from 0 to 1; raises
    ValueError for other texts.
    """
    named = dict(row.labels)
    number, slash, whole = text.partition("/")
    if slash:
        share = float(number) / float(whole or "0") if float(whole or "0") else -1.0
    else:
        share = ((named[text] if text in named else float(text)) - row.low) / (row.high - row.low)
    if not 0 <= share <= 1:
        raise ValueError(text)
    return share


def _repeated(screen: Screen, question: str, act: Callable[[str], None], text: str = "") -> bool:
    """Ask for a text and apply it, and ask again after an error; False if the reviewer cancels."""
    problem = ""
    while (answer := screen.ask(f"{problem}{question}", text)) is not None:
        try:
            act(answer)
        except InputError as error:
            text, problem = answer, f"{error} "
        else:
            return True
    return False
