"""Why conformance tests do not pass, in our words: the first row that fits what was observed."""

from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """What sort of reason it is."""

    WRONG = "wrong"
    MISSING = "missing"
    ONE_MACHINE = "not meant for one machine"
    MENDED = "mended since"
    NOT_RUN = "not run to its end"

    @property
    def meaning(self) -> str:
        """As a sentence ends with it."""
        return {
            Kind.WRONG: "Muster does something else than Kubernetes, or too late",
            Kind.MISSING: "Muster does not have what they ask for",
            Kind.ONE_MACHINE: "they ask for what Muster means to do otherwise",
            Kind.MENDED: "they found something that was mended after they were run",
            Kind.NOT_RUN: "they were not run to their end on this tree",
        }[self]


@dataclass(frozen=True, kw_only=True)
class Reason:
    """Tests by patterns of their names and of what they said, and why they do not pass."""

    tests: str
    said: str
    kind: Kind
    words: str


REASONS: tuple[Reason, ...] = (
    Reason(
        tests=r"skip-me",
        said=r"mutation-stage-1",
        kind=Kind.MISSING,
        words="match conditions are not evaluated, so that a webhook is asked more often",
    ),
    Reason(
        tests=r"invalid match conditions",
        said=r"should have been denied by the api-server",
        kind=Kind.MISSING,
        words="match conditions are kept, and not read",
    ),
    Reason(
        tests=r"life of a pod",
        said=r"no node offers example\.com/dongle",
        kind=Kind.MISSING,
        words="nodes offer GPUs, and no resources that others invent",
    ),
    Reason(
        tests=r"last key",
        said=r"to be == <int>: 400",
        kind=Kind.MENDED,
        words="a list in pages ends after five minutes, with a token by which it goes on",
    ),
    Reason(
        tests=r"IssuerDiscovery",
        said=r'pod "oidc-discovery-validator" failed',
        kind=Kind.ONE_MACHINE,
        words="pods have the machine's names, in which there are no Services",
    ),
    Reason(
        tests=r"variable names with various prefixes",
        said=r'expected "1-data-1=value-1"',
        kind=Kind.MENDED,
        words="names of variables may begin with a digit",
    ),
    Reason(
        tests=r"CSIInlineVolumes",
        said=r"csi: Forbidden: Muster does not support it",
        kind=Kind.MISSING,
        words="volumes are folders of the machine and what ConfigMaps and Secrets hold",
    ),
)
