"""Every sandbox runs what it should and stops what it must: files, keys, network, processes,
memory, disk and output.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.support import sandboxes

from assay.domain.sandbox import CommandEnd, CommandResult, Gateway, ShellLimits, ShellRequest

Run = Callable[..., list[CommandResult]]

_SLOW = (("bubblewrap", False), ("container", False), ("bubblewrap", True), ("namespaces", True))
KINDS = [("namespaces", False), *(pytest.param(kind, marks=pytest.mark.slow) for kind in _SLOW)]
"""Name of a sandbox, and True for an ordinary user where the tests run as root."""
_problems: dict[str, str | None] = {}


@pytest.fixture(params=KINDS, ids=lambda kind: f"{kind[0]}-{('own', 'ordinary')[kind[1]]}-user")
def run(request: pytest.FixtureRequest) -> Run:
    """Commands in a shell of one kind, as the user of the tests or as an ordinary one."""
    name, ordinary = request.param
    if name not in _problems:
        _problems[name] = sandboxes.problem(name)
    if _problems[name] is not None:
        pytest.skip(f"no {name} here: {_problems[name]}")
    if ordinary and not sandboxes.ROOT:
        pytest.skip("the tests run as an ordinary user already")
    if ordinary and not os.path.exists(sandboxes.SYSTEM_PYTHON):
        pytest.skip(f"no {sandboxes.SYSTEM_PYTHON} that an ordinary user could start")
    runner = sandboxes.as_ordinary_user if ordinary else sandboxes.in_shell
    return lambda request, *commands: runner(name, request, *commands)


@pytest.fixture
def workspace(run: Run) -> Iterator[Path]:
    """A workspace that an ordinary user may change, with a file outside of it."""
    # Not under pytest's folder: every start of pytest by the same user closes that one to other
    # users.
    with TemporaryDirectory(dir="/tmp") as folder:
        outer = Path(folder)
        outer.chmod(0o755)
        inner = outer / "workspace"
        inner.mkdir()
        (inner / "a.txt").write_text("inside\n", "utf-8")
        (outer / "secret.txt").write_text("TOP-SECRET\n", "utf-8")
        if sandboxes.ROOT:
            os.chown(inner, sandboxes.ORDINARY_USER, sandboxes.ORDINARY_USER)
            os.chown(inner / "a.txt", sandboxes.ORDINARY_USER, sandboxes.ORDINARY_USER)
        yield inner
        assert (outer / "secret.txt").read_text("utf-8") == "TOP-SECRET\n"


def test_commands_change_the_workspace_and_share_it(run: Run, workspace: Path) -> None:
    made, moved, failed = run(
        ShellRequest(workspace=str(workspace), environment={"COLOUR": "blue"}),
        "cat a.txt; echo $COLOUR; mkdir d; echo new > d/b.txt; echo problem >&2",
        "mv d/b.txt . && rmdir d && ls; echo kept > $TMPDIR/t && cat /tmp/t",
        "exit 7",
    )
    assert (made.end, made.exit_code, made.output) == (
        CommandEnd.EXITED,
        0,
        "inside\nblue\nproblem\n",
    )
    assert moved.output == "a.txt\nb.txt\nkept\n"
    assert (failed.end, failed.exit_code, failed.succeeded) == (CommandEnd.EXITED, 7, False)
    assert (workspace / "b.txt").read_text("utf-8") == "new\n"


def test_nothing_of_the_host_is_read_or_changed(
    run: Run, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-TOP-SECRET")
    outside = workspace.parent / "secret.txt"
    (workspace / "link").symlink_to(outside)
    attacks = [
        "cat ../secret.txt",
        "cat link",
        f"cat {outside}",
        "cat /etc/shadow",
        "ls /root /home",
        "env",
        "cat /proc/*/environ",
        "echo x > link",
        f"echo x > {outside}",
        "echo x > /usr/bin/assay-was-here",
        "echo x > /etc/passwd",
        "ln -s / up && cat up/etc/shadow",
        "cat /proc/1/root/etc/shadow",
        "cat /proc/1/mem; ls -l /proc/1/fd",
        "mount -t tmpfs none /usr",
        "unshare -Urm mount -t tmpfs none /tmp",
        "chroot / true",
        "mknod disk b 254 0 && cat disk",
        "find / -name '*.pem' -path '*private*'",
    ]
    for attack, result in zip(
        attacks, run(ShellRequest(workspace=str(workspace)), *attacks), strict=True
    ):
        assert "TOP-SECRET" not in result.output, attack
        assert "daemon:*" not in result.output, attack  # a line of /etc/shadow
    names = {path.name for path in workspace.iterdir()}
    assert names <= {"a.txt", "link", "up"}
    assert not Path("/usr/bin/assay-was-here").exists()


def test_no_network_but_the_loopback_device(run: Run, workspace: Path) -> None:
    code = (
        "import socket\n"
        "own = socket.create_server(('127.0.0.1', 0))\n"
        "socket.create_connection(own.getsockname(), 2)\n"
        "print('loopback works')\n"
        "for address in (('1.1.1.1', 53), ('10.0.0.1', 80)):\n"
        "    try: socket.create_connection(address, 1); print('OUT')\n"
        "    except OSError: print('no way')\n"
    )
    (workspace / "net.py").write_text(code, "utf-8")
    with sandboxes.listening() as (port, knocks):
        (result, host) = run(
            ShellRequest(workspace=str(workspace)),
            "python3 net.py || /usr/bin/python3 net.py",
            f"(python3 || /usr/bin/python3) -c \"import socket; socket.create_connection(('127.0.0.1', {port}), 1)\"",
        )
    assert result.output.endswith("loopback works\nno way\nno way\n")
    assert host.exit_code != 0
    assert knocks == []


def test_one_server_of_the_host_is_reached_without_a_network(run: Run, workspace: Path) -> None:
    client = "import os, urllib.request as u; print(u.urlopen(os.environ['SERVER_URL']).read().decode(), os.environ['TOKEN'])"
    (workspace / "client.py").write_text(client, "utf-8")
    with sandboxes.serving("hello") as socket:
        gateway = Gateway(
            socket=socket, addresses={"SERVER_URL": "/path"}, variables={"TOKEN": "t"}
        )
        python = "$(command -v python3 || echo /usr/bin/python3) client.py"
        asked, again = run(
            ShellRequest(workspace=str(workspace), gateway=gateway), f"{python}; kill -9 -1", python
        )
    assert asked.output.startswith("hello /path t\n")
    assert again.output == "hello /path t\n"


def test_the_first_process_cannot_be_killed(run: Run, workspace: Path) -> None:
    results = run(
        ShellRequest(workspace=str(workspace)),
        "kill -9 1; kill -9 $PPID; kill -9 -1; true",
        "echo alive",
    )
    assert results[-1].output == "alive\n"


def test_a_command_that_hangs_is_stopped_with_its_children(run: Run, workspace: Path) -> None:
    request = ShellRequest(workspace=str(workspace), limits=ShellLimits(seconds=1.0))
    hung, after = run(
        request, "(setsid sleep 654321 &) ; sleep 654321", "ps aux | grep -c '[6]54321'"
    )
    assert (hung.end, hung.exit_code) == (CommandEnd.TIMED_OUT, None)
    assert after.output.strip() == "0"


def test_background_processes_do_not_outlive_the_shell(run: Run, workspace: Path) -> None:
    run(
        ShellRequest(workspace=str(workspace)),
        "(setsid sleep 765432 >/dev/null 2>&1 &) ; echo started",
    )
    listing = subprocess.run(
        ["ps", "axo", "args"], capture_output=True, text=True, check=True
    ).stdout
    assert "sleep 765432" not in listing


def test_a_fork_bomb_meets_the_limit(run: Run, workspace: Path) -> None:
    request = ShellRequest(workspace=str(workspace), limits=ShellLimits(processes=40, seconds=5.0))
    bomb, after = run(request, "bomb() { bomb | bomb & }; bomb; sleep 1; echo over", "echo alive")
    assert bomb.end in (CommandEnd.EXITED, CommandEnd.TIMED_OUT)
    assert (
        after.output == "alive\n"
        or "fork" in after.output.lower()
        or "resource" in after.output.lower()
    )


def test_memory_of_all_processes_has_one_limit(run: Run, workspace: Path) -> None:
    eater = "x = b'x' * (60 << 20); import time; time.sleep(20)"
    (workspace / "eat.py").write_text(eater, "utf-8")
    request = ShellRequest(workspace=str(workspace), limits=ShellLimits(memory_bytes=150 << 20))
    python = "$(command -v python3 || echo /usr/bin/python3)"
    eaten, after = run(request, f"for n in 1 2 3 4; do {python} eat.py & done; wait", "echo alive")
    assert eaten.end is CommandEnd.OUT_OF_MEMORY
    assert after.end is CommandEnd.OUT_OF_MEMORY


def test_files_cannot_fill_the_disk(run: Run, workspace: Path) -> None:
    limits = ShellLimits(file_bytes=5 << 20, disk_bytes=40 << 20)
    request = ShellRequest(workspace=str(workspace), limits=limits)
    (single,) = run(request, "head -c 20000000 /dev/zero > big; ls -l big | awk '{print $5}'")
    assert int(single.output.split()[-1]) <= 5 << 20
    many = "for n in $(seq 1000); do head -c 4000000 /dev/zero > f$n; sleep 0.05; done"
    assert run(request, many)[0].end is CommandEnd.DISK_FULL


def test_output_is_kept_at_both_ends_only(run: Run, workspace: Path) -> None:
    request = ShellRequest(workspace=str(workspace), limits=ShellLimits(output_bytes=1000))
    (result,) = run(request, "echo begins; yes | head -c 300000000; echo ends")
    assert result.output_bytes == 300_000_000 + len("begins\nends\n")
    assert result.output.startswith("begins\n")
    assert result.output.endswith("ends\n")
    assert len(result.output) < 1100


def test_bytes_that_are_no_text_are_shown(run: Run, workspace: Path) -> None:
    (result,) = run(ShellRequest(workspace=str(workspace)), r"printf '\377\376\n{}\n'")
    assert result.output == "\ufffd\ufffd\n{}\n"
