"""Ed25519 keys of people who mint snapshots, and signatures with them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from assay.domain.errors import InputError
from assay.specialists.templates import extra, read_limited

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

_LARGEST_KEY: Final = 10_000
_PURPOSE: Final = b"assay snapshot 1 "
"""Precedes the signed digest, so that no signature made for another purpose fits a snapshot."""


def make_key(path: Path) -> Path:
    """Write a new private key, readable only by this user, and its public key beside it as
    `NAME.pub`; return the second path.

    Raises `InputError` if one of the files exists, or cannot be written.
    """
    serialization, ed25519 = _cryptography()
    key = ed25519.Ed25519PrivateKey.generate()
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    beside = path.with_name(f"{path.name}.pub")
    for file in (path, beside):
        if file.exists():
            raise InputError(
                str(file), "exists, and keys are never overwritten.", remedy="Choose another file."
            )
    for file, content, mode in ((path, private, 0o600), (beside, public, 0o644)):
        try:
            with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as opened:
                opened.write(content)
        except OSError as error:
            raise InputError(str(file), f"cannot be written: {error.strerror}.") from error
    return beside


class SigningKey:
    """A private key in a PEM file; raises `InputError` for a file without such a key."""

    def __init__(self, path: Path) -> None:
        _, ed25519 = _cryptography()
        key = _loaded(path)
        if not isinstance(key, ed25519.Ed25519PrivateKey):
            raise InputError(
                str(path), "holds no private key.", remedy="Create a key: assay mint --new-key FILE"
            )
        self._key: Ed25519PrivateKey = key
        self.public = key.public_key().public_bytes_raw().hex()

    def sign(self, digest: str) -> str:
        """Return the signature of a digest in hexadecimal."""
        return self._key.sign(_PURPOSE + digest.encode()).hex()


def public_key(path: Path) -> str:
    """Return the public key, in hexadecimal, from a PEM file with a private or a public key; raises
    `InputError`.
    """
    key = _loaded(path)
    return (key.public_key() if hasattr(key, "public_key") else key).public_bytes_raw().hex()


def is_signed(digest: str, signature: str, public: str) -> bool:
    """True if the signature of the digest was made with the private half of this public key; all
    are hexadecimal.
    """
    _, ed25519 = _cryptography()
    try:
        key = ed25519.Ed25519PublicKey.from_public_bytes(bytes.fromhex(public))
        key.verify(bytes.fromhex(signature), _PURPOSE + digest.encode())
    except (extra("cryptography.exceptions").InvalidSignature, ValueError):
        return False
    return True


def _loaded(path: Path) -> Ed25519PrivateKey | Ed25519PublicKey:
    serialization, ed25519 = _cryptography()
    remedy = "Create a key: assay mint --new-key FILE"
    content = read_limited(path, _LARGEST_KEY, remedy)
    unsupported = extra("cryptography.exceptions").UnsupportedAlgorithm
    try:
        private = b"PRIVATE" in content
        key = (
            serialization.load_pem_private_key(content, None)
            if private
            else serialization.load_pem_public_key(content)
        )
    except (ValueError, TypeError, unsupported):  # TypeError: the key needs a password
        key = None
    if not isinstance(key, ed25519.Ed25519PrivateKey | ed25519.Ed25519PublicKey):
        raise InputError(
            str(path), "is not a PEM file with an Ed25519 key without a password.", remedy=remedy
        )
    loaded: Ed25519PrivateKey | Ed25519PublicKey = key
    return loaded


def _cryptography() -> Any:
    primitives = "cryptography.hazmat.primitives"
    return extra(f"{primitives}.serialization"), extra(f"{primitives}.asymmetric.ed25519")
