"""Public types: every class of ours that a public function takes or returns has a public name."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from types import ModuleType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import assay
import assay.plugins
import assay.statistics
import assay.types
from assay.app.python_api import drafts, review
from assay.app.statistics import notebooks
from assay.app.workspace import Workspace
from assay.exchange.parsing import json_values, tables

PUBLIC_MODULES: tuple[ModuleType, ...] = (assay, review, assay.statistics, assay.types)

OPAQUE = (Workspace, assay.Project)
"""Classes that the door hands on as a whole: their methods return what `assay.types` exports."""

OWN_METHODS = {"__init__", "__call__"}


def public_objects(module: ModuleType) -> dict[str, object]:
    names = getattr(module, "__all__", None) or [
        name for name in vars(module) if not name.startswith("_")
    ]
    return {name: getattr(module, name) for name in names}


BUFFERS = {"ReadableBuffer": bytes, "WriteableBuffer": bytearray}
"""Types of the standard library that only type checkers can import."""


@cache
def names_in(module: str) -> dict[str, Any]:
    """Names of a module, those under TYPE_CHECKING included."""
    source = sys.modules[module]
    names = dict(vars(source))
    for node in ast.parse(inspect.getsource(source)).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            imports = [
                each
                for each in node.body
                if not any(name in ast.unparse(each) for name in ("pandas", "polars", "_typeshed"))
            ]
            exec(compile(ast.Module(imports, []), module, "exec"), names)
    return {**names, "pandas": _Foreign, "polars": _Foreign, **BUFFERS}


@cache
def aliases() -> dict[str, Any]:
    """Type aliases that are written as text, because they name classes that are only imported for
    type checking.
    """
    values: dict[str, Any] = {}
    for module in (drafts, notebooks, json_values, tables):
        names = names_in(module.__name__)
        for name, kind in vars(module).get("__annotations__", {}).items():
            if kind == "TypeAlias" and isinstance(names[name], str):
                values[name] = eval(names[name], names)
    values["Shape"] = Mapping[str, object]  # it contains itself
    return values


def namespace_of(module: str) -> dict[str, Any]:
    names = names_in(module)
    return {**names, **{name: value for name, value in aliases().items() if name in names}}


class _Foreign:
    """Stands in for data frame libraries, which are optional."""

    DataFrame = int


def ours(value: object) -> bool:
    return str(getattr(value, "__module__", "")).startswith("assay")


def parts_of(hint: object) -> Iterator[Any]:
    """Classes and NewTypes of ours in an annotation, however deeply nested."""
    if isinstance(hint, list | tuple):
        for part in hint:
            yield from parts_of(part)
        return
    if isinstance(hint, TypeVar):
        return
    if (inspect.isclass(hint) or hasattr(hint, "__supertype__")) and ours(hint):
        yield hint
    if get_origin(hint) is not None:
        yield from parts_of((get_origin(hint), *get_args(hint)))


def hints_of(annotated: Any) -> dict[str, object]:
    """Annotations of a function or a class, in the names of the modules of its base classes too."""
    names: dict[str, Any] = {}
    for each in reversed(getattr(annotated, "__mro__", (annotated,))):
        names |= namespace_of(each.__module__) if ours(each) else {}
    return get_type_hints(annotated, localns=names)


def functions_of(kind: type) -> Iterator[tuple[str, Callable[..., object]]]:
    """Public methods and properties of a class, those of its own base classes included."""
    for base in kind.__mro__:
        for name, member in vars(base).items() if ours(base) else ():
            function = (
                member.fget if isinstance(member, property) else getattr(member, "__func__", member)
            )
            generated = name == "__init__" and getattr(
                vars(base).get("__dataclass_params__"), "init", False
            )
            public = (not name.startswith("_") or name in OWN_METHODS) and not generated
            if public and inspect.isfunction(function) and ours(function):
                yield name, function


def reachable(
    modules: tuple[ModuleType, ...] = PUBLIC_MODULES, *, opaque: tuple[type, ...] = ()
) -> dict[Any, str]:
    """Every class that the public functions, methods, properties and fields mention, with a place
    that mentions it.
    """
    places: dict[Any, str] = dict.fromkeys(opaque, "")
    waiting: list[tuple[str, object]] = []
    for module in modules:
        for name, value in public_objects(module).items():
            if inspect.isclass(value) and value in opaque:
                continue
            if inspect.isfunction(value) and ours(value):
                waiting += [
                    (f"{module.__name__}.{name}: {argument}", hint)
                    for argument, hint in hints_of(value).items()
                ]
            elif inspect.isclass(value) and ours(value):
                waiting.append((f"{module.__name__}.{name}", value))
    while waiting:
        place, hint = waiting.pop()
        for part in parts_of(hint):
            if part in places:
                continue
            places[part] = place
            if not inspect.isclass(part):
                continue
            if dataclasses.is_dataclass(part):
                fields = {
                    field.name
                    for field in dataclasses.fields(part)
                    if not field.name.startswith("_")
                }
                waiting += [
                    (f"{part.__name__}.{name}", hint)
                    for name, hint in hints_of(part).items()
                    if name in fields
                ]
            for name, function in functions_of(part):
                waiting += [
                    (f"{part.__name__}.{name}: {argument}", each)
                    for argument, each in hints_of(function).items()
                ]
    return places


def test_every_type_of_a_public_function_has_a_public_name() -> None:
    places = reachable()
    assert len(places) > 150
    public = {id(value) for module in PUBLIC_MODULES for value in public_objects(module).values()}
    hidden = [
        f"{part.__module__}.{part.__name__} (in {place}): import it in assay/types.py, or in assay/statistics/__init__.py"
        for part, place in places.items()
        if id(part) not in public
    ]
    assert not hidden, "\n".join(sorted(hidden))


def test_every_type_that_a_plugin_meets_is_behind_the_door() -> None:
    places = reachable((assay.plugins,), opaque=OPAQUE)
    assert len(places) > 100
    public = {id(value) for value in public_objects(assay.plugins).values()}
    hidden = [
        f"{part.__module__}.{part.__name__} (in {place}): import it in assay/plugins.py"
        for part, place in places.items()
        if id(part) not in public
    ]
    assert not hidden, "\n".join(sorted(hidden))


def test_public_signatures_say_more_than_any() -> None:
    open_ended = [
        f"{module.__name__}.{name}: {argument}"
        for module in (assay, review)
        for name, value in public_objects(module).items()
        if inspect.isfunction(value) and ours(value) and name != "scorer"
        for argument, hint in hints_of(value).items()
        if hint is Any
    ]
    assert not open_ended


def test_short_forms_take_what_the_methods_of_a_project_take() -> None:
    desk = assay.types.ReviewDesk
    of_project = {
        name: value for name, value in public_objects(assay).items() if hasattr(assay.Project, name)
    }
    assert {
        "stats",
        "compare",
        "rank",
        "gate",
        "plan",
        "export",
        "run",
        "arun",
        "load_suite",
    } <= set(of_project)
    of_desk = {name: value for name, value in public_objects(review).items() if hasattr(desk, name)}
    for owner, functions in ((assay.Project, of_project), (desk, of_desk)):
        for name, function in functions.items():
            if not inspect.isfunction(function):
                continue
            mine = inspect.signature(function).parameters
            method = inspect.signature(getattr(owner, name)).parameters
            short = {key: str(each) for key, each in mine.items() if key not in {"store", "folder"}}
            assert short == {key: str(each) for key, each in method.items() if key != "self"}, name
            assert function.__doc__ is not None
            result = getattr(owner, name).__doc__
            assert " ".join(function.__doc__.split()) == " ".join(result.split()), name
