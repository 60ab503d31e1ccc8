"""Origins of addresses (scheme, host and port in a standard spelling), and the rule for hosts on
this machine or network.

House rules. A host is always compared, judged and sent in the same spelling: `ascii_host` maps it
by UTS 46, removes a final dot and writes numbers as the resolver reads them. This module never
resolves a name. If a name counts as local, its resolved addresses are checked again when the
connection is opened (`session.CheckedResolver`).
"""

from __future__ import annotations

import ipaddress
import re
import socket
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from assay.domain.errors import SettingsError

PORTS: Final = {"http": 80, "https": 443}

LOCAL_NETWORKS: Final = tuple(
    ipaddress.ip_network(network)
    for network in (
        "127.0.0.0/8",
        "::1/128",  # loopback
        "0.0.0.0/32",
        "::/128",  # unspecified address, which connects to this machine
        "10.0.0.0/8",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "fc00::/7",  # private
        "169.254.0.0/16",
        "fe80::/10",  # link-local
    )
)
"""Addresses on this machine or network.

`ipaddress.is_private` also includes ranges that lead elsewhere, such as 6to4.
"""

_PUBLIC_6: Final = ipaddress.ip_network("2000::/3")
_NOT_PUBLIC: Final = tuple(
    ipaddress.ip_network(network)
    for network in (
        "192.0.0.0/24",
        "2001::/23",  # protocol assignments, Teredo among them
        "192.88.99.0/24",
        "2002::/16",  # 6to4: a gateway forwards packets to the IPv4 address inside
        "3fff::/20",
        "5f00::/16",  # documentation, and segment identifiers of routers
    )
)
"""Networks of the IANA registries of special addresses that `is_global` of older Pythons calls
global.
"""

_LOCAL_SUFFIXES: Final = (".local", ".localhost")
_AWKWARD: Final = re.compile(r"[\s\\\x00-\x1f\x7f]")
_LABEL: Final = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")
_ZONE: Final = re.compile(r"[0-9a-z_.-]+")


@dataclass(frozen=True, slots=True)
class Origin:
    """A scheme, host and port. The host is in the spelling of `ascii_host`, without brackets."""

    scheme: str
    host: str
    port: int

    @property
    def netloc(self) -> str:
        """Return host and port as in a URL, without a default port."""
        place = f"[{self.host}]" if ":" in self.host else self.host
        return place if self.port == PORTS[self.scheme] else f"{place}:{self.port}"

    @property
    def local(self) -> bool:
        """True if the host is on this machine or network, judged by its name alone."""
        return is_local(self.host)

    @property
    def key_variable(self) -> str | None:
        """Return the variable for a key that is bound to this origin only; None if no variable name
        can express the host.

        The name is `ASSAY_KEY_`, then the host in capitals with `_` for each dot and `__` for each
        hyphen, then `_` and the port unless it is the scheme's default. Different hosts never share
        a variable, because no label begins or ends with a hyphen or contains an underscore, and no
        name ends in a number.
        """
        if ":" in self.host or "_" in self.host:
            return None
        port = "" if self.port == PORTS[self.scheme] else f"_{self.port}"
        return "ASSAY_KEY_" + self.host.replace("-", "__").replace(".", "_").upper() + port

    def __str__(self) -> str:
        return f"{self.scheme}://{self.netloc}"


def origin_of(url: str) -> Origin:
    """Return the origin of an http or https address; raises `ValueError` with the reason if the
    address has no origin.
    """
    check_characters(url)
    parts = urlsplit(url)
    if parts.scheme not in PORTS:
        raise ValueError("it does not start with http:// or https://")
    if "@" in parts.netloc:
        raise ValueError("it contains a user name or a password")
    return Origin(
        parts.scheme,
        ascii_host(parts.hostname or ""),
        PORTS[parts.scheme] if parts.port is None else parts.port,
    )


def check_characters(url: str) -> None:
    """Raise `ValueError` for characters that address parsers interpret differently or omit."""
    if _AWKWARD.search(url):
        raise ValueError("it contains a space, a backslash or a control character")


def bare_origin(text: str, *, where: str) -> Origin:
    """Return an origin written without a path, as in settings; raises `SettingsError` for any other
    text.
    """
    try:
        origin = origin_of(text.strip())
        parts = urlsplit(text.strip())
    except ValueError as error:
        reason = f"{error}."
    else:
        if parts.path in ("", "/") and not parts.query and not parts.fragment:
            return origin
        reason = "it contains more than scheme, host and port."
    raise SettingsError(
        where,
        f"{text!r} is not an origin: {reason}",
        remedy="Write for example https://api.example.com.",
    )


def ascii_host(written: str) -> str:
    """Return a host in the spelling for comparing and sending: ASCII, lower case, no final dot,
    numbers as addresses.

    Raises ValueError if the text is not a host name or an address.
    """
    host = written.strip("[]").lower()
    if ":" in host:
        name, _, zone = host.partition("%")
        address = ipaddress.IPv6Address(name)
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        if zone and not _ZONE.fullmatch(zone):
            raise ValueError(f"{written!r} is not an address")
        return f"{address}%{zone}" if zone else str(address)
    if not host.isascii():
        import idna  # imported only for such names, because its tables are large

        try:
            host = idna.encode(host, uts46=True, transitional=False).decode("ascii")
        except UnicodeError as error:
            raise ValueError(f"{written!r} is not a host name") from error
    host = host.removesuffix(".")
    labels = host.split(".")
    if all(_NUMBER.fullmatch(label) for label in labels):
        try:
            # Numbers are converted as the resolver reads them: `134744072` is 8.8.8.8. As a name it
            # has no dot and would count as local.
            return str(ipaddress.IPv4Address(socket.inet_aton(host)))
        except OSError as error:
            raise ValueError(f"{written!r} is not an address") from error
    if len(host) > 253 or not all(map(_LABEL.fullmatch, labels)) or _NUMBER.fullmatch(labels[-1]):
        raise ValueError(f"{written!r} is not a host name" if host else "it has no host")
    return host


def is_local(host: str) -> bool:
    """True if a host's name alone shows that it is on this machine or network; names are never
    resolved.

    This includes addresses in `LOCAL_NETWORKS` in any spelling, `localhost`, names ending in
    `.local` or `.localhost`, and names without a dot.
    """
    try:
        name = ascii_host(host)
    except ValueError:
        return False
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return "." not in name or name.endswith(_LOCAL_SUFFIXES)
    return is_local_address(name)


def is_local_address(address: str) -> bool:
    """True if an IP address is in `LOCAL_NETWORKS`.

    An IPv4 address inside an IPv6 address counts as IPv4.
    """
    known = ipaddress.ip_address(address.partition("%")[0])
    mapped = getattr(known, "ipv4_mapped", None)
    known = known if mapped is None else mapped
    return any(known in network for network in LOCAL_NETWORKS)


def is_public(address: str) -> bool:
    """True if an IP address belongs to the public internet and contains no other address."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    ip = getattr(ip, "ipv4_mapped", None) or ip
    inside = ip.version == 4 or ip in _PUBLIC_6
    return (
        inside
        and ip.is_global
        and not ip.is_multicast
        and not any(ip in network for network in _NOT_PUBLIC)
    )
