"""The process behind a Python candidate: imports the function once and forks a worker for each
concurrent call.

It runs as a script with only the standard library, so that no module of Assay is loaded in the
function's process. The parent sends numbers over a socket: a worker to fork, with its two pipes, or
a worker to end. The answers are the numbers of workers that have ended. If the import started
threads, which a fork would not copy, each worker imports the function separately.
"""

from __future__ import annotations

import asyncio
import base64
import importlib
import importlib.util
import inspect
import json
import os
import pickle
import select
import signal
import socket
import struct
import sys
import threading
import traceback
from typing import Any, TextIO

OFFERED = ("prompt", "task", "messages", "system_prompt", "parameters", "seed", "trial", "options")
"""Parameter names that a function may use; its first required parameter with any other name
receives the prompt.
"""

ORDER = struct.Struct(">cI")
ENDED = struct.Struct(">Ii")
LENGTH = struct.Struct(">I")
FORK, END = b"f", b"e"


class TaskFields(dict):  # type: ignore[type-arg] # it has no type arguments at run time in any caller's code
    """The task as a function's argument; `task["prompt"]` and `task.prompt` are equivalent."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the task has no {name!r}; it has {', '.join(self)}") from None


def main() -> None:
    control = socket.socket(fileno=int(sys.argv[1]))
    job = receive(control)
    sys.path[:] = job["path"]
    os.chdir(job["folder"])
    target, trouble = None, None
    if job["preload"]:
        target, trouble = _loaded(job)
    sys.stdout.flush()  # otherwise each worker would print the output of the import again
    send(control, {"trouble": trouble, "threads": _threads()})
    if trouble is None:
        _host(control, job, target)


def send(pipe: socket.socket, message: Any) -> None:
    """Send the length of a document, then the document."""
    body = json.dumps(message).encode()
    pipe.sendall(LENGTH.pack(len(body)) + body)


def receive(pipe: socket.socket) -> Any:
    """Return the next document; raises `EOFError` if the other end is closed."""
    (length,) = LENGTH.unpack(_exactly(pipe, LENGTH.size))
    return json.loads(_exactly(pipe, length))


def _exactly(pipe: socket.socket, length: int) -> bytes:
    blocks = bytearray()
    while len(blocks) < length:
        block = pipe.recv(min(length - len(blocks), 1 << 20))
        if not block:
            raise EOFError
        blocks += block
    return bytes(blocks)


def _host(control: socket.socket, job: Any, target: Any) -> None:
    """Fork and end workers until the parent has ended, then end the remaining workers."""
    woken, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.signal(signal.SIGCHLD, _nothing)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    # the parent handles Ctrl-C and ends the run cleanly
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    workers: dict[int, int] = {}
    try:
        while True:
            sources: list[Any] = [control, woken]
            ready, _, _ = select.select(sources, [], [])
            if woken in ready:
                os.read(woken, 4096)
            _reap(control, workers)
            if control not in ready:
                continue
            order, descriptors, _, _ = socket.recv_fds(control, ORDER.size, 2)
            if len(order) < ORDER.size:
                return
            what, number = ORDER.unpack(order)
            if what == FORK:
                workers[_forked(control, (woken, waker), descriptors, job, target)] = number
            for pid in [pid for pid, each in workers.items() if what == END and each == number]:
                _kill(pid)
    except (EOFError, OSError):
        return
    finally:
        for pid in workers:
            _kill(pid)


def _reap(control: socket.socket, workers: dict[int, int]) -> None:
    while workers:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        if pid in workers:
            _kill_group(pid)  # processes that the worker started may still be running
            control.sendall(ENDED.pack(workers.pop(pid), os.waitstatus_to_exitcode(status)))


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    _kill_group(pid)


def _kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def _forked(
    control: socket.socket, own: tuple[int, int], descriptors: list[int], job: Any, target: Any
) -> int:
    pid = os.fork()
    if pid:
        for descriptor in descriptors:
            os.close(descriptor)
        return pid
    code = 1
    try:
        os.setsid()  # a separate process group, so that processes it starts end with it
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        control.close()
        for descriptor in own:
            os.close(descriptor)
        pipe, printed = socket.socket(fileno=descriptors[0]), descriptors[1]
        os.dup2(printed, 1)
        os.dup2(printed, 2)
        os.close(printed)
        sys.stdout, sys.stderr = _text_stream(1), _text_stream(2)
        _reseed()
        _serve(pipe, job, target)
        code = 0
    except (EOFError, BrokenPipeError, ConnectionResetError):
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _text_stream(descriptor: int) -> TextIO:
    return open(descriptor, "w", encoding="utf-8", errors="replace", buffering=1, closefd=False)


def _serve(pipe: socket.socket, job: Any, target: Any) -> None:
    """Answer calls one after another until the parent closes the pipe."""
    with asyncio.Runner() as runner:
        trouble = None
        if target is None:
            target, trouble = _loaded(job)
        function: Any = None
        arguments: list[tuple[str, str]] = []
        if trouble is None:
            try:
                function = _set_up(target, job["options"], runner)
                arguments = _arguments(function)
            except BaseException as error:
                trouble = _told(error)
        send(pipe, {"trouble": trouble})
        if trouble is not None:
            return
        while True:
            given = _offered(receive(pipe), job["options"])
            answer = _answered(function, arguments, given, runner)
            sys.stdout.flush()
            sys.stderr.flush()
            send(pipe, answer)


def _answered(
    function: Any, arguments: list[tuple[str, str]], given: dict[str, Any], runner: asyncio.Runner
) -> dict[str, Any]:
    try:
        value = _called(function, arguments, given)
        if inspect.isawaitable(value):
            value = runner.run(_awaited(value))
        return _answer(value)
    except BaseException as error:  # also SystemExit: a function that calls exit() has failed, but the worker continues
        return {"failed": "exception", **_told(error)}


def called_here(function: Any, given: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """Call a function in this thread and return its answer, for callables that cannot be
    pickled.
    """
    with asyncio.Runner() as runner:
        try:
            arguments = _arguments(function)
        except TypeError as error:
            return {"failed": "cannot_start", **_told(error)}
        return _answered(function, arguments, _offered(given, options), runner)


async def awaited_here(
    function: Any, given: dict[str, Any], options: dict[str, Any]
) -> dict[str, Any]:
    """Call a coroutine function on the running event loop and return its answer."""
    try:
        return _answer(await _called(function, _arguments(function), _offered(given, options)))
    except Exception as error:
        return {"failed": "exception", **_told(error)}


def _offered(given: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    return {**given, "task": TaskFields(given["task"]), "options": options}


def _called(function: Any, arguments: list[tuple[str, str]], given: dict[str, Any]) -> Any:
    by_place = [given[name] for parameter, name in arguments if not parameter]
    return function(
        *by_place, **{parameter: given[name] for parameter, name in arguments if parameter}
    )


async def _awaited(value: Any) -> Any:
    return await value


def _answer(value: Any) -> dict[str, Any]:
    if isinstance(value, str | int | float):
        return {"text": value if isinstance(value, str) else str(value)}
    if isinstance(value, dict) and isinstance(value.get("text"), str):
        usage = {
            name: value[name]
            for name in ("input_tokens", "output_tokens", "cost_usd")
            if name in value
        }
        json.dumps(usage)
        return {"text": value["text"], **usage}
    if value is None:
        return {
            "failed": "no_answer",
            "detail": "The function returned None; return the answer as text.",
            "log": "",
        }
    shown = f"a {type(value).__name__}"
    if isinstance(value, dict):
        shown = f"a dictionary without a text under 'text' (it has {', '.join(map(str, list(value)[:8])) or 'no keys'})"
    return {
        "failed": "bad_answer",
        "detail": f"The function returned {shown}; return the answer as text.",
        "log": "",
    }


def _arguments(function: Any) -> list[tuple[str, str]]:
    """Return (parameter name or empty if positional-only, name of its value) for each parameter of
    a function.
    """
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # some functions written in C
        return [("", "prompt")]
    arguments: list[tuple[str, str]] = []
    for parameter in parameters:
        keyword = "" if parameter.kind is parameter.POSITIONAL_ONLY else parameter.name
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if parameter.name in OFFERED and keyword:
            arguments.append((keyword, parameter.name))
        elif parameter.default is parameter.empty:
            if any(name == "prompt" for _, name in arguments):
                offered = ", ".join(OFFERED)
                raise TypeError(
                    f"the function requires {parameter.name!r}, which Assay does not offer; it offers {offered}"
                )
            arguments.append((keyword, "prompt"))
    return arguments


def _set_up(target: Any, options: dict[str, Any], runner: asyncio.Runner) -> Any:
    """Return the function to call.

    A class is instantiated once with the options; its optional `setup` is then called.
    """
    if not inspect.isclass(target):
        return target
    made = target(**options)
    setup = getattr(made, "setup", None)
    if callable(setup):
        value = setup()
        if inspect.isawaitable(value):
            runner.run(_awaited(value))
    if not callable(made):
        raise TypeError(
            f"the class {target.__name__} has no method __call__, which must answer a prompt"
        )
    return made


def _loaded(job: Any) -> tuple[Any, Any]:
    try:
        target = _load(job)
        if not callable(target):
            raise TypeError(
                f"{job['target']} is a {type(target).__name__}, not a function or a class"
            )
        return target, None
    except BaseException as error:  # importing a module may raise anything
        return None, _told(error)


def _load(job: Any) -> Any:
    if job["pickled"]:
        return pickle.loads(base64.b64decode(job["pickled"]))
    place, _, name = job["target"].rpartition(":")
    if not place.endswith(".py"):
        return _attribute(importlib.import_module(place), name)
    file = os.path.abspath(place)
    sys.path.insert(0, os.path.dirname(file))
    module_name = os.path.basename(file)[: -len(".py")]
    spec = importlib.util.spec_from_file_location(module_name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module  # dataclasses and pickle look up a class by its module
    spec.loader.exec_module(module)
    return _attribute(module, name)


def _attribute(value: Any, name: str) -> Any:
    for part in name.split("."):
        value = getattr(value, part)
    return value


def _told(error: BaseException) -> dict[str, str]:
    """Return an exception's last line with its location, and the traceback without this file's
    frames.
    """
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename != __file__
    ]
    first, frozen = traceback.format_exception_only(error)[-1].strip(), "<frozen importlib"
    own = [frame for frame in frames if not frame.filename.startswith(frozen)]
    place = f" ({os.path.basename(own[-1].filename)}:{own[-1].lineno})" if own else ""
    lines = [
        "Traceback (most recent call last):\n",
        *traceback.format_list(own),
        *traceback.format_exception_only(error),
    ]
    return {"detail": f"{first[:400]}{place}", "log": "".join(lines)}


def _threads() -> int:
    """Return the number of threads, including those that libraries start outside of Python."""
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return threading.active_count()


def _reseed() -> None:
    """Give each worker different random numbers.

    Python reseeds `random` after a fork, but these libraries do not.
    """
    for name in ("numpy.random", "torch"):
        if name in sys.modules:
            sys.modules[name].seed()


def _nothing(*_: object) -> None:
    """Do nothing on SIGCHLD, because the wake-up pipe already notifies the loop."""


if __name__ == "__main__":
    main()
