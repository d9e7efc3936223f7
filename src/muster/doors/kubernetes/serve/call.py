"""One request to the API, read: what is to be done with which objects."""

from collections.abc import Mapping, Sequence
from urllib.parse import unquote

from muster.doors.kubernetes.objects.errors import (
    Cause,
    Reason,
    StatusError,
    bad_request,
    cause_json,
    forbidden_field,
    not_supported,
)
from muster.doors.kubernetes.objects.value import Kind
from muster.model.value import Value

DEEPEST = 3
"""Plural, name and subresource."""

LONGEST_VERSION = 19

Query = Mapping[str, Sequence[str]]

TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False", ""})


class Target(Value):
    """What a path names: a kind, perhaps a namespace, an object of it, and a part of that.

    namespace: "" for all of them, or for what has none. name: "" for all objects.
    """

    kind: Kind
    namespace: str = ""
    name: str = ""
    subresource: str = ""


class Path(Value):
    """The parts of a path below a group and version."""

    group: str
    version: str
    parts: tuple[str, ...]
    is_watch: bool = False


def path_of(path: str) -> Path | None:
    """`/api/v1/...` and `/apis/GROUP/VERSION/...`; None for all other paths."""
    parts = [unquote(each) for each in path.strip("/").split("/")]
    match parts:
        case ["api", version, *rest]:
            group = ""
        case ["apis", group, version, *rest]:
            pass
        case _:
            return None
    if not rest:
        return None
    # An old way to ask for a watch, which some clients still know.
    is_watch = rest[0] == "watch" and len(rest) > 1
    found = tuple(rest[1:] if is_watch else rest)
    return Path(group=group, version=version, parts=found, is_watch=is_watch)


def target_of(path: Path, kinds: Mapping[tuple[str, str, str], Kind]) -> Target | None:
    """What the path names, among these kinds by group, version and plural."""
    parts, namespace = list(path.parts), ""
    is_inside = parts[0] == "namespaces" and len(parts) > 2
    if is_inside and parts[2] not in {"status", "finalize"}:
        namespace, parts = parts[1], parts[2:]
    if len(parts) > DEEPEST:
        return None
    plural, name, subresource = (*parts, "", "")[:DEEPEST]
    kind = kinds.get((path.group, path.version, plural))
    if kind is None or (namespace and not kind.namespaced):
        return None
    if kind.namespaced and name and not namespace:
        return None
    if subresource and subresource not in {each.name for each in kind.subresources}:
        return None
    return Target(kind=kind, namespace=namespace, name=name, subresource=subresource)


_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch"}


def verb_of(method: str, target: Target, query: Query, *, is_watch: bool) -> str:
    """What rights are about: `get`, `list`, `watch`, `create` ..."""
    if method in {"GET", "HEAD"}:
        if target.name and not is_watch:
            return "get"
        return "watch" if is_watch or flag(query, "watch") else "list"
    if method == "DELETE":
        return "delete" if target.name else "deletecollection"
    return _VERBS.get(method, method.lower())


def text(query: Query, name: str) -> str:
    """A parameter; empty where it is not given."""
    given = query.get(name)
    return given[-1] if given else ""


def flag(query: Query, name: str) -> bool:
    """A parameter that is true or false."""
    given = text(query, name)
    if given in TRUE:
        return True
    if given in FALSE:
        return False
    raise bad_request(f'strconv.ParseBool: parsing "{given}": invalid syntax')


def number(query: Query, name: str) -> int | None:
    """A parameter that is a whole number."""
    given = text(query, name)
    if not given:
        return None
    try:
        return int(given)
    except ValueError:
        raise bad_request(f'strconv.ParseInt: parsing "{given}": invalid syntax') from None


def is_version(text: str) -> bool:
    """Is it the number of a version? Other digits than ours are digits, too."""
    return text.isascii() and text.isdecimal() and len(text) <= LONGEST_VERSION


class Writing(Value):
    """How something is written: on trial, by which manager, how strict about unknown fields.

    is_whole: the request says all that the object is to be, and not only what changes.
    """

    dry_run: bool = False
    manager: str = ""
    validation: str = "Warn"
    force: bool = False
    is_whole: bool = False


VALIDATIONS = ("Ignore", "Strict", "Warn")
LONGEST_MANAGER = 128


def writing_of(query: Query, options: str) -> Writing:
    """The options of a write. options: what they are called in messages, `CreateOptions`."""
    dry_run = list(query.get("dryRun", ()))
    validation = text(query, "fieldValidation") or "Warn"
    causes: list[Cause] = []
    if dry_run and dry_run != ["All"]:
        causes.append(not_supported("dryRun", dry_run, ["All"]))
    if validation not in VALIDATIONS:
        causes.append(not_supported("fieldValidation", validation, ["", *VALIDATIONS]))
    if causes:
        raise wrong_options(options, causes)
    return Writing(
        dry_run=bool(dry_run),
        manager=text(query, "fieldManager")[:LONGEST_MANAGER],
        validation=validation,
        force=flag(query, "force"),
    )


def wrong_options(options: str, causes: Sequence[Cause]) -> StatusError:
    """The parameters of a request are wrong."""
    lines = [f"{each.field}: {each.message}" for each in causes]
    shown = lines[0] if len(lines) == 1 else f"[{', '.join(lines)}]"
    return StatusError(
        Reason.INVALID,
        f'{options}.meta.k8s.io "" is invalid: {shown}',
        details={
            "group": "meta.k8s.io",
            "kind": options,
            "causes": [cause_json(each) for each in causes],
        },
    )


class Listing(Value):
    """Which objects of a kind, and from when on. limit: 0 for all of them."""

    labels: str = ""
    fields: str = ""
    limit: int = 0
    token: str = ""
    version: str = ""
    match: str = ""
    timeout_s: int | None = None
    bookmarks: bool = False
    initial: bool = False


def listing_of(query: Query) -> Listing:
    """The options of a list or a watch."""
    found = Listing(
        labels=text(query, "labelSelector"),
        fields=text(query, "fieldSelector"),
        limit=max(0, number(query, "limit") or 0),
        token=text(query, "continue"),
        version=text(query, "resourceVersion"),
        match=text(query, "resourceVersionMatch"),
        timeout_s=number(query, "timeoutSeconds"),
        bookmarks=flag(query, "allowWatchBookmarks"),
        initial=flag(query, "sendInitialEvents"),
    )
    is_watch = flag(query, "watch")
    causes: list[Cause] = []
    if found.initial and not is_watch:
        causes.append(
            forbidden_field("sendInitialEvents", "sendInitialEvents is forbidden for list")
        )
    elif found.initial and found.match != "NotOlderThan":
        text_ = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        causes.append(forbidden_field("resourceVersionMatch", text_))
    elif found.match and is_watch and not found.initial:
        text_ = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        causes.append(forbidden_field("resourceVersionMatch", text_))
    elif found.match and not found.version and not found.initial:
        text_ = "resourceVersionMatch is forbidden unless resourceVersion is provided"
        causes.append(forbidden_field("resourceVersionMatch", text_))
    if causes:
        raise wrong_options("ListOptions", causes)
    if found.version and not is_version(found.version):
        raise bad_request(f"resourceVersion: Invalid value: {found.version!r}")
    return found
