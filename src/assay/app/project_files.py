"""Find and read a project's `assay.yaml` and `.env`.

Files that another user could have written are refused.

The search starts in the working folder and moves up. It ends at the root of the repository, at the
home folder, or before the first folder that another user can write to, such as `/tmp`.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from assay.domain.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping

TRUSTED: Final = "ASSAY_TRUSTED_FOLDERS"
"""Variable with folders whose files are read regardless of their owner, separated as in PATH; for
containers.
"""

LARGEST: Final = 4 * 2**20


def find_upwards(folder: Path, name: str, environment: Mapping[str, str]) -> Path | None:
    """Return the nearest file with this name in the folder or its parents; None if no such file
    exists.
    """
    folder = folder.resolve()
    end = home(environment)
    for place in (folder, *folder.parents):
        if place != folder and not _only_ours(place):
            return None
        if os.path.isfile(place / name):
            return place / name
        if place == end or os.path.exists(place / ".git"):
            return None
    return None


def read_project_file(file: Path, environment: Mapping[str, str]) -> str:
    """Return the text of a project file; raises `SettingsError` if it is unreadable, very large, or
    writable by others.
    """
    try:
        with file.open("rb") as opened:
            # The opened file is checked, so that it cannot be exchanged between check and use.
            reason = _not_ours(os.fstat(opened.fileno())) or _not_ours(file.lstat(), link=True)
            if reason and not _trusted(file, environment):
                raise SettingsError(
                    str(file),
                    f"{reason}, so somebody else may have written it. Assay did not read it.",
                    remedy=f"Read it. If it is yours: `chown $(id -un) {file}` and `chmod go-w {file}`, or list its folder in the "
                    f"variable {TRUSTED}. Otherwise delete it or work in another folder.",
                )
            content = opened.read(LARGEST + 1)
    except OSError as error:
        raise SettingsError(str(file), f"cannot be read: {error.strerror or error}.") from error
    if len(content) > LARGEST:
        raise SettingsError(
            str(file),
            f"is larger than {LARGEST // 2**20} MB.",
            remedy="Settings are short; check the file.",
        )
    try:
        # Editors on Windows may begin a file with a byte order mark.
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SettingsError(
            str(file), f"cannot be read: {error}.", remedy="Save it as UTF-8."
        ) from error


def user_file(environment: Mapping[str, str]) -> Path | None:
    """Return the path of the user's own settings file, which may not exist; None without a home
    folder.
    """
    configured = environment.get("XDG_CONFIG_HOME", "")
    if configured and Path(configured).is_absolute():
        return Path(configured) / "assay" / "assay.yaml"
    folder = home(environment)
    return None if folder is None else folder / ".config" / "assay" / "assay.yaml"


def home(environment: Mapping[str, str]) -> Path | None:
    """Return the user's home folder from the environment; None if the variable is not set."""
    named = environment.get("HOME") or environment.get("USERPROFILE") or ""
    return Path(named).resolve() if named and Path(named).is_absolute() else None


def _trusted(file: Path, environment: Mapping[str, str]) -> bool:
    folders = [
        Path(named).resolve() for named in environment.get(TRUSTED, "").split(os.pathsep) if named
    ]
    return any(file.resolve().is_relative_to(folder) for folder in folders)


def _only_ours(folder: Path) -> bool:
    """True if only this user and root can create files in the folder."""
    try:
        return not _not_ours(folder.stat())
    except OSError:
        return False


def _not_ours(status: os.stat_result, *, link: bool = False) -> str:
    """Return why a file is not under this user's control; empty if only this user and root can
    change it.
    """
    if not hasattr(os, "geteuid"):  # Windows has other means of access control
        return ""
    if status.st_uid not in (os.geteuid(), 0):
        return f"belongs to {_user_name(status.st_uid)}"
    if link:  # the mode of a symbolic link has no meaning
        return ""
    if status.st_mode & stat.S_IWOTH:
        return "can be written to by every user of this machine"
    if status.st_mode & stat.S_IWGRP and not _private_group(status.st_gid, status.st_uid):
        return f"can be written to by the group {_group_name(status.st_gid)}"
    return ""


def _private_group(group: int, user: int) -> bool:
    """True for a group without other members: root's group, or the private group that many systems
    create for each user.
    """
    import grp
    import pwd

    if group == 0:
        return True
    with suppress(KeyError):
        entry = grp.getgrgid(group)
        name = pwd.getpwuid(user).pw_name
        return entry.gr_name == name and set(entry.gr_mem) <= {name}
    return False


def _user_name(user: int) -> str:
    import pwd

    with suppress(KeyError):
        return f"the user {pwd.getpwuid(user).pw_name}"
    return f"the user with number {user}"


def _group_name(group: int) -> str:
    import grp

    with suppress(KeyError):
        return grp.getgrgid(group).gr_name
    return str(group)
