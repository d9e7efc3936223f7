"""Why conformance tests do not pass, in our words: the first row whose pattern a name has."""

from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """What sort of reason it is."""

    WRONG = "wrong"
    MISSING = "missing"
    ONE_MACHINE = "not meant for one machine"
    NOT_RUN = "not run to its end yet"

    @property
    def meaning(self) -> str:
        """As a sentence ends with it."""
        return {
            Kind.WRONG: "Muster does something else than Kubernetes, or too late",
            Kind.MISSING: "Muster does not have what they ask for",
            Kind.ONE_MACHINE: "they ask for what Muster means to do otherwise",
            Kind.NOT_RUN: "nobody has run them to their end",
        }[self]


@dataclass(frozen=True, kw_only=True)
class Reason:
    """Tests by a pattern of their names, and why they do not pass."""

    tests: str
    kind: Kind
    words: str


_NETWORK = "pods have the machine's network: no address of their own, and no names of Services"
_PORTS = "pods share the machine's ports, so that two cannot listen on the same one"
_CEL = "expressions of CEL are not evaluated"

REASONS: tuple[Reason, ...] = (
    Reason(
        tests=r"AdmissionPolicy|match conditions|skip-me",
        kind=Kind.MISSING,
        words=_CEL,
    ),
    Reason(
        tests=r"Aggregator",
        kind=Kind.MISSING,
        words="requests are not passed on to other API servers",
    ),
    Reason(
        tests=r"ConversionWebhook|FieldSelectors|different stored version",
        kind=Kind.MISSING,
        words="webhooks do not convert objects between versions",
    ),
    Reason(
        tests=r"AggregatedDiscovery|groupVersion and a resource",
        kind=Kind.MISSING,
        words="some older versions, such as autoscaling/v1, are not served beside the newest",
    ),
    Reason(tests=r"Events API", kind=Kind.MISSING, words="events.k8s.io is not served"),
    Reason(tests=r"DRA", kind=Kind.MISSING, words="resource.k8s.io is not served"),
    Reason(
        tests=r"last key|API chunking",
        kind=Kind.WRONG,
        words="pieces of a list are not of one moment, and do not expire",
    ),
    Reason(
        tests=r"update annotations|update labels|updates should be reflected|subpath expression",
        kind=Kind.MISSING,
        words="volumes of a pod that runs are not written again when their sources change",
    ),
    Reason(tests=r"Resize", kind=Kind.MISSING, words="resources do not change while a pod runs"),
    Reason(
        tests=r"Ephemeral Containers", kind=Kind.MISSING, words="use exec to look into a container"
    ),
    Reason(
        tests=r"RuntimeClass",
        kind=Kind.MISSING,
        words="classes are kept, and pods that name one are refused",
    ),
    Reason(
        tests=r"ImageVolume|CSIInline",
        kind=Kind.MISSING,
        words="volumes are folders of the machine and what ConfigMaps and Secrets hold",
    ),
    Reason(
        tests=r"variable names with various|Secrets should be consumable from pods in env",
        kind=Kind.WRONG,
        words="a variable whose value has several lines is left out",
    ),
    Reason(
        tests=r"Sysctl|privileged|AllowPrivilegeEscalation|NoExecute",
        kind=Kind.ONE_MACHINE,
        words="a pod has the rights of its person on a machine that others use, and no others",
    ),
    Reason(
        tests=r"\[sig-network\]|IssuerDiscovery|EtcHosts|hostAliases|PreStop|Proxy server",
        kind=Kind.ONE_MACHINE,
        words=_NETWORK,
    ),
    Reason(
        tests=r"StatefulSet|basic image|Guestbook|Update Demo|Lifecycle Hook",
        kind=Kind.ONE_MACHINE,
        words=_PORTS,
    ),
    Reason(
        tests=r"SchedulerPre|extended resource|captur\w+ the life of a pod|LimitRange",
        kind=Kind.MISSING,
        words="nodes offer GPUs, and no resources that others invent",
    ),
)
