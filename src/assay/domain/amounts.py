"""Amounts of money and durations in words, in the one form that every page, command, report and
message uses.
"""

from __future__ import annotations


def money(usd: float | None) -> str:
    """Write an amount in dollars: `$12.30`, `$0.0042`, `$1,204`, or `unknown` if it is None."""
    if usd is None:
        return "unknown"
    if usd == 0:
        return "$0"
    if usd < 0.0001:
        return "less than $0.0001"
    if usd < 0.1:
        whole, decimals = f"{usd:.4f}".split(".")
        return f"${whole}.{decimals[:2]}{decimals[2:].rstrip('0')}"
    return f"${usd:,.2f}" if usd < 1000 else f"${usd:,.0f}"


def duration(seconds: float) -> str:
    """Write a duration: `0.8 s`, `42 s`, `24 min 35 s` or `3 h 5 min`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
