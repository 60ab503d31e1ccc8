"""Store functions as the text of a Python file, so that child processes and later processes can
call them.

A scorer runs in a child process and is stored with its run. A function from a notebook or script
cannot be imported there, because importing a script would run it again. Therefore cloudpickle packs
such a function by value, with the globals that it uses. Functions of installed packages are packed
by name.
"""

from __future__ import annotations

import base64
import inspect
import sys
import sysconfig
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from assay.domain.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_ARGUMENTS: Final = ("response", "reference", "options")

_FILE: Final = '''\
"""The function {name} of {origin}, packed by cloudpickle under Python {version}.

{text}
"""
import base64
import pickle

_packed = pickle.loads(base64.b64decode("{packed}"))


def {name}(response, reference, options):
    return _packed({arguments})
'''


def scorer_file(function: Callable[..., object], name: str) -> tuple[str, str]:
    """Return the name and text of a Python file with this scorer; raises `InputError` for a
    function that cannot be stored.
    """
    origin = _origin(function)
    count = _number_of_arguments(function, name)
    try:
        with _by_value(function):
            import cloudpickle

            packed = cloudpickle.dumps(function)
    except Exception as error:
        # Any object that a function refers to may fail to be packed, with any error.
        remedy = "Create what it needs, such as clients and locks, inside the function."
        raise InputError(
            f"scorer {name}", f"cannot be sent to another process: {error}.", remedy=remedy
        ) from error
    text = _FILE.format(
        name=name,
        origin=origin,
        version=".".join(map(str, sys.version_info[:2])),
        text=_source(function).replace("\\", "\\\\").replace('"""', "'''"),
        packed=base64.b64encode(packed).decode("ascii"),
        arguments=", ".join(_ARGUMENTS[:count]),
    )
    return f"{origin}.py", text


def _number_of_arguments(function: Callable[..., object], name: str) -> int:
    """Return how many of the arguments `response`, `reference` and `options` a scorer takes."""
    for count in (3, 2, 1):
        with suppress(TypeError):
            inspect.signature(function).bind(*_ARGUMENTS[:count])
            return count
    remedy = "A scorer takes (response), (response, reference) or (response, reference, options)."
    raise InputError(
        f"scorer {name}", f"has the signature {inspect.signature(function)}.", remedy=remedy
    )


def _origin(function: Callable[..., object]) -> str:
    """Return the name of the script or module that defines a function; `notebook` for a function
    without a file.
    """
    code = getattr(inspect.unwrap(function), "__code__", None)
    file = Path("" if code is None else code.co_filename)
    in_cell = file.parent.name.startswith("ipykernel_")
    return (
        file.stem
        if file.suffix == ".py" and file.stem.isidentifier() and not in_cell
        else "notebook"
    )


def _source(function: Callable[..., object]) -> str:
    try:
        return inspect.getsource(function).rstrip()
    except (OSError, TypeError):
        return "Its source code is not available."


@contextmanager
def _by_value(function: Callable[..., object]) -> Iterator[None]:
    """While active, pack functions of the same module by value, unless the module is installed."""
    import cloudpickle

    module = inspect.getmodule(function)
    file = getattr(module, "__file__", None)
    own = (
        module is not None
        and module.__name__ != "__main__"
        and file is not None
        and not _installed(file)
    )
    if not own or module is None or module.__name__ in cloudpickle.list_registry_pickle_by_value():
        yield
        return
    cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        cloudpickle.unregister_pickle_by_value(module)


def _installed(file: str) -> bool:
    places = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    return any(Path(file).is_relative_to(place) for place in places)
