"""Certificates for a Kubernetes of the tests: one authority, and what it signs."""

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_DAY = datetime.timedelta(days=1)


class Authority:
    """Signs certificates, and writes each with its key into a folder: NAME.crt, NAME.key."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named("muster-tests")
        builder = _builder(self._name, self._name, self._key.public_key()).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        self._write("ca", self._key, builder)

    def signs(self, name: str, *, group: str = "", hosts: tuple[str, ...] = ()) -> None:
        """A certificate for a server at these hosts and for a client of this group."""
        key = ec.generate_private_key(ec.SECP256R1())
        both = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = (
            _builder(_named(name, group), self._name, key.public_key())
            .add_extension(
                x509.SubjectAlternativeName([_host(each) for each in hosts or (name,)]),
                critical=False,
            )
            .add_extension(x509.ExtendedKeyUsage(both), critical=False)
        )
        self._write(name, key, builder)

    def _write(
        self, name: str, key: ec.EllipticCurvePrivateKey, builder: x509.CertificateBuilder
    ) -> None:
        signed = builder.sign(self._key, hashes.SHA256())
        write_key(self._folder / f"{name}.key", key)
        pem = signed.public_bytes(serialization.Encoding.PEM)
        (self._folder / f"{name}.crt").write_bytes(pem)


def write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )


def write_pair(folder: Path, name: str) -> None:
    """A key without a certificate, as service accounts have: NAME.key, NAME.pub."""
    key = ec.generate_private_key(ec.SECP256R1())
    write_key(folder / f"{name}.key", key)
    pem = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    (folder / f"{name}.pub").write_bytes(pem)


def _named(name: str, group: str = "") -> x509.Name:
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group)] if group else []
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _DAY)
        .not_valid_after(now + 30 * _DAY)
    )


def _host(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)
