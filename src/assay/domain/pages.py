"""Records for rendering web pages: requests and screenshots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from assay.domain.suite import Image


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A browser window: its name, and its size in CSS pixels."""

    name: str
    width: int
    height: int


DESKTOP = View(name="desktop", width=1280, height=800)
NARROW = View(name="narrow", width=390, height=844)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRequest:
    """A page to render in each view; `time_limit_s` limits the wall time per view."""

    html: str
    views: tuple[View, ...] = (DESKTOP, NARROW)
    time_limit_s: float = 20.0


@dataclass(frozen=True, slots=True)
class Shots:
    """Screenshots of the page, one for each view."""

    images: tuple[Image, ...]


@dataclass(frozen=True, slots=True)
class Unseen:
    """Failure to render a page; `detail` is a sentence with the reason."""

    detail: str


PageAnswer: TypeAlias = Shots | Unseen
