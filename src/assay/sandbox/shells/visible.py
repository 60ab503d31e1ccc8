"""List the host's files that a sandbox exposes to commands, all of them read-only."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

WORKSPACE: Final = "/workspace"
GATEWAY: Final = "/run/assay-gateway.sock"
GUARD: Final = "/run/assay-guard"
_SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt")
# the files of /etc that cannot contain a secret
_SETTINGS: Final = (
    *(
        "alternatives",
        "ca-certificates",
        "fonts",
        "group",
        "hosts",
        "java-11-openjdk",
        "java-17-openjdk",
        "ld.so.cache",
    ),
    *(
        "ld.so.conf",
        "ld.so.conf.d",
        "localtime",
        "mime.types",
        "nsswitch.conf",
        "passwd",
        "pki",
        "protocols",
        "services",
    ),
    *("shells", "ssl", "terminfo", "timezone"),
)
_OF_A_NETWORK: Final = ("resolv.conf", "gai.conf")


def visible(readable: tuple[str, ...], *, network: bool) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the files and folders that a sandbox exposes under their own paths, and its links as
    (path, target).
    """
    shown, links = [], []
    for folder in _SYSTEM:
        if os.path.islink(folder):
            links.append((folder, os.readlink(folder)))
        elif os.path.isdir(folder):
            shown.append(folder)
    names = (*_SETTINGS, *(_OF_A_NETWORK if network else ()))
    shown += [f"/etc/{name}" for name in names if os.path.exists(f"/etc/{name}")]
    own = (str(Path(sys.base_prefix).resolve()), str(Path(sys.prefix).resolve()), *readable)
    for path in own:
        if not any(path == folder or path.startswith(f"{folder}/") for folder in shown):
            shown.append(path)
    return shown, links
