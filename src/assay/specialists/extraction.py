"""Extract the main text of a web page.

It runs in a child process, because a page may be made to take hours or all memory.
"""

from __future__ import annotations


def main_text(page: str) -> str:
    """Return the main text of a page, empty if there is none; `page` has one character for each
    byte (Latin-1).
    """
    from trafilatura import extract

    return extract(page.encode("latin-1"), include_comments=False) or ""


def warm_up() -> None:
    """Import the extractor, which takes a second, before the time limit of the first page
    starts.
    """
    import trafilatura  # noqa: F401
