"""The keys of one installation: its CA, the server's certificate, what tokens and secrets need.

They lie in one folder that only its owner reads. Doors in other processes that share a database
share this folder, or a copy of it; each has a certificate of its own, for where it answers.
"""

import ipaddress
import os
import secrets
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from muster.model.value import Value

CA_DAYS, SERVER_DAYS = 3_650, 365
RENEWED_DAYS = 30
"""So long before it ends the server's certificate is made again."""

NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
EARLIER = timedelta(minutes=5)
"""Clocks differ."""

SEALING_BYTES = 32

PrivateKey = ec.EllipticCurvePrivateKey


class KeyFolder(Value):
    """What is in the folder. certificate, key: files that the server is started with."""

    ca: bytes
    certificate: Path
    key: Path
    signing: bytes
    sealing: bytes


def open_keys(
    folder: Path, host: str, own: Path | None = None, now: datetime | None = None
) -> KeyFolder:
    """The keys of this folder; what is missing, or about to end, is made.

    own: where the server's certificate lies, if others share the folder.
    """
    now, own = now or datetime.now(UTC), own or folder
    for each in (folder, own):
        each.mkdir(mode=0o700, parents=True, exist_ok=True)
    ca_key = _private_key(folder / "ca.key")
    ca = _kept(folder / "ca.crt", lambda: _ca_certificate(ca_key, now))
    server_key, server = own / "server.key", own / "server.crt"
    if not _is_good(server, ca, host, now):
        server.unlink(missing_ok=True)
        authority = x509.load_pem_x509_certificate(ca)
        key = _private_key(server_key)
        _kept(server, lambda: _server_certificate(key, host, (ca_key, authority), now))
    signing = _kept(folder / "tokens.key", lambda: _pem(ec.generate_private_key(ec.SECP256R1())))
    sealing = _kept(folder / "secrets.key", lambda: secrets.token_bytes(SEALING_BYTES))
    return KeyFolder(ca=ca, certificate=server, key=server_key, signing=signing, sealing=sealing)


def _kept(file: Path, make: Callable[[], bytes]) -> bytes:
    """What is in the file; it is made whole, or not at all."""
    if not file.exists():
        fresh = file.with_name(f"{file.name}.{os.getpid()}")
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with open(descriptor, "wb") as out:
            out.write(make())
        fresh.rename(file)
    return file.read_bytes()


def _private_key(file: Path) -> PrivateKey:
    text = _kept(file, lambda: _pem(ec.generate_private_key(ec.SECP256R1())))
    found = serialization.load_pem_private_key(text, password=None)
    if not isinstance(found, ec.EllipticCurvePrivateKey):
        raise TypeError(f"{file} holds a key of another kind")
    return found


def _pem(key: PrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _is_good(file: Path, ca: bytes, host: str, now: datetime) -> bool:
    if not file.exists():
        return False
    found = x509.load_pem_x509_certificate(file.read_bytes())
    authority = x509.load_pem_x509_certificate(ca)
    names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    is_named = _name(host) in list(names)
    lasts = found.not_valid_after_utc - now > timedelta(days=RENEWED_DAYS)
    return found.issuer == authority.subject and is_named and lasts


def _ca_certificate(key: PrivateKey, now: datetime) -> bytes:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"muster-{secrets.token_hex(4)}")])
    usage = _usage(key_cert_sign=True, crl_sign=True)
    built = (
        _builder(name, name, key, timedelta(days=CA_DAYS), now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return built.public_bytes(serialization.Encoding.PEM)


def _server_certificate(
    key: PrivateKey, host: str, by: tuple[PrivateKey, x509.Certificate], now: datetime
) -> bytes:
    ca_key, ca = by
    names = dict.fromkeys([*map(_name, NAMES), _name("127.0.0.1"), _name("::1"), _name(host)])
    built = (
        _builder(
            x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "muster")]),
            ca.subject,
            key,
            timedelta(days=SERVER_DAYS),
            now,
        )
        .add_extension(x509.SubjectAlternativeName(list(names)), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(digital_signature=True), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False
        )
        .sign(ca_key, hashes.SHA256())
    )
    return built.public_bytes(serialization.Encoding.PEM)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: PrivateKey, lasts: timedelta, now: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - EARLIER)
        .not_valid_after(now + lasts)
    )


def _usage(
    *, digital_signature: bool = False, key_cert_sign: bool = False, crl_sign: bool = False
) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=digital_signature,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=key_cert_sign,
        crl_sign=crl_sign,
        encipher_only=False,
        decipher_only=False,
    )


def _name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
