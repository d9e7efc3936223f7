"""How large and how plain a request must be, so that it costs others nothing to look at.

Every job is kept in memory, written to the store and shown to others: what is asked for is bounded,
and what is shown to others has no control characters, which could write on their terminals or
forge lines of what they read.
"""

from collections.abc import Iterator, Mapping

import msgspec

from muster.lifecycle.refusal import Refusal, TooLarge, Unprintable
from muster.lifecycle.submission import Submission
from muster.model.job import Dependency, JobSpec
from muster.model.launch import NO_LAUNCH, Launch
from muster.model.value import Value, replace

KIB, MIB = 1_024, 1_024 * 1_024

MOST_NAME = 1_000
MOST_LABELS = 1_000
MOST_LABEL_NAME = 256
MOST_LABEL_VALUE = 4 * KIB
MOST_PATH = 4 * KIB
MOST_CONDITIONS = 10_000
MOST_SPEC = 64 * KIB
"""In bytes: all of a request but what it runs and what it waits for."""

MOST_ENV = 1 * MIB
MOST_COMMAND = 1 * MIB
MOST_SCRIPT = 4 * MIB
"""As in Slurm."""


class _Size(Value, gc=False):
    """How large one part of a request is, and may be."""

    what: str
    size: int
    most: int
    unit: str = "bytes"


def sizes_are_bounded(asked: Submission) -> Refusal | None:
    return too_large(asked.spec)


def texts_are_plain(asked: Submission) -> Refusal | None:
    return unprintable(asked.spec)


def too_large(spec: JobSpec) -> Refusal | None:
    """What of the request is larger than it may be."""
    for each in _sizes(spec):
        if each.size > each.most:
            return Refusal(
                reason=TooLarge(what=each.what, size=each.size, most=each.most),
                advice=f"{each.what} has {each.size} {each.unit}; it may have {each.most}. "
                "Keep what is large in a file, and name the file.",
            )
    return None


def unprintable(spec: JobSpec) -> Refusal | None:
    """Which text that others see has a control character in it."""
    for what, text in _texts(spec):
        if not text.isprintable():
            return Refusal(
                reason=Unprintable(what=what),
                advice=f"{what} has a control character in it: {text[:80]!r}. "
                "Write it in one line of letters, digits and signs.",
            )
    return None


def kept_bytes(spec: JobSpec, *, parts: int = 1) -> int:
    """How much is written for a request that makes so many jobs: what is large is kept once."""
    shared = len(msgspec.json.encode(replace(spec, launch=NO_LAUNCH)))
    # As a job and as an event.
    each = 2 * min(shared, KIB)
    return shared + parts * each + len(msgspec.json.encode(spec.launch))


def _sizes(spec: JobSpec) -> Iterator[_Size]:
    yield _Size(what="The name", size=_bytes(spec.name), most=MOST_NAME)
    yield _Size(what="The list of labels", size=len(spec.labels), most=MOST_LABELS, unit="entries")
    for name, value in spec.labels.items():
        yield _Size(what="The name of a label", size=_bytes(name), most=MOST_LABEL_NAME)
        yield _Size(what=f"Label {name}", size=_bytes(value), most=MOST_LABEL_VALUE)
    yield _Size(
        what="The list of conditions in `after`",
        size=_shared(spec.after),
        most=MOST_CONDITIONS,
        unit="entries",
    )
    plain = msgspec.json.encode(replace(spec, launch=NO_LAUNCH, after=()))
    yield _Size(what="The request", size=len(plain), most=MOST_SPEC)
    yield from _of_launch(spec.launch)


def _shared(after: tuple[Dependency, ...]) -> int:
    """Without those of single parts of an array, of which each part keeps its own."""
    return sum(each.part is None for each in after)


def _of_launch(launch: Launch) -> Iterator[_Size]:
    yield _Size(what="The environment", size=_pairs(launch.env), most=MOST_ENV)
    yield _Size(what="The command", size=sum(map(_bytes, launch.argv)), most=MOST_COMMAND)
    yield _Size(what="The script", size=_bytes(launch.script or ""), most=MOST_SCRIPT)
    for what, path in _paths(launch):
        yield _Size(what=what, size=_bytes(path), most=MOST_PATH)


def _texts(spec: JobSpec) -> Iterator[tuple[str, str]]:
    """What others than its user see of a request."""
    yield "The name", spec.name
    for name, value in spec.labels.items():
        yield "The name of a label", name
        yield f"Label {name!r}", value
    for group in spec.groups:
        yield "The name of a group", group.name
        where = group.where
        for text in (*where.nodes, *where.not_nodes):
            yield "The name of a node", text
        for rule in (*where.require, *where.prefer):
            for text in (rule.key, *rule.values):
                yield "A rule about node labels", text
        for near in (*where.near, *where.apart):
            for text in (near.key, near.value, near.level):
                yield "A rule about other jobs", text
    yield from _paths(spec.launch)


def _paths(launch: Launch) -> Iterator[tuple[str, str]]:
    """Those who look after the queue see these too."""
    named = {
        "The working folder": launch.workdir,
        "The name of the input file": launch.stdin,
        "The name of the output file": launch.stdout,
        "The name of the error file": launch.stderr,
        "The name of the image": launch.image,
        "The path of checkpoints": None if launch.checkpoint is None else launch.checkpoint.path,
    }
    for what, path in named.items():
        if path is not None:
            yield what, path


def _pairs(pairs: Mapping[str, str]) -> int:
    return sum(_bytes(name) + _bytes(value) + 2 for name, value in pairs.items())


def _bytes(text: str) -> int:
    # Most texts are plain, and then this is their length.
    return len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))
