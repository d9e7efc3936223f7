"""Pods of Muster's Kubernetes API under Slurm: what runs in their place, and what it says. Pure.

Each pod is one task. A few lines of shell begin its container's command, begin it again where the
pod wants that, and write into a folder of the user's home when runs began and how they ended.
"""

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime

from muster.backends.attempts import Look, Phase
from muster.backends.base import Run
from muster.backends.notes import NotedPod
from muster.backends.slurm.listing import Key
from muster.launch.pods.names import renamed
from muster.launch.pods.variables import NodeFacts, command, environment
from muster.launch.prepare import PreparedAttempt
from muster.lifecycle.pod_abilities import has_token, taken_by_pods
from muster.model.cluster import Ability
from muster.model.job import Exited, OutOfMemory, Signaled
from muster.model.launch import Launch
from muster.model.pod import (
    Container,
    ContainerRun,
    ContainerStatus,
    PodNote,
    PodStatus,
)
from muster.model.pod import Phase as ContainerPhase
from muster.model.value import Instant, Value, replace

FOLDER = ".muster/pods"
"""In the home of the pod's user, which the nodes and this machine share."""

InImage = Callable[[Run], tuple[str, ...]]
"""The command of a plain run, in its image where one is run."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_GIVEN = ("MUSTER_", "MASTER_")
_LAST_MS = 1 << 53
_KILLED, _OUT_OF_MEMORY, _SIGKILL = 137, 125, 9
_GOES_WITHOUT = (
    "Muster's API is not reached from cluster nodes: "
    "the token of the pod's service account is not mounted"
)

_BEGIN = """\
rank=${{SLURM_PROCID:-0}}
folder=$HOME/{folder}/{key}
mask=$(umask)
umask 077
mkdir -p "$folder" || exit
if [ "$rank" = 0 ]; then
    find "$HOME/{folder}" -mindepth 1 -maxdepth 1 -mtime +{kept_days} -exec rm -rf {{}} +
fi
says() {{ echo "$*" >> "$folder/$rank.runs"; }}
eval "own=\\$MUSTER_POD_$rank"
for each in $(env | sed -n 's/^\\(MUSTER_POD_[0-9]*\\)=.*/\\1/p'); do unset "$each"; done
eval "$own"
unset own
ending= pause=0 run=0
trap 'ending=1' TERM
trap : HUP INT QUIT USR1 USR2
while :; do
    began=$(date +%s)
    says began "$(date +%s%3N)"
    (umask "$mask"; container) >> "$folder/$rank.$run.log" 2>&1 < /dev/null
    code=$?
    says ended "$(date +%s%3N)" "$code"
    case $ending$again in 1*|*never) break;; esac
    [ "$again$code" = on_failure0 ] && break
    [ $(($(date +%s) - began)) -ge 600 ] && pause=0
    sleep "$pause"
    [ -n "$ending" ] && break
    run=$((run + 1)) pause=$((pause ? pause * 2 : 10))
    [ "$pause" -gt 300 ] && pause=300
done
says over
[ -n "$counts" ] || exit 0
exit "$code"
"""
"""Pauses are those of a kubelet: none before the second run, then ever longer ones."""

_KEPT_DAYS = 60
_DONE_HERE = frozenset({Ability.PODS, Ability.POD_GANGS})


class NotPlainError(Exception):
    """The user: a pod that waited before Muster knew what Slurm can do for pods, and wants more."""

    def __init__(self, beyond: frozenset[Ability]) -> None:
        super().__init__(
            f"Slurm does not do all that the pod asks for ({', '.join(sorted(beyond))}); "
            "create it again, and it is placed where that is done"
        )


def as_commands(run: Run, key: Key, prepared: PreparedAttempt, in_image: InImage) -> Run:
    """The same attempt without pods; MissingError where a ConfigMap or Secret is not there.

    Values of variables may be secret: what is on the command line everybody on the node can see.
    """
    launch = run.launch
    if beyond := taken_by_pods(launch) - _DONE_HERE:
        raise NotPlainError(beyond)
    nodes = [each.node for each in run.allocation.placements]
    mates = dict(zip((pod.hostname for pod in launch.pods), nodes, strict=False))
    leader = None if launch.gang is None else launch.gang.leader
    own = {
        f"MUSTER_POD_{rank}": _own_lines(run, prepared, rank, mates, in_image)
        + ("counts=1\n" if leader in {None, rank} else "counts=\n")
        for rank in range(len(launch.pods))
    }
    begin = _BEGIN.format(folder=FOLDER, key=folder_of(key), kept_days=_KEPT_DAYS)
    plain = Launch(
        argv=("/bin/sh", "-c", begin),
        env=own,
        stdout="/dev/null",
        umask=launch.umask,
        warn=launch.warn,
        checkpoint=launch.checkpoint,
    )
    return replace(run, launch=plain)


def folder_of(key: Key) -> str:
    """What the folder of an attempt is called: several Musters may run jobs of one user."""
    return f"{key.site}.{key.job}.{key.attempt}"


def noted(launch: Launch) -> tuple[NotedPod, ...]:
    """What has to be known of pods to say how they are."""
    return tuple(
        NotedPod(
            container=pod.containers[0].name,
            image=pod.containers[0].image,
            without_token=has_token(pod),
        )
        for pod in launch.pods
    )


def _own_lines(
    run: Run,
    prepared: PreparedAttempt,
    rank: int,
    mates: Mapping[str, str],
    in_image: InImage,
) -> str:
    """What one pod has of its own: its variables, its command and when that is begun again."""
    pod = run.launch.pods[rank]
    container = pod.containers[0]
    given = {
        name: text
        for name, text in {**prepared.env, **prepared.tasks[rank].env}.items()
        if name.startswith(_GIVEN)
    }
    facts = NodeFacts(name=prepared.tasks[rank].node, ip="")
    found = environment(container, run.supplies, facts, given)
    names = {each.name for each in container.env}
    env = {
        name: renamed(text, mates) if name in names else text
        for name, text in found.items()
        if name in names or name not in given
    }
    entrypoint, args = command(container, {**found, **env})
    argv = tuple(renamed(word, mates) for word in (*entrypoint, *args))
    words = in_image(_plain_run(run, rank, container, argv))
    begins = ""
    if container.workdir and words == argv:
        begins = f"cd -- {shlex.quote(container.workdir)} || return\n"
    elif container.workdir:
        inside = ("/bin/sh", "-c", 'cd -- "$0" && exec "$@"', container.workdir, *argv)
        words = in_image(_plain_run(run, rank, container, inside))
    return (
        f"again={pod.restart.value}\n"
        f"container() {{\n{_exports(env)}{begins}exec {_odd(env)}{shlex.join(words)}\n}}\n"
    )


def _plain_run(run: Run, rank: int, container: Container, argv: tuple[str, ...]) -> Run:
    """The container's command as that of a job with one task."""
    allocation = replace(run.allocation, placements=(run.allocation.placements[rank],))
    return replace(run, allocation=allocation, launch=Launch(argv=argv, image=container.image))


def _exports(env: Mapping[str, str]) -> str:
    plain = [name for name in sorted(env) if _NAME.fullmatch(name)]
    return "".join(f"export {name}={shlex.quote(env[name])}\n" for name in plain)


def _odd(env: Mapping[str, str]) -> str:
    """Names with dots and dashes, which no shell exports."""
    odd = [f"{name}={env[name]}" for name in sorted(env) if not _NAME.fullmatch(name)]
    return f"env -- {shlex.join(odd)} " if odd else ""


class Tale(Value):
    """What the lines of one pod say: its runs, of which the last may go on. over: none follows."""

    runs: tuple[ContainerRun, ...] = ()
    goes_on: bool = False
    over: bool = False


def tale_of(lines: bytes) -> Tale:
    """The user can write into that file: what makes no sense is left out."""
    runs: list[ContainerRun] = []
    goes_on = over = False
    for line in lines.decode("ascii", "replace").splitlines():
        match line.split():
            case ["began", at] if _is_time(at):
                runs.append(ContainerRun(began_at=int(at), ended_at=int(at)))
                goes_on = True
            case ["ended", at, code] if goes_on and _is_time(at) and _is_code(code):
                runs[-1] = replace(runs[-1], ended_at=int(at), code=int(code))
                goes_on = False
            case ["over"] if runs and not goes_on:
                over = True
            case _:
                pass
    return Tale(runs=tuple(runs), goes_on=goes_on, over=over)


def _is_time(text: str) -> bool:
    return text.isdecimal() and len(text) < 17 and int(text) < _LAST_MS


def _is_code(text: str) -> bool:
    return text.isdecimal() and len(text) < 4 and int(text) < 256


def status_of(pod: NotedPod, tale: Tale, seen: Look, now: Instant) -> PodStatus | None:
    """How a pod is; None while nothing of it has begun."""
    if seen.started_at is None:
        return None
    is_over = tale.over or seen.phase is Phase.OVER
    *before, run = tale.runs or (_only_run(seen, now),)
    is_open = tale.goes_on or not tale.runs
    status = ContainerStatus(
        name=pod.container,
        image=pod.image,
        restarts=len(before),
        last=before[-1] if before else None,
    )
    if is_open and not is_over:
        status = replace(
            status, phase=ContainerPhase.RUNNING, at=run.began_at, ready=True, started=True
        )
    else:
        run = _broken_off(run, seen, now) if is_open else _out_of_memory(run, seen)
        status = replace(status, phase=ContainerPhase.ENDED, at=run.ended_at, ended=run)
    return PodStatus(containers=(status,), notes=tuple(_notes(pod, seen.started_at)), over=is_over)


def _notes(pod: NotedPod, at: Instant) -> Iterator[PodNote]:
    if pod.without_token:
        yield PodNote(at=at, reason="NoToken", text=_GOES_WITHOUT, container=pod.container)


def _only_run(seen: Look, now: Instant) -> ContainerRun:
    """Of which nothing is written, or nothing that can be seen from here."""
    began = seen.started_at or now
    return ContainerRun(began_at=began, ended_at=max(began, seen.ended_at or now))


def _broken_off(run: ContainerRun, seen: Look, now: Instant) -> ContainerRun:
    """It was ended with all that runs there, before it could write how."""
    ended = replace(run, ended_at=max(run.began_at, seen.ended_at or now))
    if isinstance(seen.why, Exited):
        return replace(ended, code=seen.why.code)
    if isinstance(seen.why, Signaled):
        return replace(ended, signal=seen.why.signal)
    is_short = isinstance(seen.why, OutOfMemory)
    return replace(ended, signal=_OUT_OF_MEMORY if is_short else _SIGKILL)


def _out_of_memory(run: ContainerRun, seen: Look) -> ContainerRun:
    is_so = isinstance(seen.why, OutOfMemory) and run.code == _KILLED
    return replace(run, signal=_OUT_OF_MEMORY) if is_so else run


def end_of(leader: Tale, seen: Look) -> Look:
    """A gang with a leader ends as that did."""
    if seen.phase is not Phase.OVER or not leader.over or isinstance(seen.why, OutOfMemory):
        return seen
    return replace(seen, why=Exited(code=leader.runs[-1].code))


def log_lines(raw: bytes, began_at: Instant, *, is_whole: bool) -> bytes:
    """A log as container runtimes keep it. Slurm knows no times of lines: it is that of the run."""
    at = datetime.fromtimestamp(began_at / 1_000, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f000Z")
    *lines, rest = raw.split(b"\n")
    head = f"{at} stdout ".encode()
    whole = b"".join(head + b"F " + line + b"\n" for line in lines)
    return whole + head + b"P " + rest + b"\n" if rest and is_whole else whole
