"""Numbers in words: points out of 100, counts, ranges and probabilities."""

from __future__ import annotations


def number(value: float, places: int = 1) -> str:
    """Write a score of 0 to 1 as points out of 100 with a real minus sign: 84.2, −3.1."""
    text = f"{100 * value:.{places}f}"
    if float(text) == 0:
        text = text.lstrip("-")  # −0.0 would look like a loss
    return text.replace("-", "−")


def signed(value: float, places: int = 1) -> str:
    """Write a difference with its sign: +6.0, −3.1, 0.0."""
    text = number(value, places)
    return text if text.startswith("−") or float(text) == 0 else f"+{text}"


def points(value: float) -> str:
    """Write a margin that somebody chose, without unnecessary decimals: `5 points`, `2.5 points`,
    `1 point`.
    """
    text = number(value).removesuffix(".0")
    return f"{text} {'point' if text == '1' else 'points'}"


def count(n: int, noun: str) -> str:
    """Write a count with its noun: `1 task`, `12 tasks`, `no tasks`, `8 families`."""
    several = f"{noun[:-1]}ies" if noun.endswith("family") else f"{noun}s"
    return f"no {several}" if n == 0 else f"{n:,} {noun if n == 1 else several}"


def tasks_in_families(n_tasks: int, n_families: int | None) -> str:
    """Write a count of tasks: `12 tasks`, or `48 tasks in 8 families`."""
    tasks = count(n_tasks, "task")
    return tasks if n_families is None else f"{tasks} in {count(n_families, 'family')}"


def range_words(interval: tuple[float, float]) -> str:
    """Write a range of scores: `78.9 to 88.4`."""
    return f"{number(interval[0])} to {number(interval[1])}"


def difference_range(interval: tuple[float, float]) -> str:
    """Write a range of differences: `+2.0 to +10.1`.

    A t interval from few tasks may go beyond what differences of scores can be, so the words stop
    at −100 and +100. Tests and JSON keep its bounds.
    """
    low, high = (min(max(bound, -1.0), 1.0) for bound in interval)
    return f"{signed(low)} to {signed(high)}"


def probability(value: float | None) -> str:
    """Write a p-value: `0.0093`, `<.0001`, or `–` if it is None."""
    if value is None:
        return "–"
    return "<.0001" if value < 0.0001 else f"{value:.4f}"


def p_value(value: float | None) -> str:
    """Write a p-value for use in a sentence: `p = 0.0093`, or `p < .0001` if it is smaller."""
    return (
        f"p < {probability(value)[1:]}"
        if value is not None and value < 0.0001
        else f"p = {probability(value)}"
    )


def capitalise(text: str) -> str:
    """Return the text with its first letter in upper case; unlike `str.capitalize`, this leaves the
    rest unchanged.
    """
    return text[:1].upper() + text[1:]
