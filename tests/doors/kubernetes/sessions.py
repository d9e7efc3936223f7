"""Sessions that a real Kubernetes 1.36 answered: how they are kept, masked and played.

A session is a file of lines, and the first letter of each says what it is:

    $  a command             >  what it printed
    !  what it said on stderr =  its exit code, unless it is 0
    &  a command that takes long: the next ones are typed meanwhile
    %  a command whose answer is not kept
    ~  a command that is typed again until it goes well: waiting for something
    <  a file, with its lines after |
    #  `# differs: why` Muster means to answer the next command otherwise,
       `# may differ: why` the same, but not when it is asked early,
       `# mask: node, order` what else is not compared of it; all else is a remark
"""

import re
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from doors.kubernetes.cluster import PATIENCE_S, PATIENT, KubernetesHouse, Ran

SESSIONS = Path(__file__).parents[2] / "golden" / "kubernetes" / "sessions"
# What Kubernetes leaves out of the ends of names, so that they spell nothing.
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_AGE = r"(?:\d+d)?(?:\d+h)?(?:\d+m)?\d+s|\d+h(?:\d+m)?|\d+d(?:\d+h)?"

ALWAYS = (
    # What the library of clients logs about its own watches depends on who is quicker.
    (r"(?m)^[EIW]\d{4} .* reflector\.go.*\n?", ""),
    (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UID"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "INSTANT"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ \+0000", "INSTANT"),
    (r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d \+0000", "INSTANT"),
    (r'(resourceVersion\\*"?: ?\\*"?)\d+', r"\1VERSION"),
    (r"(Resource Version: +)\d+", r"\1VERSION"),
    # How often an event was seen, and since when.
    (rf"(?:{_AGE}) \(x\d+ over (?:{_AGE})\)", "AGE"),
    # Tolerations say `for 300s`, which is no age; neither is a time of Go's, `1m0s`.
    (rf"(?<!for )(?<![\w.=-])(?:{_AGE})\b", "AGE"),
    (r"\b(?:\d{1,3}\.){3}\d{1,3}:\d{2,}", "ADDRESS"),
    (r"\b(?:\d{1,3}\.){3}\d{1,3}\b", "IP"),
    (r"(containerd://[0-9a-f]{64}|podman://[\w.-]+)", "CONTAINER"),
    (r"sha256:[0-9a-f]{64}", "IMAGE"),
    (r'"[0-9a-f]{64}"', '"ID"'),
    (r"/(LIVE|MERGED)-\d+/", r"/\1/"),
    (r"GPU-pretend-\d+|\breal[12]/gpu\d+", "GPU"),
    (r"kubectl-edit-\d+", "kubectl-edit-NUMBER"),
    (r"(?m)^[EIW]\d{4} [\d:.]+ +\d+ ", "LOGGED "),
    (r"<TOKEN>|eyJ[\w.-]+", "TOKEN"),
    (r"(?m)^(real|user|sys) [\d.]+$", r"\1 SECONDS"),
    (r"(too old resource version: 1) \(\d+\)", r"\1 (VERSION)"),
    (r"(Too large resource version: \d+, current:) \d+", r"\1 VERSION"),
    (rf"-[0-9a-f]{{6,10}}-[{_LETTERS}]{{5}}\b", "-HASH-XXXXX"),
    (rf"-[{_LETTERS}]{{5}}\b", "-XXXXX"),
    (r"(pod-template-hash=)[0-9a-z]+", r"\1HASH"),
    # Hashes of templates, and the minute of a CronJob's job.
    (r"-(?=[a-z]*\d)[0-9a-z]{8,10}\b", "-HASH"),
    (r"\.[0-9a-f]{16}\b", ".EVENT"),
    (r"(reportingInstance: default-scheduler)-\w+", r"\1"),
    # Columns are as wide as their widest cell, which may be masked.
    (r"(?<=\S) {2,}", "  "),
    (r"(?m)[ \t]+$", ""),
)
"""What no two runs have in common."""


def _in_order(text: str) -> str:
    return "\n".join(sorted(text.splitlines()))


def _once(text: str) -> str:
    return "\n".join(dict.fromkeys(text.splitlines()))


SOMETIMES: dict[str, Callable[[str], str]] = {
    # Which of two equal nodes it is.
    "node": lambda text: re.sub(r"\breal[12]\b", "NODE", text),
    # Ages of more than ten minutes, which elsewhere are amounts of CPUs.
    "minutes": lambda text: re.sub(r"\b\d+m\b", "AGE", text),
    # Lines of things that happen at the same time.
    "order": _in_order,
    # Reasons not to delete pods, which kubectl keeps in a map of Go's.
    "reasons": lambda text: " ".join(sorted(re.sub(r"[][,]", " ", text).split())),
    # Lines that are there once more when it takes longer.
    "repeats": _once,
    # Probes that took longer than they may, on a busy machine.
    "slowness": lambda text: re.sub(r"(?m)^.* probe failed: timed out\n?", "", text),
    # How far something has counted meanwhile.
    "numbers": lambda text: re.sub(r"\d+", "N", text),
    # What several wrote at the same time, of whom one ends no line.
    "shuffled": lambda text: "".join(sorted(text.replace("\n", ""))),
    # What `script` types when its input ends.
    "typed": lambda text: text.replace("^@", ""),
    # What is shown only by who attaches, or asks, before a command has ended.
    "raced": lambda text: re.sub(r"(?m)^(warning: couldn't attach|from-run|tar: ).*\n?", "", text),
    # What follows from a template by a hash of our own.
    "hash": lambda text: re.sub(rf"(?<=[-=])[{_LETTERS}]{{7,10}}\b", "HASH", text),
    # How far something has come at the moments when kubectl looks.
    "progress": lambda text: re.sub(r"(?m)^Waiting for .*\n?", "", text),
    # How many of those that were just asked for are there already.
    "readiness": lambda text: re.sub(
        r"(?m)^ *((un)?available|ready|terminating)Replicas: .*\n?"
        r"|Deployment (does not have|has) minimum availability\.\n *reason: .*\n *status: .*",
        "",
        text,
    ),
    # Whether a CronJob is held, where the session holds it so that it starts no second job.
    "suspended": lambda text: re.sub(r"(<none> +|Suspend: +)(True|False)", r"\1HELD", text),
    # How many pods of before are still ending, also as addresses of a Service.
    "ending": lambda text: re.sub(
        r"(?m)^pod/\S+ +\d/\d +Terminating .*\n?| \+ \d+ more\.\.\.", "", text
    ),
    # Whether an autoscaler has looked for the first time.
    "looked": lambda text: re.sub(r"(?m)^(d +Deployment/d .* )[01]( +AGE)$", r"\1N\2", text),
    # How many of a long list are left out.
    "more": lambda text: re.sub(r"\+ \d+ more", "+ more", text),
}
"""What the line before a command may name."""


class Typed(StrEnum):
    """How a line is typed, and what is done with its answer."""

    COMPARED = "$"
    MEANWHILE = "&"
    SET_UP = "%"
    AWAITED = "~"


@dataclass
class Case:
    """One command and its answer.

    differs: why Muster means to answer otherwise; at_times: unless it is asked early.
    """

    line: str
    typed: Typed = Typed.COMPARED
    differs: str = ""
    at_times: bool = False
    masks: tuple[str, ...] = ()
    out: list[str] = field(default_factory=list[str])
    err: list[str] = field(default_factory=list[str])
    code: int = 0

    @property
    def is_compared(self) -> bool:
        return self.typed in {Typed.COMPARED, Typed.MEANWHILE}

    def masked(self, text: str) -> str:
        for pattern, mask in ALWAYS:
            text = re.sub(pattern, mask, text)
        for name in self.masks:
            text = SOMETIMES[name](text)
        return text.strip()

    @property
    def wanted(self) -> tuple[str, str, int]:
        return self.masked("\n".join(self.out)), self.masked("\n".join(self.err)), self.code

    def found(self, ran: Ran) -> tuple[str, str, int]:
        return self.masked(ran.out), self.masked(ran.err), ran.code


@dataclass
class Session:
    """A file of commands, in their order."""

    name: str
    files: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    cases: list[Case] = field(default_factory=list[Case])

    @property
    def compared(self) -> list[Case]:
        return [each for each in self.cases if each.is_compared]

    @property
    def programs(self) -> list[str]:
        """The versions of kubectl that it types."""
        words = [word for each in self.cases for word in each.line.split()]
        return sorted({word for word in words if re.fullmatch(r"kubectl-1\.\d+", word)})


def all_sessions() -> list[Session]:
    return [read(path) for path in sorted(SESSIONS.glob("*.txt"))]


def read(path: Path) -> Session:
    session = Session(name=path.stem)
    lines: list[str] = []
    said: dict[str, str] = {}
    for text in path.read_text(encoding="utf-8").splitlines():
        mark, rest = text[:1], text[2:]
        match mark:
            case "<":
                lines = session.files.setdefault(rest, [])
            case "|":
                lines.append(rest)
            case "#":
                word, _, more = rest.partition(": ")
                said[word] = more
            case "$" | "&" | "%" | "~":
                session.cases.append(_case(Typed(mark), rest, said))
                said.clear()
            case _:
                _answer(session.cases[-1], mark, rest)
    return session


def _case(typed: Typed, line: str, said: Mapping[str, str]) -> Case:
    masks = said.get("mask", "")
    return Case(
        line=line,
        typed=typed,
        differs=said.get("differs", said.get("may differ", "")),
        at_times="may differ" in said,
        masks=tuple(masks.split(", ")) if masks else (),
    )


def _answer(case: Case, mark: str, rest: str) -> None:
    match mark:
        case ">":
            case.out.append(rest)
        case "!":
            case.err.append(rest)
        case "=":
            case.code = int(rest)
        case _:
            raise AssertionError(f"after {case.line}: what is {mark} {rest}?")


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What Muster said to a command that is compared."""

    case: Case
    ran: Ran

    @property
    def is_equal(self) -> bool:
        return self.case.wanted == self.case.found(self.ran)

    @property
    def is_surprising(self) -> bool:
        """It differs and should not, or does not and should."""
        return not self.case.at_times and self.is_equal is bool(self.case.differs)

    @property
    def report(self) -> str:
        found = self.case.found(self.ran)
        return f"{self.case.differs}\nwanted {self.case.wanted}\nfound  {found}"


def played(session: Session, house: KubernetesHouse) -> list[Answer]:
    """Type a session, and tidy up behind it."""
    for file, lines in session.files.items():
        (house.work / file).write_text("\n".join(lines) + "\n", encoding="utf-8")
    with ThreadPoolExecutor() as aside:
        try:
            answers = [(case, _typed(case, house, aside)) for case in session.cases]
            return [
                Answer(case=case, ran=ran if isinstance(ran, Ran) else ran.result())
                for case, ran in answers
                if case.is_compared
            ]
        finally:
            _tidy(house)


def _typed(case: Case, house: KubernetesHouse, aside: ThreadPoolExecutor) -> Ran | Future[Ran]:
    match case.typed:
        case Typed.COMPARED:
            return house.shell(case.line)
        case Typed.MEANWHILE:
            return aside.submit(house.shell, case.line)
        case Typed.SET_UP:
            ran = house.shell(case.line)
            assert ran.code == 0, f"{case.line}: {ran.out}{ran.err}"
            return ran
        case Typed.AWAITED:
            return _awaited(case.line, house)


def _awaited(line: str, house: KubernetesHouse) -> Ran:
    deadline = time.monotonic() + PATIENCE_S
    while (ran := house.shell(line)).code:
        assert time.monotonic() < deadline, f"waited in vain for {line}: {ran.out}{ran.err}"
    return ran


def _tidy(house: KubernetesHouse) -> None:
    """Leave the house as it was found: no namespace of the session, no pod, no file."""
    for file in house.work.iterdir():
        file.unlink()
    house.shell("kubectl config set-context lab --namespace=default")
    spaces = house.kubectl("get namespaces -o name").split()
    ours = [each for each in spaces if not _was_there(each)]
    for each in (*ours, "namespace/default"):
        space = each.partition("/")[2]
        house.shell(f"kubectl delete all --all -n {space} --force --grace-period=0")
    if ours:
        house.kubectl(f"delete {' '.join(ours)} --ignore-not-found {PATIENT}")


def _was_there(namespace: str) -> bool:
    name = namespace.partition("/")[2]
    return name == "default" or name.startswith("kube-")
