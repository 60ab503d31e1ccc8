"""Keyboard shortcuts of all pages: one table from which handlers, key badges, help sheets, documentation and tests read.

House rules: nothing is bound to Backspace, Delete or Space, and Enter alone never approves. An action that discards grades
or costs a model call takes two keys. `keys` are values of `KeyboardEvent.key`; the keys of a sequence are separated by a space.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyBinding:
    """An action of a page and the keys that trigger it.

    Attributes:
        action: name of the action in the page's script.
        keys: alternatives; the badge shows the first.
        about: description on the help sheet.
        group: heading on the help sheet.
        badge: text on the badge, if it is not the first key.
        in_fields: True if the key also works while an input field has the focus.
    """

    action: str
    keys: tuple[str, ...]
    about: str
    group: str
    badge: str = ""
    in_fields: bool = False

    @property
    def shown(self) -> str:
        """Return the label on the key badge."""
        return self.badge or self.keys[0]


DECIDE: Final = "Decide"
LOOK: Final = "Look"
MOVE: Final = "Move"
ANYWHERE: Final = "Anywhere"

REGISTRY: Final = (
    KeyBinding(action="approve", keys=("a",), about="Approve: the judge's scores count as they are", group=DECIDE),
    KeyBinding(action="correct", keys=("c",), about="Correct: set your own scores", group=DECIDE),
    KeyBinding(action="reject", keys=("x",), about="Reject, then 1 to 6 for the reason", group=DECIDE),
    KeyBinding(
        action="rerun", keys=("r",), about="Rerun the judge on this trial, then 1 to 5 for the reason", group=DECIDE
    ),
    KeyBinding(action="skip", keys=("s",), about="Skip: come back to this item later", group=DECIDE),
    KeyBinding(
        action="second",
        keys=("f",),
        about="Second opinion: two people review this item independently",
        group=DECIDE,
    ),
    KeyBinding(
        action="score",
        keys=tuple("0123456789"),
        group=DECIDE,
        about="Score the highlighted cell and go to the next; above 10, type the number and press Enter, Tab or an arrow key",
        badge="0–9",
    ),
    KeyBinding(action="top", keys=("+",), about="Give the highlighted cell the highest score", group=DECIDE),
    KeyBinding(action="undo", keys=("u", "Mod+z"), about="Undo your last decision", group=DECIDE),
    KeyBinding(
        action="commit",
        keys=("Mod+Enter",),
        about="Save the correction, or confirm the open panel, from any field",
        group=DECIDE,
        badge="Ctrl Enter",
        in_fields=True,
    ),
    KeyBinding(action="row_down", keys=("ArrowDown",), about="Next criterion", group=LOOK, badge="↓"),
    KeyBinding(action="row_up", keys=("ArrowUp",), about="Previous criterion", group=LOOK, badge="↑"),
    KeyBinding(action="pane_right", keys=("ArrowRight", "]"), about="Next candidate", group=LOOK, badge="→"),
    KeyBinding(action="pane_left", keys=("ArrowLeft", "["), about="Previous candidate", group=LOOK, badge="←"),
    KeyBinding(action="evidence", keys=("v",), about="Go to the next quoted line", group=LOOK),
    KeyBinding(action="both", keys=("d",), about="Show two responses side by side, or one", group=LOOK),
    KeyBinding(action="source", keys=("m",), about="Show Markdown rendered, or its source", group=LOOK),
    KeyBinding(action="wrap", keys=("w",), about="Wrap long lines of code", group=LOOK),
    KeyBinding(action="rules", keys=("i",), about="Show the task, or the responses again", group=LOOK),
    KeyBinding(action="report", keys=("o",), about="Open or close the judge's report", group=LOOK),
    KeyBinding(action="next", keys=("j",), about="Next item, without a decision", group=MOVE),
    KeyBinding(action="previous", keys=("k",), about="Previous item", group=MOVE),
    KeyBinding(action="trial_next", keys=("t",), about="Next trial of this task", group=MOVE),
    KeyBinding(action="trial_previous", keys=("T",), about="Previous trial of this task", group=MOVE, badge="Shift t"),
    KeyBinding(action="go_queue", keys=("g q",), about="Go to the queue", group=MOVE),
    KeyBinding(action="go_run", keys=("g r",), about="Go to this run", group=MOVE),
    KeyBinding(action="note", keys=("n",), about="Write a note in the open panel", group=ANYWHERE),
    KeyBinding(
        action="leave",
        keys=("Escape",),
        about="Leave the field or close the panel",
        group=ANYWHERE,
        badge="Esc",
        in_fields=True,
    ),
    KeyBinding(action="help", keys=("?",), about="Show this sheet", group=ANYWHERE),
)

COMPARISON: Final = (
    KeyBinding(action="better_a", keys=("a",), about="A is better", group=DECIDE),
    KeyBinding(action="better_b", keys=("b",), about="B is better", group=DECIDE),
    KeyBinding(action="equal", keys=("e",), about="Equally good", group=DECIDE),
    KeyBinding(
        action="both_bad", keys=("0",), about="Both bad: counted separately, without a preference", group=DECIDE
    ),
    KeyBinding(action="skip", keys=("s",), about="Skip: put the pair at the end", group=DECIDE),
    KeyBinding(action="undo", keys=("u", "Mod+z"), about="Undo your last vote", group=DECIDE),
    KeyBinding(action="preview", keys=("p",), about="Start both pages, or stop them", group=LOOK),
    KeyBinding(action="source", keys=("v",), about="Show the source, or the pages again", group=LOOK),
    KeyBinding(action="pane_left", keys=("[", "ArrowLeft"), about="Go to A", group=LOOK),
    KeyBinding(action="pane_right", keys=("]", "ArrowRight"), about="Go to B", group=LOOK),
    KeyBinding(action="next", keys=("j",), about="Next pair, once you have voted", group=MOVE),
    KeyBinding(action="go_arena", keys=("g a",), about="Go to the arena", group=MOVE),
    KeyBinding(action="go_ranking", keys=("g s",), about="Go to the ranking of this run", group=MOVE),
    KeyBinding(action="go_queue", keys=("g q",), about="Go to the queue", group=MOVE),
    KeyBinding(action="help", keys=("?",), about="Show this sheet", group=ANYWHERE),
)
"""The keys of the arena."""

BESIDE: Final = (
    KeyBinding(action="next", keys=("j",), about="Next row", group=MOVE),
    KeyBinding(action="previous", keys=("k",), about="Previous row", group=MOVE),
    KeyBinding(action="pane_left", keys=("[", "ArrowLeft"), about="Pane to the left", group=LOOK),
    KeyBinding(action="pane_right", keys=("]", "ArrowRight"), about="Pane to the right", group=LOOK),
    KeyBinding(action="differences", keys=("d",), about="Differences: off, by word, by line", group=LOOK),
    KeyBinding(action="open", keys=("o",), about="Open the assessment of the pane", group=LOOK),
    KeyBinding(action="help", keys=("?",), about="Show this sheet", group=ANYWHERE),
)
"""The keys of the page that compares grades."""

# In another review tool, Backspace in what looked like a text field discarded the record (argilla#5113).
NEVER_BOUND: Final = frozenset({"Backspace", "Delete", " ", "Enter"})


def badge(action: str, registry: tuple[KeyBinding, ...] = REGISTRY) -> str:
    """Return the key label on an action's button."""
    return next(key.shown for key in registry if key.action == action)


def groups(registry: tuple[KeyBinding, ...] = REGISTRY) -> dict[str, list[KeyBinding]]:
    """Return the keys by heading, in the order of the registry."""
    by_group: dict[str, list[KeyBinding]] = {}
    for key in registry:
        by_group.setdefault(key.group, []).append(key)
    return by_group


def for_script(registry: tuple[KeyBinding, ...]) -> list[dict[str, object]]:
    """Return the key bindings for a page's script."""
    return [
        {"action": key.action, "keys": key.keys, "in_fields": key.in_fields, "badge": key.shown, "about": key.about}
        for key in registry
    ]
