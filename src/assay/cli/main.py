"""The `assay` command: imports the module of a subcommand when it is called, and maps errors to
exit codes.
"""

from __future__ import annotations

import errno
import json
import os
import sys
from contextlib import suppress
from importlib import import_module
from importlib.resources import files
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any, Final

import click
from click.shell_completion import CompletionItem

import assay
from assay.cli.output import complain, tell
from assay.cli.parameters import option
from assay.domain.errors import MORE_FILES, AssayError, ConnectionLost, Interrupted, did_you_mean

if TYPE_CHECKING:
    from assay.plugin_registry import Registry

COMMANDS: Final[dict[str, tuple[str, str]]] = {
    name: (module, about)
    for name, (module, about) in json.loads(
        (files(__package__) / "commands.json").read_text("utf-8")
    ).items()
}

_READING: Final = frozenset(
    {
        "stats",
        "compare",
        "rank",
        "plan",
        "gate",
        "runs",
        "show",
        "diff",
        "trend",
        "review list",
        "candidates list",
    }
)
"""Commands that can be repeated after an error, because they only read and print at the end."""

EXIT_OUR_ERROR = 1
EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130

_OUTPUT_TROUBLES = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG)
"""Error numbers of failed writes, for example on a full disk."""


_UNREACHABLE: Final = frozenset(
    {
        errno.EACCES,
        errno.EPERM,
        errno.EROFS,
        errno.ENAMETOOLONG,
        errno.ELOOP,
        errno.ENOTDIR,
        errno.EISDIR,
    }
)
"""Error numbers of files and folders that this user may not access."""


class Verbs(click.Group):
    """Group of commands whose modules are imported only when called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*COMMANDS, *_plugin_names()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return _plugin_commands().load(cmd_name) if cmd_name in _plugin_names() else None
        module = import_module(COMMANDS[cmd_name][0])
        # `import` is a keyword of Python, so its function cannot have that name.
        command: click.Command = getattr(
            module, "import_command" if cmd_name == "import" else cmd_name.replace("-", "_")
        )
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-") and name not in _plugin_names():
            near = did_you_mean(name, self.list_commands(ctx))
            raise click.UsageError(f"there is no command {name!r}.{near}", ctx)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the name of a command without importing any command."""
        names = [
            CompletionItem(name, help=about)
            for name, about in (*_abouts(), *_plugin_abouts())
            if name.startswith(incomplete)
        ]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(_abouts())
        if plugins := _plugin_abouts():
            with formatter.section("Commands of installed packages"):
                formatter.write_dl(plugins)


def _abouts() -> list[tuple[str, str]]:
    return [(name, about) for name, (_, about) in COMMANDS.items()]


def _plugin_commands() -> Registry[click.Command]:
    from assay.app.surface_plugins import COMMAND_PLUGINS

    return COMMAND_PLUGINS


def _plugin_names() -> list[str]:
    """Return the names of packages' commands. Reads entry points, if a package lists a command."""
    return [name for name in _plugin_commands().plugin_names() if name not in COMMANDS]


def _plugin_abouts() -> list[tuple[str, str]]:
    """Return each command of a package with its origin, without importing it."""
    return [
        (offer.name, f"From the package {offer.package} {offer.version}.")
        for offer in _plugin_commands().offers()
        if offer.name not in COMMANDS and not offer.problem
    ]


def _show_version(ctx: click.Context, _option: click.Parameter, asked: bool) -> None:
    if asked and not ctx.resilient_parsing:
        click.echo(f"assay, version {assay.__version__}")
        ctx.exit()


@click.group(
    cls=Verbs,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Start with `assay demo`, or `assay init` in an empty folder.",
)
@option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version and exit.",
)
def cli() -> None:
    """Decide which candidate is better, with every AI grade vetted by a person first."""


def main(arguments: list[str] | None = None) -> None:
    # a terminal without UTF-8 shows characters that it lacks as \u2192
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    code = exit_code(sys.argv[1:] if arguments is None else arguments)
    try:
        if not sys.stdout.closed:
            sys.stdout.flush()
    except OSError as error:
        code = _unwritten(error)
    sys.exit(code)


def _unwritten(error: OSError) -> int:
    """Report that output could not be written.

    The command itself is complete, and its results are stored.
    """
    with suppress(OSError, ValueError):
        # otherwise the interpreter flushes once more at exit and prints a traceback
        sys.stdout.close()
    with suppress(OSError, ValueError):
        if not isinstance(error, BrokenPipeError):
            tell(
                f"assay: the output cannot be written: {error.strerror or error}. Stored results are safe."
            )
    return EXIT_OUR_ERROR


def _invoke(arguments: list[str]) -> Any:
    """Run a command. A command that only reads runs again if it lost its database connection."""
    try:
        # Not click's standalone mode: it would map errors to its own exit codes.
        return cli.main(arguments, prog_name="assay", standalone_mode=False, obj=tuple(arguments))
    except ConnectionLost:
        if not {arguments[0], " ".join(arguments[:2])} & _READING:
            raise
    return cli.main(arguments, prog_name="assay", standalone_mode=False, obj=tuple(arguments))


def exit_code(arguments: list[str]) -> int:
    """Run a command and return its exit code: 0 done, 1 failed, 2 bad input, 3 gate not passed, 130
    interrupted.
    """
    as_json = "--json" in arguments  # even if the arguments cannot be parsed
    try:
        code = _invoke(arguments)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        complain(_usage_message(error), as_json=as_json)
        return EXIT_BAD_INPUT
    except Interrupted as error:
        complain(str(error), as_json=as_json)
        return EXIT_INTERRUPTED
    except (KeyboardInterrupt, click.Abort):
        complain("stopped.", as_json=as_json)
        return EXIT_INTERRUPTED
    except AssayError as error:
        complain(str(error), as_json=as_json)
        return EXIT_BAD_INPUT
    except BrokenPipeError:
        # Closed, because otherwise the interpreter would print "Exception ignored" about the flush
        # at exit.
        # the program that reads the output has ended, as with `assay runs | head`
        sys.stderr.close()
        return EXIT_OUR_ERROR
    except OSError as error:
        if error.errno in _OUTPUT_TROUBLES:
            return _unwritten(error)
        if (sentence := _sentence(error)) is None:
            return _our_error(error, arguments, as_json=as_json)
        complain(sentence, as_json=as_json)
        return EXIT_BAD_INPUT
    except Exception as error:
        return _our_error(error, arguments, as_json=as_json)
    return code if isinstance(code, int) else 0


def _sentence(error: OSError) -> str | None:
    """Return a message for a system error that the operator can fix; None for any other error."""
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return f"too many files are open. {MORE_FILES}"
    if error.filename is not None and error.errno in _UNREACHABLE:
        return f"{error.filename}: cannot be used: {error.strerror}. Check its permissions and those of its folder."
    return None


def _our_error(error: Exception, arguments: list[str], *, as_json: bool) -> int:
    """Report an unexpected exception in one line. With ASSAY_DEBUG=1, show the traceback."""
    if os.environ.get("ASSAY_DEBUG"):
        raise error
    name = arguments[0] if arguments else ""
    if name not in COMMANDS and name in _plugin_names():
        origin = dict(_plugin_abouts())[name].rstrip(".").lower()
        problem = f"the command {name!r} {origin} failed: {type(error).__name__}: {error}."
        remedy = "ASSAY_DEBUG=1 shows where it happened; please report it to its authors."
        complain(f"{problem} {remedy}", as_json=as_json)
        return EXIT_OUR_ERROR
    # A damaged store can cause any exception, because its values may be ones that no code expects.
    if damage := _damage(arguments) or _bytes_as_text(error):
        remedy = "Restore it from a copy; `assay doctor --check-store` lists what is damaged."
        complain(f"the store is damaged: {damage}. {remedy}", as_json=as_json)
        return EXIT_BAD_INPUT
    remedy = "ASSAY_DEBUG=1 shows where it happened; please report it."
    complain(
        f"an internal error in Assay: {type(error).__name__}: {error}. {remedy}", as_json=as_json
    )
    return EXIT_OUR_ERROR


def _bytes_as_text(error: Exception) -> str:
    """Return a description if an error comes from text that a damaged SQLite file returns as bytes;
    otherwise an empty text.
    """
    mixed = isinstance(error, TypeError) and "'bytes'" in str(error) and "'str'" in str(error)
    return "a text is stored as bytes" if mixed else ""


def _damage(arguments: list[str]) -> str:
    from assay.cli.options import damage_of

    with suppress(Exception):  # the first error is the one to report
        return damage_of(arguments)
    return ""


def _usage_message(error: click.ClickException) -> str:
    message = error.format_message()
    context = getattr(error, "ctx", None)
    if isinstance(error, click.UsageError) and context is not None:
        return f"{message} See `{context.command_path} --help`."
    return message
