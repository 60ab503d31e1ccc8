"""A real PostgreSQL server for tests: found or installed, started once, a database for each test
that asks.

Runs on loopback with a free port in a temporary folder, as an unprivileged user where we are root
(PostgreSQL refuses root). Under pytest-xdist the first worker starts it and the last one to let go
stops it.
"""

from __future__ import annotations

import fcntl
import json
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_ROOMS = ("/usr/lib/postgresql/*/bin", "/usr/local/pgsql/bin", "/opt/homebrew/opt/postgresql*/bin")


class NoPostgres(Exception):
    """Why there is no server to test with."""


@contextmanager
def postgres_server(shared: Path) -> Iterator[str]:
    """The address of a server without a database name, e.g.

    `postgresql://postgres@127.0.0.1:54321`.

    Args:
        shared: a folder that all workers of this test session see.

    Raises:
        NoPostgres: none is there and none can be installed.
    """
    shared.mkdir(parents=True, exist_ok=True)
    state = shared / "postgres.json"
    with _alone(shared):
        if state.exists():
            document = json.loads(state.read_text())
        else:
            document = {"users": 0, **_start()}
        document["users"] += 1
        state.write_text(json.dumps(document))
    try:
        yield f"postgresql://postgres@127.0.0.1:{document['port']}"
    finally:
        with _alone(shared):
            document = json.loads(state.read_text())
            document["users"] -= 1
            if document["users"]:
                state.write_text(json.dumps(document))
            else:
                state.unlink()
                _stop(document)


@contextmanager
def _alone(shared: Path) -> Iterator[None]:
    with (shared / "postgres.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _start() -> dict[str, str | int]:
    programs = _programs()
    user = _unprivileged()
    home = Path(tempfile.mkdtemp(prefix="assay-postgres-"))
    if user is not None:
        account = pwd.getpwnam(user)
        os.chown(home, account.pw_uid, account.pw_gid)
    data = home / "data"
    try:
        make = [
            str(programs / "initdb"),
            "-D",
            str(data),
            "-U",
            "postgres",
            "-A",
            "trust",
            "-E",
            "UTF8",
        ]
        _run([*_as(user), *make, "--locale=C", "--no-sync"])
        port = _free_port()
        settings = f"-p {port} -k {home} -c listen_addresses=127.0.0.1 -c max_connections=200"
        settings += (
            " -c fsync=off -c synchronous_commit=off -c full_page_writes=off -c shared_buffers=32MB"
        )
        log = str(home / "log")
        _run(
            [
                *_as(user),
                str(programs / "pg_ctl"),
                "-D",
                str(data),
                "-l",
                log,
                "-o",
                settings,
                "-w",
                "start",
            ]
        )
    except NoPostgres:
        shutil.rmtree(home, ignore_errors=True)
        raise
    return {"port": port, "home": str(home), "programs": str(programs), "user": user or ""}


def _stop(found: dict[str, str]) -> None:
    control = str(Path(found["programs"]) / "pg_ctl")
    data = str(Path(found["home"]) / "data")
    subprocess.run(
        [*_as(found["user"] or None), control, "-D", data, "-m", "immediate", "stop"],
        check=False,
        capture_output=True,
        cwd="/",
    )
    shutil.rmtree(found["home"], ignore_errors=True)


def control(shared: Path, verb: str, *, mode: str = "fast") -> None:
    """Stop, start or restart the server of this folder, which no other test may use."""
    state = json.loads((shared / "postgres.json").read_text())
    home = Path(state["home"])
    how = [] if verb == "start" else ["-m", mode]
    program = [
        str(Path(state["programs"]) / "pg_ctl"),
        "-D",
        str(home / "data"),
        "-l",
        str(home / "log"),
        "-w",
    ]
    # A plain `start` reads the options of the last one only when it is told to restart.
    options = (
        (home / "data" / "postmaster.opts").read_text().split(" ", 1)[1].strip()
        if verb == "start"
        else ""
    )
    _run([*_as(state["user"] or None), *program, *how, *(["-o", options] if options else []), verb])


def _programs() -> Path:
    """The folder with initdb, pg_ctl and postgres; installed by apt-get when we may."""
    result = _found()
    if result is None and os.geteuid() == 0 and shutil.which("apt-get"):
        # Debian starts a cluster of its own on installation unless told not to.
        common = Path("/etc/postgresql-common")
        common.mkdir(exist_ok=True)
        settings = common / "createcluster.conf"
        if not settings.exists():
            settings.write_text("create_main_cluster = false\n")
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(["apt-get", "update"], check=False, capture_output=True, env=environment)
        subprocess.run(
            [
                "apt-get",
                "install",
                "-y",
                "--no-install-recommends",
                "-o",
                "Dpkg::Options::=--force-confold",
                "postgresql",
            ],
            check=False,
            capture_output=True,
            env=environment,
        )
        result = _found()
    if result is None:
        raise NoPostgres(
            "no initdb, pg_ctl and postgres found, and they could not be installed by apt-get"
        )
    return result


def _found() -> Path | None:
    services = [
        path for pattern in _ROOMS for path in sorted(Path("/").glob(pattern[1:]), reverse=True)
    ]
    on_path = shutil.which("initdb")
    if on_path is not None:
        services.append(Path(on_path).resolve().parent)
    needed = ("initdb", "pg_ctl", "postgres")
    return next((room for room in services if all((room / name).exists() for name in needed)), None)


def _unprivileged() -> str | None:
    """The user to run as; None means ourselves."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            pwd.getpwnam(name)
        except KeyError:
            continue
        return name
    raise NoPostgres(
        "PostgreSQL refuses to run as root, and there is neither a user postgres nor nobody"
    )


def _as(user: str | None) -> list[str]:
    if user is None:
        return []
    if shutil.which("setpriv"):
        account = pwd.getpwnam(user)
        return [
            "setpriv",
            f"--reuid={account.pw_uid}",
            f"--regid={account.pw_gid}",
            "--clear-groups",
            "--",
        ]
    return ["runuser", "-u", user, "--"]


def _run(command: list[str]) -> str:
    try:
        done = subprocess.run(
            command, check=True, capture_output=True, text=True, timeout=120, cwd="/"
        )
    except subprocess.CalledProcessError as error:
        raise NoPostgres(
            f"{' '.join(command[:6])} … failed: {error.stderr.strip()[-300:]}"
        ) from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoPostgres(f"{command[0]} failed: {error}") from error
    return done.stdout


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def new_database(server: str, name: str) -> str:
    """An empty database on the server; its address."""
    import psycopg  # only tests that reach this have a server

    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    return f"{server}/{name}"
