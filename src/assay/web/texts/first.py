"""The sentences of the way from an empty store to a first verdict."""

from __future__ import annotations

from typing import Final

TEXTS: Final[dict[str, str]] = {
    "first.title": "From here to a first verdict",
    "first.lead": "Nothing has run in this store yet. Three steps lead to a verdict that you have vetted yourself, all of them on "
    "these pages and without any key.",
    "first.step.begin": "Have something to compare",
    "first.step.review": "Decide what counts",
    "first.step.verdict": "Read the verdict",
    "first.done": "done",
    "first.next": "next",
    "first.later": "after that",
    "first.begin_about": "Choose one of the ways below.",
    "first.review_about": "One assessment after the other, one key each.",
    "first.review_go": "Review what waits",
    "first.verdict_about": "Who is better, by how much and how sure that is, from nothing but what you let count.",
    "first.verdict_go": "See the verdict",
    "first.demo": "See it with the demo",
    "first.demo_about": "Seven Things, three candidates, five trials each; the judge's replies are recordings. It becomes a run of "
    "this store and stays in it.",
    "first.demo_go": "Start the demo",
    "first.paste": "Paste two texts and grade them yourself",
    "first.paste_about": "Two answers or pieces of code, graded by you on the rubric. They are kept as a set file in this folder. "
    "One trial decides little: it is a first look.",
    "first.thing": "What is compared",
    "first.context": "Rules (optional)",
    "first.candidate": "Candidate {n}",
    "first.name": "Name (hidden while you grade)",
    "first.content": "Text",
    "first.grade": "Grade these",
    "first.bring": "Bring a file, or write a whole set",
    "first.bring_about": "A set as JSON or a suite as YAML or JSON. It is checked and saved in the folder suites; then you choose "
    "who judges, and see the cost before anything is asked.",
    "first.bring_file": "File",
    "first.bring_go": "Check and save",
    "first.bring_none": "Choose a file first.",
    "first.write": "Write a set here",
    "first.folder": "or choose one of the {n} files of this folder",
    "first.folder.one": "or choose the file of this folder",
    "first.terminal": "From a terminal",
    "first.terminal_demo": "The demo, in a store of its own:",
    "first.init": "A project whose suite runs at once:",
    "first.run": "Run it, five trials a task; this page notices by itself:",
    "first.import": "Answers or grades of another harness (vLLM, OpenAI batches, Inspect, promptfoo and more), read as they are:",
    "first.paste_file": "A set file you have, graded by you alone:",
    "first.copy": "Copy",
    "first.copied": "Copied",
    "first.offline": "The server does not answer. What you typed is still here; send it again when it is back.",
    "first.watching": "Waiting for the first run.",
}
