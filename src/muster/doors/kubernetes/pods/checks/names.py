"""Names, labels and paths as Kubernetes wants them, with its sentences about those that are not."""

import re

LABEL_FORM = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
SUBDOMAIN_FORM = rf"{LABEL_FORM}(\.{LABEL_FORM})*"
QUALIFIED_FORM = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
VALUE_FORM = f"({QUALIFIED_FORM})?"
CONFIG_KEY_FORM = "[-._a-zA-Z0-9]+"
VARIABLE_FORM = "[-._a-zA-Z][-._a-zA-Z0-9]*"
PORT_NAME_FORM = "[a-z0-9]([a-z0-9-]*[a-z0-9])*"

_LABEL = re.compile(LABEL_FORM)
_SUBDOMAIN = re.compile(SUBDOMAIN_FORM)
_QUALIFIED = re.compile(QUALIFIED_FORM)
_VALUE = re.compile(VALUE_FORM)
_CONFIG_KEY = re.compile(CONFIG_KEY_FORM)
_LONGEST_LABEL = 63
_LONGEST_SUBDOMAIN = 253
_LONGEST_PORT_NAME = 15
_LETTERS = "must start and end with an alphanumeric character"


def label_name(name: str) -> list[str]:
    """What keeps it from being a label of DNS."""
    if len(name) > _LONGEST_LABEL:
        return [_too_long(_LONGEST_LABEL)]
    if _LABEL.fullmatch(name):
        return []
    made_of = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-'"
    return [f"{made_of}, and {_LETTERS} {_such_as(LABEL_FORM, 'my-name', '123-abc')}"]


def subdomain(name: str) -> list[str]:
    """What keeps it from being a name of DNS with dots."""
    if len(name) > _LONGEST_SUBDOMAIN:
        return [_too_long(_LONGEST_SUBDOMAIN)]
    if _SUBDOMAIN.fullmatch(name):
        return []
    made_of = (
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, "
        "'-' or '.'"
    )
    return [f"{made_of}, and {_LETTERS} {_such_as(SUBDOMAIN_FORM, 'example.com')}"]


def qualified(name: str) -> list[str]:
    """What keeps it from being a name with a domain before it: `nvidia.com/gpu`."""
    prefix, slash, own = name.rpartition("/")
    found: list[str] = []
    if "/" in prefix:
        form = _such_as(QUALIFIED_FORM, "MyName", "my.name", "123-abc")
        before = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a qualified name {_made_of_name()} {form} {before}"]
    if slash and not prefix:
        found.append("prefix part must be non-empty")
    elif slash:
        found.extend(f"prefix part {problem}" for problem in subdomain(prefix))
    if not own:
        return [*found, "name part must be non-empty"]
    if len(own) > _LONGEST_LABEL:
        found.append(f"name part {_too_long(_LONGEST_LABEL)}")
    if not _QUALIFIED.fullmatch(own):
        form = _such_as(QUALIFIED_FORM, "MyName", "my.name", "123-abc")
        found.append(f"name part {_made_of_name()} {form}")
    return found


def label_value(value: str) -> list[str]:
    """What keeps it from being the value of a label."""
    if len(value) > _LONGEST_LABEL:
        return [_too_long(_LONGEST_LABEL)]
    if _VALUE.fullmatch(value):
        return []
    made_of = (
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' "
        f"or '.', and {_LETTERS}"
    )
    return [f"{made_of} {_such_as(VALUE_FORM, 'MyValue', 'my_value', '12345')}"]


def config_key(key: str) -> list[str]:
    """What keeps it from being a key of a ConfigMap or Secret."""
    if len(key) > _LONGEST_SUBDOMAIN:
        return [_too_long(_LONGEST_SUBDOMAIN)]
    if key in (".", ".."):
        return [f"must not be '{key}'"]
    if key.startswith(".."):
        return ["must not start with '..'"]
    if _CONFIG_KEY.fullmatch(key):
        return []
    made_of = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
    return [f"{made_of} {_such_as(CONFIG_KEY_FORM, 'key.name', 'KEY_NAME', 'key-name')}"]


def variable(name: str) -> list[str]:
    """What keeps it from being the name of a variable: nearly every printable text is one."""
    if not name.isascii() or not name.isprintable() or "=" in name:
        made_of = "must consist only of printable ASCII characters other than '='"
        return [f"a valid environment variable name {made_of}"]
    return []


def port_name(name: str) -> list[str]:
    """What keeps it from being the name of a port."""
    found: list[str] = []
    if len(name) > _LONGEST_PORT_NAME:
        found.append("must be no more than 15 characters")
    if not re.fullmatch("[-a-z0-9]+", name):
        found.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search("[a-z]", name):
        found.append("must contain at least one letter (a-z)")
    if "--" in name:
        found.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        found.append("must not begin or end with a hyphen")
    return found


def _made_of_name() -> str:
    return f"must consist of alphanumeric characters, '-', '_' or '.', and {_LETTERS}"


def _such_as(form: str, *examples: str) -> str:
    listed = "',  or '".join(examples)
    return f"(e.g. '{listed}', regex used for validation is '{form}')"


def _too_long(most: int) -> str:
    return f"must be no more than {most} bytes"
