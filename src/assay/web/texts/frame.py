"""The sentences of around every page."""

from __future__ import annotations

from typing import Final

TEXTS: Final[dict[str, str]] = {
    "app.name": "Assay",
    "app.skip": "Skip to content",
    "nav.queue": "Queue",
    "nav.review": "Review",
    "nav.statistics": "Statistics",
    "nav.compare": "Side by side",
    "nav.more": "More",
    "nav.label": "Main",
    "wide.hint": "Scroll sideways for more",
    "nav.reviewers": "Reviewers",
    "theme.button": "Colours: {now}",
    "theme.auto": "as the system",
    "theme.light": "light",
    "theme.dark": "dark",
    "reviewer.button": "Reviewer",
    "reviewer.title": "Who is reviewing?",
    "reviewer.about": "Every decision is recorded under this name.",
    "reviewer.field": "Name",
    "reviewer.save": "Save",
    "offline": "The server does not answer. Try again once it is back.",
    "close": "Close",
    "cancel": "Cancel",
    # states
    "nav.start": "Start",
    "notice.ask": "Notify me",
    "notice.on": "Notices are on",
    "notice.off": "Notices are blocked by the browser",
    "notice.waits": "{suite}: reviews begin to wait, {waiting} so far.",
    "notice.ended": "{suite} is {state}: {waiting} wait for a person, {failed} failed.",
    "notice.ended.one": "{suite} is {state}: 1 waits for a person, {failed} failed.",
    # run
    "panel.note": "Note",
    "panel.note_judge": "Note to the judge (optional)",
    "panel.confirm": "Confirm",
    "remap.title": "Change keys",
    "remap.about": "Press the key you want in its field. Kept in this browser only.",
    "remap.taken": "{key} is taken: {what}.",
    "remap.never": "{key} is never bound: it throws work away too easily.",
    "remap.save": "Use these keys",
    "remap.reset": "As they were",
    "help.title": "Keys",
    "help.off": "Single keys do something",
    "help.off_about": "Turn this off when you dictate, or when something else on your screen types letters.",
    # results, spoken as well as shown
    "signin.title": "Sign in",
    "signin.about": "This server answers only those who know its token. It was printed when the server was started.",
    "signin.field": "Token",
    "signin.button": "Sign in",
    "signin.wrong": "That is not the token.",
    "signin.often": "Too many wrong tokens were given. Try again in a minute.",
}
