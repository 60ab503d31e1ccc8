"""`assay` and `python -m assay`: handle signals before anything else is imported, then run the command."""

import signal
import sys
from types import FrameType

EXIT_INTERRUPTED = 130


def main() -> None:
    """Run a command; Ctrl-C, SIGTERM and a closed terminal end it with 130, also while it starts or ends."""
    try:
        for name in ("SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)  # Windows has no SIGHUP
            if number is not None and signal.getsignal(number) is signal.SIG_DFL:  # nohup ignores SIGHUP
                signal.signal(number, _interrupt)
        from assay.cli.main import main as run  # its imports take most of the time of a start

        run()
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
