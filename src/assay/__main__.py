"""Entry point of `assay` and `python -m assay`. Signals are handled before any other import."""

import signal
import sys
from types import FrameType

EXIT_INTERRUPTED = 130


def main() -> None:
    """Run a command.

    Ctrl-C, SIGTERM or closing the terminal ends it with exit code 130, even during start or exit.
    """
    try:
        for name in ("SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)  # Windows has no SIGHUP
            # nohup ignores SIGHUP
            if number is not None and signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, _interrupt)
        from assay.cli.main import main as run  # these imports take most of the start-up time

        run()
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
