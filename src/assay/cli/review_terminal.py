"""Review in the terminal: print one item after the other, and ask for a decision on each.

Everything is plain text that scrolls, and every answer is a line. The review service decides what
a reviewer may see, as on the review page. Names are hidden while an item is pending. A blind item
shows the judge's grades only after the reviewer has entered scores.
"""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING, Final

import click

from assay.cli.output import counted, say, visible
from assay.cli.review_item import grade_lines, material_lines, shortened
from assay.domain.errors import InputError
from assay.domain.identifiers import AssessmentKey, shown_assessment
from assay.domain.lifecycle import AssessmentState, Verb
from assay.domain.review import Via

if TYPE_CHECKING:
    from collections.abc import Iterable

    from assay.app.review.item import Item, RubricRow
    from assay.app.workspace import Workspace
    from assay.cli.review_item import ItemLine
    from assay.domain.selection import Selection

    Scores = tuple[tuple[int, str | None, float], ...]

_CHOICES: Final = {
    "approve": ("a", "the judge's grades count as they are"),
    "correct": ("c", "enter your own scores, criterion by criterion; Enter keeps a score"),
    "grade": ("g", "score an item for people, or a blind item before you see the grades"),
    "reject": ("x", "the grades count in no statistic; asks for a reason"),
    "rerun": ("r", "have the judge grade the answers again; asks for a note to the judge"),
    "skip": ("s", "the item stays pending and comes back after the others"),
    "undo": ("u", "take back your last decision of this session"),
    "view": ("v", "show the whole item in the pager, also the texts that are left out"),
    "quit": ("q", "stop; everything decided so far is stored"),
    "help": ("?", "show this list"),
}
"""Key and meaning of each choice."""

_DECISIONS: Final = frozenset({"approve", "correct", "grade", "reject"})

_HINTS: Final = """
Type a word or its key, then Enter.
Enter scores on each criterion's own scale, such as 7, or as a share, such as 7/10.
Ctrl-C in a question goes back to the item; at this prompt, it quits."""


def go_through(workspace: Workspace, selection: Selection, *, reviewer: str | None) -> None:
    """Show each pending assessment and store the decision, until all are decided or the reviewer
    stops.
    """
    session = _Session(workspace, selection, reviewer or workspace.reviewer)
    try:
        ending = session.run()
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
        self._concealment = Concealment(workspace.store)
        self._service = ReviewService(workspace, self._showcase, self._concealment)
        self._queue = ReviewQueue(
            workspace.archive.assessments,
            workspace.leases,
            workspace.clock,
            order_seeds(workspace.store),
        )
        # two terminals of one person show different items
        self._desk = f"terminal-{secrets.token_hex(4)}"
        self._skipped: set[AssessmentKey] = set()
        self._of_others: set[AssessmentKey] = set()
        self._decided: list[AssessmentKey] = []
        # decided by this reviewer, and waiting for another person
        self._left_pending: set[AssessmentKey] = set()
        self._again: AssessmentKey | None = None

    def run(self) -> str:
        """Show items until the queue is empty or the reviewer stops; return a closing sentence."""
        try:
            while (key := self._next()) is not None:
                self._decide_item(key)
        except (KeyboardInterrupt, click.Abort):
            decided, pending = len(self._decided), self._waiting()
            return f"\n{counted(decided, 'item')} decided; {counted(pending, 'item')} still pending"
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

    def _decide_item(self, key: AssessmentKey) -> None:
        """Show one item until it is decided or skipped; raises `click.Abort` if the reviewer
        stops.
        """
        began = time.monotonic()
        shown: Item | None = None
        unread = False
        while True:
            item = self._service.item(key, reviewer=self._reviewer, whole=True)
            if item.state != AssessmentState.PENDING:
                say(f"{item.id} was decided by someone else in the meantime.")
                self._queue.done_with(key)
                return
            material, grades = self._material(key, item), grade_lines(item)
            if shown is None:
                beginning = shortened(material)
                unread = beginning != material
                say(f"\n{self._title(item)}", bold=True)
                _say_lines(beginning)
            if shown is None or shown.blind != item.blind:
                _say_lines(grades)
            shown = item
            choice = _asked_choice(item)
            if choice == "help":
                say(_help(item))
            elif choice == "view":
                click.echo_via_pager("\n".join(line.text for line in (*material, *grades)))
                unread = False
            elif unread and choice in _DECISIONS:
                say("Part of this item is left out above. Type view to see it all, then decide.")
            elif self._acted(key, item, choice, round(1000 * (time.monotonic() - began))):
                return

    def _title(self, item: Item) -> str:
        place = len(self._decided) + len(self._skipped) + 1
        of = max(place, len(self._decided) + self._waiting())
        again = f" · attempt {item.attempt}" if item.attempt > 1 else ""
        return f"{place} of {of} · {item.thing} · trial {item.k} of {item.of} · {item.id}{again}"

    def _material(self, key: AssessmentKey, item: Item) -> list[ItemLine]:
        detail = self._workspace.archive.assessments.detail(key)
        return material_lines(
            item, self._showcase.common_prompt(detail), tuple(detail.task.columns.items())
        )

    def _acted(self, key: AssessmentKey, item: Item, choice: str, active_ms: int) -> bool:
        """Carry out a choice; False if it was refused or cancelled, or the item goes on."""
        if choice == "quit":
            raise click.Abort
        try:
            return self._act(key, item, choice, active_ms)
        except click.Abort:
            say("\nNothing was changed.")
        except InputError as error:
            say(str(error))
        return False

    def _act(self, key: AssessmentKey, item: Item, choice: str, active_ms: int) -> bool:
        """Ask for what a choice needs, and apply it; True if another item comes next."""
        match choice:
            case "skip":
                self._skip(key)
                return True
            case "undo":
                return self._undo(key)
            case "rerun":
                return self._rerun(key)
            case "approve":
                self._submit(key, Verb.APPROVE, active_ms=active_ms)
            case "reject":
                self._submit_with_reason(key, Verb.REJECT, active_ms)
            case _:
                scores = _asked_scores(item)
                if item.blind:
                    self._service.verdict(key, scores, reviewer=self._reviewer)
                    say("Your scores are stored. Compare them with the judge's grades, then")
                    say("approve or correct these.")
                    return False
                if not scores:
                    say("No score differs; approve keeps the grades as they are.")
                    return False
                kept = "graded" if item.person else ""
                self._submit_with_reason(key, Verb.CORRECT, active_ms, scores=scores, kept=kept)
        self._decided.append(key)
        self._queue.done_with(key)
        return True

    def _submit_with_reason(
        self, key: AssessmentKey, verb: Verb, active_ms: int, *, scores: Scores = (), kept: str = ""
    ) -> None:
        """Ask for a reason and store the decision; ask again if it is refused."""

        def submit(reason: str) -> None:
            try:
                self._submit(key, verb, reason=reason, scores=scores, active_ms=active_ms)
            except InputError as error:
                raise click.UsageError(visible(str(error))) from None

        click.prompt("reason", default=kept, show_default=bool(kept), value_proc=submit)

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
                login=self._workspace.login,
            ),
        )
        if state is AssessmentState.PENDING and verb is not Verb.UNDO:
            self._left_pending.add(key)
            say(f"{shown_assessment(key)}: your opinion is stored; another person must decide too")
        else:
            self._left_pending.discard(key)
            say(f"{shown_assessment(key)}: {'undone, and ' if verb is Verb.UNDO else ''}{state}")

    def _undo(self, key: AssessmentKey) -> bool:
        """Undo the last decision, so that its item is shown next; False if nothing was undone."""
        if not self._decided:
            say("Nothing was decided in this session.")
            return False
        self._submit(self._decided[-1], Verb.UNDO)
        self._queue.put_back(key, desk=self._desk)
        self._again = self._decided.pop()
        return True

    def _rerun(self, key: AssessmentKey) -> bool:
        from assay.app.review import rerun

        note = click.prompt("note to the judge: what to pay attention to")
        new, failure = rerun.rerun_now(
            self._workspace, key, reason=note, note=note, reviewer=self._reviewer
        )
        if failure is not None or new is None:
            why = "" if failure is None else failure.detail
            say(f"The judge failed: {why} The item is unchanged.")
            return False
        self._service.note_rerun(key, reviewer=self._reviewer, idempotency_key=secrets.token_hex(8))
        self._queue.done_with(key)
        self._again = new
        say(f"{shown_assessment(new)} is the new attempt.")
        return True


def _say_lines(lines: Iterable[ItemLine]) -> None:
    for line in lines:
        say(line.text, bold=line.heading)


def _offered(item: Item) -> dict[str, str]:
    """Return the words of the choices that an item allows, by key."""
    refused = {"approve", "correct"} if item.blind or item.person else {"grade"}
    if not item.rerunnable:
        refused.add("rerun")
    return {key: word for word, (key, _) in _CHOICES.items() if word not in refused}


def _help(item: Item) -> str:
    choices = (f"{key}  {word:8} {_CHOICES[word][1]}" for key, word in _offered(item).items())
    return "\n".join((*choices, _HINTS))


def _asked_choice(item: Item) -> str:
    """Ask for a choice that the item allows, by its key or word."""
    offered = _offered(item)
    names = [
        f"[{key}]{word[1:]}" if word[0] == key else f"[{key}] {word}"
        for key, word in offered.items()
    ]

    def chosen(line: str) -> str:
        text = line.strip().lower()
        if text in offered.values():
            return text
        if text not in offered:
            raise click.UsageError(visible(f"{text!r} does nothing here; ? shows the choices."))
        return offered[text]

    choice: str = click.prompt(" ".join(names), default="", show_default=False, value_proc=chosen)
    return choice


def _asked_scores(item: Item) -> Scores:
    """Ask for a score for each criterion and response; return the new or changed scores."""
    scores: list[tuple[int, str | None, float]] = []
    for row in item.criteria:
        for place, pane in enumerate(item.panes):
            cell = None if item.blind or item.person else row.cells[place]
            before = None if cell is None or cell.raw is None else f"{cell.raw:g}"
            share = _asked_score(f"{pane.label} · {row.name} ({row.scale})", row, before)
            if share is not None:
                scores.append((place, row.name, share))
    return tuple(scores)


def _asked_score(question: str, row: RubricRow, before: str | None) -> float | None:
    """Ask for a score until it is valid for the criterion; None if it is the score before."""

    def share(line: str) -> float | None:
        text = line.strip()
        try:
            return None if text == before else _share(text, row)
        except ValueError:
            raise click.UsageError(visible(f"{text!r} is not a score.")) from None

    score: float | None = click.prompt(visible(question), default=before, value_proc=share)
    return score


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
