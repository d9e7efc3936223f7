"""What may be a name, a label or a key, in the words in which Kubernetes refuses others."""

import re
from ipaddress import ip_address

_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_CONFIG_KEY = re.compile(r"[-._a-zA-Z0-9]+")

LONGEST_LABEL, LONGEST_SUBDOMAIN = 63, 253


def _regex(text: str, pattern: str, *examples: str) -> str:
    """How a pattern that does not match is explained."""
    shown = "".join(f"'{each}',  or " for each in examples[:-1]) + f"'{examples[-1]}'"
    return f"{text} (e.g. {shown}, regex used for validation is '{pattern}')"


NOT_A_LABEL = _regex(
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character",
    "[a-z0-9]([-a-z0-9]*[a-z0-9])?",
    "my-name",
    "123-abc",
)
NOT_A_SUBDOMAIN = _regex(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character",
    "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*",
    "example.com",
)
NOT_QUALIFIED = _regex(
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character",
    "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]",
    "MyName",
    "my.name",
    "123-abc",
)
NOT_A_LABEL_VALUE = _regex(
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    "'.', and must start and end with an alphanumeric character",
    "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?",
    "MyValue",
    "my_value",
    "12345",
)
NOT_A_CONFIG_KEY = _regex(
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
    "[-._a-zA-Z0-9]+",
    "key.name",
    "KEY_NAME",
    "key-name",
)


def label_faults(name: str) -> list[str]:
    """What keeps this from being an RFC 1123 label."""
    long = [f"must be no more than {LONGEST_LABEL} characters"] * (len(name) > LONGEST_LABEL)
    return long + [NOT_A_LABEL] * (_DNS_LABEL.fullmatch(name) is None)


def subdomain_faults(name: str) -> list[str]:
    """What keeps this from being an RFC 1123 subdomain, as most names must be."""
    long = [f"must be no more than {LONGEST_SUBDOMAIN} characters"]
    return long * (len(name) > LONGEST_SUBDOMAIN) + [NOT_A_SUBDOMAIN] * (
        _SUBDOMAIN.fullmatch(name) is None
    )


def path_segment_faults(name: str) -> list[str]:
    """What keeps this from being a part of a path, as names of roles must be."""
    if name in {".", ".."}:
        return [f"may not be '{name}'"]
    return [f"may not contain '{each}'" for each in "/%" if each in name]


def address_faults(name: str) -> list[str]:
    """What keeps this from being an IP address, written as everybody writes it."""
    try:
        canonical = str(ip_address(name))
    except ValueError:
        return ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]
    return [] if name == canonical else [f'must be in canonical form ("{canonical}")']


def key_faults(key: str) -> list[str]:
    """What keeps this from being the key of a label or an annotation."""
    parts = key.split("/")
    if len(parts) > 2:
        prefix = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a qualified name {NOT_QUALIFIED} {prefix}"]
    faults: list[str] = []
    if len(parts) == 2:
        if not parts[0]:
            faults.append("prefix part must be non-empty")
        else:
            faults += [f"prefix part {each}" for each in subdomain_faults(parts[0])]
    name = parts[-1]
    if not name:
        faults.append("name part must be non-empty")
    elif len(name) > LONGEST_LABEL:
        faults.append(f"name part must be no more than {LONGEST_LABEL} bytes")
    if _QUALIFIED.fullmatch(name) is None:
        faults.append(f"name part {NOT_QUALIFIED}")
    return faults


def label_value_faults(value: str) -> list[str]:
    """What keeps this from being the value of a label."""
    long = [f"must be no more than {LONGEST_LABEL} bytes"] * (len(value.encode()) > LONGEST_LABEL)
    return long + [NOT_A_LABEL_VALUE] * (_LABEL_VALUE.fullmatch(value) is None)


def config_key_faults(key: str) -> list[str]:
    """What keeps this from being a key of a ConfigMap or a Secret."""
    faults = [f"must be no more than {LONGEST_SUBDOMAIN} characters"] * (
        len(key) > LONGEST_SUBDOMAIN
    )
    if _CONFIG_KEY.fullmatch(key) is None:
        faults.append(NOT_A_CONFIG_KEY)
    if key in {".", ".."}:
        faults.append(f"must not be '{key}'")
    elif key.startswith(".."):
        faults.append("must not start with '..'")
    return faults
