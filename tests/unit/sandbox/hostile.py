"""Functions that misbehave, for the tests of workers."""

from __future__ import annotations

import os
import sys
import time


def double(number: int) -> int:
    print("noise on stdout")
    return 2 * number


def forever() -> None:
    while True:
        pass


def asleep() -> None:
    time.sleep(60)


def hoard() -> int:
    return len([bytearray(2**24) for _ in range(1000)])


def bad_value() -> object:
    return {float("nan")}


def exits() -> None:
    os._exit(3)


def leaves() -> None:
    sys.exit(3)


def segfault() -> None:
    os.kill(os.getpid(), 11)


def deep() -> int:
    return 1 + deep()


def raises() -> None:
    raise ValueError("no such thing")


def writes() -> str:
    with open("assay-must-not-be", "w") as file:
        file.write("x")
        file.flush()
    return "written"


def sees() -> list[str]:
    return sorted(os.environ)


def length(text: str) -> int:
    return len(text)


def process() -> int:
    return os.getpid()
