"""Runs tests or a check in the process of the graded code, and reports each result to `runner.py`
through pipes.

    python -s -B -P child.py DESCRIPTOR DESCRIPTOR (unittest | pytest | script) WORDS…

What runs here shares a process with the graded code, so it only makes deceit hard: values are
compared as plain values of Python, protected tests must be those of their source, and changed
functions of Python, unittest or pytest are reported.
"""

from __future__ import annotations

import ast
import builtins
import json
import os
import sys
import threading
import types
import unittest
import unittest.mock
from collections.abc import Callable, Iterator
from importlib.machinery import SourceFileLoader
from typing import Any

for _name in (
    "collections",
    "datetime",
    "decimal",
    "enum",
    "fractions",
    "pathlib",
    "uuid",
    "dataclasses",
    "traceback",
    "ipaddress",
):
    __import__(_name)  # so that their types are known before the graded code defines any

_exit, _write = os._exit, os.write
_LOCK = threading.RLock()


class Channel:
    """Sends messages to the runner and receives the tokens of tests."""

    def __init__(self, reports: int, tokens: int) -> None:
        self._reports = reports
        self._tokens = os.fdopen(tokens, encoding="ascii")

    def send(self, **message: Any) -> None:
        with _LOCK:
            _write(self._reports, json.dumps(message).encode() + b"\n")

    def begin(self, test: str) -> str:
        with _LOCK:
            self.send(kind="begin", test=test)
            return self._tokens.readline().strip()


# --- Values ---------------------------------------------------------------------------------------


def _all_types(top: type) -> Iterator[type]:
    pending = [top]
    while pending:
        each = pending.pop()
        yield each
        pending += type.__subclasses__(each)


_PROTECTED_CODES: set[types.CodeType] = set()
_KNOWN: dict[int, type] = {id(each): each for each in _all_types(object)}
_SCALARS = (str, bytes, bytearray, int, float, complex)
_COPIES: dict[type, Callable[[Any], Any]] = {
    str: str.__str__,
    bytes: lambda value: bytes.__add__(value, b""),
    bytearray: lambda value: bytearray(bytearray.__iter__(value)),
    int: int.__pos__,
    float: float.__pos__,
    complex: complex.__pos__,
}
_ALTERED: dict[type, Callable[[Any], Any]] = {
    str: lambda value: value + "\x00.",
    bytes: lambda value: value + b"\x00.",
    int: lambda value: value + 7919,
    float: lambda value: value + 7919.5 if value == value else 1.0,
    bool: lambda value: not value,
    list: lambda value: [*value, object()],
    tuple: lambda value: (*value, object()),
    dict: lambda value: {**value, object(): 0},
    set: lambda value: {*value, object()},
    type(None): lambda value: object(),
}


def plain(value: Any, depth: int = 0) -> Any:
    """Return a value whose own class cannot decide a comparison: subclasses of Python's types
    become these types.

    Types that existed before the graded code was imported, such as those of the standard library,
    stay.
    """
    kind = type(value)
    if kind in (bool, type(None)) or kind in _SCALARS or depth > 50:
        return value
    known = id(kind) in _KNOWN
    if kind in (list, tuple, set, frozenset) or (
        not known and issubclass(kind, (list, tuple, set, frozenset))
    ):
        base = next(each for each in (list, tuple, set, frozenset) if issubclass(kind, each))
        items = [plain(each, depth + 1) for each in base.__iter__(value)]
        if kind is base and all(map(_is, items, base.__iter__(value))):
            return value
        return base(items)
    if kind is dict or (not known and issubclass(kind, dict)):
        pairs = [(plain(key, depth + 1), plain(each, depth + 1)) for key, each in dict.items(value)]
        if kind is dict and all(
            a is c and b is d for (a, b), (c, d) in zip(pairs, dict.items(value))
        ):
            return value
        return dict(pairs)
    if not known:
        for scalar in _SCALARS:
            if issubclass(kind, scalar):
                return _COPIES[scalar](value)
    return value


def _is(a: Any, b: Any) -> bool:
    return a is b


def _is_graded(kind: type) -> bool:
    """True if the graded code may have written how a class compares: not C, an installed package or
    a protected file.
    """
    equal = getattr(kind, "__eq__", None)
    if id(kind) in _KNOWN or isinstance(equal, types.WrapperDescriptorType):
        return False
    code = getattr(equal, "__code__", None)
    path = os.path.realpath(code.co_filename) if code is not None else ""
    return (
        not path.startswith((sys.prefix + os.sep, sys.base_prefix + os.sep))
        and code not in _PROTECTED_CODES
    )


def equals_anything(first: Any, other: Any) -> bool:
    """True if an object of the graded code's own class equals a plain value, and also a different
    one.
    """
    if type(other) not in _ALTERED or not _is_graded(type(first)):
        return False
    try:
        return bool(first == _ALTERED[type(other)](other)) or bool(
            _ALTERED[type(other)](other) == first
        )
    except Exception:
        return False


def compare(sign: str, first: Any, other: Any) -> Any:
    """Compare two values as `==`, `!=` or another operator does, by their plain values."""
    first, other = plain(first), plain(other)
    if sign in ("==", "!="):
        if equals_anything(first, other) or equals_anything(other, first):
            raise AssertionError(f"an object of {type(first)!r} equals any value")
        return first == other if sign == "==" else first != other
    if sign == "in":
        return first in other
    if sign == "not in":
        return first not in other
    for value in (first, other):
        if _is_graded(type(value)) and _contradicts(sign, first, other):
            raise AssertionError(f"an object of {type(value)!r} is both less and greater")
    return {
        "<": lambda: first < other,
        "<=": lambda: first <= other,
        ">": lambda: first > other,
        ">=": lambda: first >= other,
    }[sign]()


def _contradicts(sign: str, first: Any, other: Any) -> bool:
    try:
        return (bool(first < other) and bool(first >= other)) or (
            bool(first > other) and bool(first <= other)
        )
    except Exception:
        return False


_SIGNS = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.In: "in",
    ast.NotIn: "not in",
}
_COMPARE, _PLAIN = "__assay_compare__", "__assay_plain__"


class _Comparisons(ast.NodeTransformer):
    """Replaces the comparisons in a protected file by calls of `compare`."""

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        if any(type(sign) not in _SIGNS for sign in node.ops):
            return node
        if len(node.ops) == 1:
            words: list[ast.expr] = [
                ast.Constant(_SIGNS[type(node.ops[0])]),
                node.left,
                node.comparators[0],
            ]
            return ast.copy_location(ast.Call(ast.Name(_COMPARE, ast.Load()), words, []), node)
        node.left = self._plain(node.left)
        node.comparators = [self._plain(each) for each in node.comparators]
        return node

    @staticmethod
    def _plain(node: ast.expr) -> ast.expr:
        return ast.copy_location(ast.Call(ast.Name(_PLAIN, ast.Load()), [node], []), node)


def transformed(tree: ast.Module) -> ast.Module:
    return ast.fix_missing_locations(_Comparisons().visit(tree))  # type: ignore[no-any-return]


# --- Protected sources ----------------------------------------------------------------------------


class Sources:
    """Loads protected files from their source, never from a cache, with guarded comparisons."""

    def __init__(self, trusted: list[str], root: str) -> None:
        self.root = root
        self._paths = {os.path.join(root, path) for path in trusted if path.endswith(".py")}
        self.codes: dict[str, types.CodeType] = {}

    def is_protected(self, path: str) -> bool:
        return os.path.realpath(path) in self._paths

    def compiled(self, path: str) -> types.CodeType:
        path = os.path.realpath(path)
        if path not in self.codes:
            with open(path, "rb") as file:
                tree = ast.parse(file.read(), path)
            self.codes[path] = compile(transformed(tree), path, "exec", dont_inherit=True)
            pending = [self.codes[path]]
            while pending:
                code = pending.pop()
                _PROTECTED_CODES.add(code)
                pending += [each for each in code.co_consts if isinstance(each, types.CodeType)]
        return self.codes[path]

    def install(self) -> None:
        original = SourceFileLoader.get_code
        sources = self

        def get_code(self: SourceFileLoader, fullname: str) -> types.CodeType | None:
            path = self.get_filename(fullname)
            return (
                sources.compiled(path) if sources.is_protected(path) else original(self, fullname)
            )

        setattr(SourceFileLoader, "get_code", get_code)

    def method(self, path: str, kind: str, name: str) -> types.CodeType | None:
        """Return the code of a method in a protected file; None if the source has no such method,
        or decorates it.
        """
        owner = next(
            (
                each
                for each in self.compiled(path).co_consts
                if isinstance(each, types.CodeType) and each.co_name == kind
            ),
            None,
        )
        with open(path, "rb") as file:
            tree = ast.parse(file.read())
        for node in tree.body:
            for inner in node.body if isinstance(node, ast.ClassDef) and node.name == kind else ():
                if getattr(inner, "name", "") == name and getattr(inner, "decorator_list", None):
                    return None
        return (
            next(
                (
                    each
                    for each in owner.co_consts
                    if isinstance(each, types.CodeType) and each.co_name == name
                ),
                None,
            )
            if owner
            else None
        )


# --- What must not change -------------------------------------------------------------------------


class WatchedFunctions:
    """Functions that the graded code must leave as they are: those of Python itself, unittest,
    pytest and this module.
    """

    def __init__(self, *modules: types.ModuleType) -> None:
        self._kept: list[tuple[str, dict[str, Any], str, Any, Any]] = []
        for module in modules:
            self._keep(module.__name__, vars(module))
            for name, value in list(vars(module).items()):
                if (
                    isinstance(value, type)
                    and value.__module__ == module.__name__
                    and module is not builtins
                ):
                    self._keep(f"{module.__name__}.{name}", value.__dict__)  # type: ignore[arg-type]

    def _keep(self, place: str, names: dict[str, Any]) -> None:
        for name, value in list(names.items()):
            if isinstance(value, (staticmethod, classmethod)):
                value_code = getattr(value.__func__, "__code__", None)
            else:
                value_code = getattr(value, "__code__", None)
            if callable(value) or value_code is not None:
                self._kept.append((f"{place}.{name}", names, name, value, value_code))

    def changed(self) -> list[str]:
        """Return the names of the functions that differ from what they were."""
        names = []
        for shown, place, name, value, code in self._kept:
            now = place.get(name)
            inner = now.__func__ if isinstance(now, (staticmethod, classmethod)) else now
            if now is not value or getattr(inner, "__code__", None) is not code:
                names.append(shown)
        return names


# --- unittest -------------------------------------------------------------------------------------

_AS_THEY_ARE = (
    *(
        "assertIs",
        "assertIsNot",
        "assertIsNone",
        "assertIsNotNone",
        "assertIsInstance",
        "assertNotIsInstance",
        "assertRaises",
    ),
    *(
        "assertRaisesRegex",
        "assertWarns",
        "assertWarnsRegex",
        "assertLogs",
        "assertNoLogs",
        "assertTrue",
        "assertFalse",
    ),
)


def guard_assertions() -> None:
    """Let the assertions of `TestCase` see plain values only."""
    for name, function in list(vars(unittest.TestCase).items()):
        if (
            name.startswith("assert")
            and name not in _AS_THEY_ARE
            and isinstance(function, types.FunctionType)
        ):
            setattr(unittest.TestCase, name, _guarded(name, function))


def _guarded(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def assertion(self: unittest.TestCase, *given: Any, **named: Any) -> Any:
        values = [plain(each) for each in given]
        if len(values) > 1:
            first, other = values[:2]
            if equals_anything(first, other) or equals_anything(other, first):
                self.fail(f"an object of {type(first)!r} or {type(other)!r} equals any value")
            if name in ("assertGreater", "assertGreaterEqual", "assertLess", "assertLessEqual"):
                compare("<", first, other)
            if name in ("assertAlmostEqual", "assertNotAlmostEqual"):
                values[:2] = [
                    _number(each, against) for each, against in ((first, other), (other, first))
                ]
        return function(self, *values, **{key: plain(each) for key, each in named.items()})

    assertion.__name__ = assertion.__qualname__ = name
    return assertion


def _number(value: Any, other: Any) -> Any:
    foreign = (
        id(type(value)) not in _KNOWN
        and type(other) in (int, float)
        and hasattr(type(value), "__float__")
    )
    return float(value) if foreign else value


class TestGuard:
    """Everything that the reports of one run need."""

    def __init__(self, channel: Channel, sources: Sources) -> None:
        self.channel = channel
        self.sources = sources
        self.watch: WatchedFunctions | None = None

    def check(self) -> bool:
        """Report changed functions; True if there are none."""
        names = self.watch.changed() if self.watch is not None else []
        if (
            sys.gettrace() is not None
            and "coverage" not in sys.modules
            and "pydevd" not in sys.modules
        ):
            names.append("sys.settrace")
        for name in names[:3]:
            self.channel.send(kind="changed", test=name)
        return not names

    def has_its_source(self, kind: type, method: str) -> bool:
        """False if a protected file has another test under this name than the one that is about to
        run.
        """
        module = sys.modules.get(kind.__module__)
        path = getattr(module, "__file__", None)
        function = kind.__dict__.get(method)
        if (
            path is None
            or not self.sources.is_protected(path)
            or not isinstance(function, types.FunctionType)
        ):
            return True
        code = self.sources.method(path, kind.__name__, method)
        return code is None or function.__code__ == code


def result_class(guard: TestGuard) -> type:
    class GuardedResult(unittest.TextTestResult):
        """Reports the begin and the end of each test."""

        _outcome, _token = "", ""

        def startTest(self, test: unittest.TestCase) -> None:
            super().startTest(test)
            self._outcome = "passed"
            guard.check()
            if not guard.has_its_source(type(test), test._testMethodName):
                guard.channel.send(kind="changed", test=_id(test))
            self._token = guard.channel.begin(_id(test))

        def addError(self, test: Any, err: Any) -> None:
            self._outcome = "failed"
            super().addError(test, err)

        def addFailure(self, test: Any, err: Any) -> None:
            self._outcome = "failed"
            super().addFailure(test, err)

        def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
            if err is not None:
                self._outcome = "failed"
            super().addSubTest(test, subtest, err)

        def addUnexpectedSuccess(self, test: Any) -> None:
            self._outcome = "failed"
            super().addUnexpectedSuccess(test)

        def addExpectedFailure(self, test: Any, err: Any) -> None:
            self._outcome = "skipped"
            super().addExpectedFailure(test, err)

        def addSkip(self, test: Any, reason: str) -> None:
            if self._outcome == "passed":
                self._outcome = "skipped"
            super().addSkip(test, reason)

        def stopTest(self, test: unittest.TestCase) -> None:
            super().stopTest(test)
            guard.check()
            guard.channel.send(kind=self._outcome, test=_id(test), token=self._token)

    return GuardedResult


def _id(test: unittest.TestCase) -> str:
    kind = type(test)
    return f"{kind.__module__}.{kind.__qualname__}.{test._testMethodName}"


def run_unittest(words: list[str], guard: TestGuard) -> int:
    guard_assertions()
    results = result_class(guard)

    class GuardedRunner(unittest.TextTestRunner):
        resultclass = results

    guard.watch = WatchedFunctions(
        builtins,
        unittest.case,
        unittest.suite,
        unittest.loader,
        unittest.result,
        unittest.runner,
        sys.modules["unittest.main"],
        sys.modules[__name__],
    )
    program = unittest.TestProgram(
        module=None, argv=["python -m unittest", *words], testRunner=GuardedRunner, exit=False
    )
    return 0 if program.result.wasSuccessful() else 1


# --- pytest ---------------------------------------------------------------------------------------


def run_pytest(words: list[str], guard: TestGuard) -> int:
    try:
        import _pytest.assertion.rewrite as rewrite
        import _pytest.python
        import _pytest.runner
        import _pytest.unittest
        import pytest
    except ImportError as error:
        print(f"{sys.executable}: {error}", file=sys.stderr)
        return 1
    guard_assertions()
    original = rewrite.rewrite_asserts

    def rewrite_asserts(
        tree: ast.Module, source: bytes, module_path: Any = None, config: Any = None
    ) -> None:
        if module_path is not None and guard.sources.is_protected(str(module_path)):
            transformed(tree)
        original(tree, source, module_path, config)

    setattr(rewrite, "rewrite_asserts", rewrite_asserts)
    executed: dict[str, Any] = {}
    execute = rewrite.AssertionRewritingHook.exec_module

    def exec_module(self: Any, module: types.ModuleType) -> None:
        executed[os.path.realpath(str(module.__file__))] = module
        execute(self, module)

    setattr(rewrite.AssertionRewritingHook, "exec_module", exec_module)

    class Plugin:
        """Reports the begin and the end of each test."""

        def __init__(self) -> None:
            self._tokens: dict[str, str] = {}
            self._outcomes: dict[str, str] = {}
            self._codes: dict[str, Any] = {}
            self._base = os.getcwd()

        @pytest.hookimpl(tryfirst=True)
        def pytest_collection(self, session: Any) -> None:
            self._base = str(getattr(session.config, "rootpath", self._base))
            guard.watch = WatchedFunctions(
                builtins,
                unittest.case,
                _pytest.runner,
                _pytest.python,
                _pytest.unittest,
                rewrite,
                sys.modules[__name__],
            )

        def pytest_collection_finish(self, session: Any) -> None:
            self._codes = {item.nodeid: _code_of(item) for item in session.items}

        @pytest.hookimpl(tryfirst=True)
        def pytest_runtest_setup(self, item: Any) -> None:
            path = os.path.realpath(str(item.path))
            module = getattr(item, "module", None)
            is_replaced = (
                guard.sources.is_protected(path)
                and module is not None
                and executed.get(path) is not module
            )
            if is_replaced or self._codes.get(item.nodeid) is not _code_of(item):
                guard.channel.send(kind="changed", test=item.nodeid)

        def pytest_runtest_logstart(self, nodeid: str) -> None:
            guard.check()
            self._outcomes[nodeid] = "passed"
            self._tokens[nodeid] = guard.channel.begin(
                _node(nodeid, self._base, guard.sources.root)
            )

        def pytest_runtest_logreport(self, report: Any) -> None:
            if report.failed:
                self._outcomes[report.nodeid] = "failed"
            elif report.skipped and self._outcomes[report.nodeid] == "passed":
                self._outcomes[report.nodeid] = "skipped"

        def pytest_runtest_logfinish(self, nodeid: str) -> None:
            guard.check()
            guard.channel.send(
                kind=self._outcomes.pop(nodeid),
                test=_node(nodeid, self._base, guard.sources.root),
                token=self._tokens.pop(nodeid),
            )

    guard.watch = WatchedFunctions(builtins, unittest.case, sys.modules[__name__])
    return int(
        pytest.main(["-p", "no:cacheprovider", "-p", "no:assay", *words], plugins=[Plugin()])
    )


def _code_of(item: Any) -> Any:
    """The code of a test; None if pytest has another kind of test here."""
    owner = getattr(item, "cls", None) or getattr(item, "module", None)
    return getattr(
        getattr(owner, getattr(item, "originalname", None) or item.name, None), "__code__", None
    )


def _node(nodeid: str, base: str, root: str) -> str:
    """The name of a test as the runner reads it in the source: `FILE:.Class.method`, without
    parameters.
    """
    path, _, name = nodeid.partition("::")
    return f"{os.path.relpath(os.path.realpath(os.path.join(base, path)), root)}:.{name.partition('[')[0].replace('::', '.')}"


# --- Scripts --------------------------------------------------------------------------------------


def run_script(words: list[str], guard: TestGuard) -> int:
    """Run a protected script; only its own code may end the process with success."""
    path = words[0]
    with open(path, "rb") as file:
        is_tests = b"unittest.main(" in file.read()
    sys.argv = list(words)
    module = types.ModuleType("__main__")
    module.__dict__.update(__file__=path, __builtins__=builtins)
    if is_tests:
        guard_assertions()
        results = result_class(guard)
        original = unittest.TextTestRunner.__init__

        def start(self: unittest.TextTestRunner, *given: Any, **named: Any) -> None:
            original(self, *given, **{**named, "resultclass": results})

        unittest.TextTestRunner.__init__ = start  # type: ignore[method-assign]
    guard.watch = WatchedFunctions(
        builtins,
        unittest.case,
        unittest.suite,
        unittest.result,
        unittest.runner,
        sys.modules[__name__],
    )
    own = sys.modules[__name__]
    sys.modules["__main__"] = module
    sys.modules["assay_child"] = own
    code = guard.sources.compiled(path)
    try:
        exec(code, module.__dict__)
    except SystemExit as ended:
        trace = ended.__traceback__.tb_next if ended.__traceback__ is not None else None
        while trace is not None:
            inner = trace.tb_frame.f_globals
            if inner is not module.__dict__ and inner.get("__name__") not in (
                "unittest.main",
                "argparse",
            ):
                print(
                    f"Assay: {trace.tb_frame.f_code.co_filename} ended the process.",
                    file=sys.stderr,
                )
                return 1
            trace = trace.tb_next
        if ended.code is None or isinstance(ended.code, int):
            return int(ended.code or 0)
        print(ended.code, file=sys.stderr)
        return 1
    return 0


def _path_of(kind: str, words: list[str]) -> str:
    return os.path.dirname(os.path.abspath(words[0])) if kind == "script" else os.getcwd()


def main() -> None:
    channel = Channel(int(sys.argv[1]), int(sys.argv[2]))
    os.set_inheritable(int(sys.argv[1]), False)
    os.set_inheritable(int(sys.argv[2]), False)
    kind, words = sys.argv[3], sys.argv[4:]
    with open(
        os.path.join(os.path.dirname(os.path.abspath(__file__)), "settings.json"), encoding="utf-8"
    ) as file:
        told = json.load(file)
    guard = TestGuard(channel, Sources(told["trusted"], os.path.realpath(told["root"])))
    guard.sources.install()
    setattr(builtins, _COMPARE, compare)
    setattr(builtins, _PLAIN, plain)
    sys.path.insert(0, _path_of(kind, words))
    sys.argv = ["python -m unittest"]
    code = 1
    try:
        code = {"unittest": run_unittest, "pytest": run_pytest, "script": run_script}[kind](
            words, guard
        )
    except SystemExit as ended:
        code = 1
        if ended.code is not None and not isinstance(ended.code, int):
            print(ended.code, file=sys.stderr)
    except BaseException:
        import traceback

        traceback.print_exc()
    guard.check()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            code = code or 1
    channel.send(kind="end", code=code)
    _exit(code)


if __name__ == "__main__":
    main()
