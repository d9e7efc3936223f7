"""When each container of a pod starts, is looked at and stops. Pure; time is given.

It does what a kubelet does: init containers one after the other, sidecars from their place on,
then all others; whoever ended is started again as the pod says, ever later while it keeps failing.
Times are milliseconds; the same clock is used for what is due and for what is told.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from muster.model.pod import (
    Container,
    ContainerRun,
    ContainerStatus,
    Phase,
    PodLaunch,
    PodNote,
    PodStatus,
    Probe,
    Restart,
    Stage,
)
from muster.model.value import Value, replace

SECOND_MS = 1_000
FIRST_PAUSE_MS = 10_000
LONGEST_PAUSE_MS = 300_000
FORGIVEN_AFTER_MS = 600_000
"""Who has run for so long begins again with short pauses."""

CONFIG_PAUSE_MS = 2_000
MOST_NOTES = 50
CRASHES = "CrashLoopBackOff"


class ProbeKind(StrEnum):
    """What a probe is for."""

    STARTUP = "startup"
    LIVENESS = "liveness"
    READINESS = "readiness"


class Start(Value, tag="start", gc=False):
    """Start this container; `run` counts its starts from 0."""

    name: str
    run: int


class Halt(Value, tag="halt", gc=False):
    """Stop this container: its own last command, the signal, and after the grace the end."""

    name: str
    grace_ms: int


class Look(Value, tag="look", gc=False):
    """Ask the container this."""

    name: str
    kind: ProbeKind


Action = Start | Halt | Look


class Ended(Value, gc=False):
    """How a container ended. text: its last word. reason: where it is not plain."""

    at: int
    code: int = 0
    signal: int = 0
    reason: str = ""
    text: str = ""

    @property
    def is_failure(self) -> bool:
        return bool(self.code or self.signal)


class CannotStart(Value, gc=False):
    """Why a container was not started. It is tried again after a pause, ever longer if it grows."""

    at: int
    reason: str
    text: str
    grows: bool = False


@dataclass
class _Looking:
    """The answers to one probe so far."""

    next_ms: int
    good: int = 0
    bad: int = 0
    is_asked: bool = False


@dataclass
class _State:
    """One container."""

    spec: Container
    status: ContainerStatus
    runs: int = 0
    crashes: int = 0
    tries: int = 0
    not_before_ms: int = 0
    is_starting: bool = False
    is_halting: bool = False
    is_given_up: bool = False
    is_done: bool = False
    looks: dict[ProbeKind, _Looking] = field(default_factory=dict[ProbeKind, _Looking])

    @property
    def runs_now(self) -> bool:
        return self.status.phase is Phase.RUNNING or self.is_starting


class PodMachine:
    """The containers of one pod. Say what happened, and ask what is due."""

    def __init__(self, pod: PodLaunch) -> None:
        self._pod = pod
        self._states = {
            each.name: _State(spec=each, status=ContainerStatus(name=each.name, image=each.image))
            for each in pod.containers
        }
        self._notes: dict[tuple[str, str, str], PodNote] = {}
        self._is_initialized = False
        self._is_ending = False
        self._failed: Ended | None = None

    @property
    def is_over(self) -> bool:
        """Does nothing run any more, and will nothing be started?"""
        return self._is_ending and not any(each.runs_now for each in self._states.values())

    @property
    def result(self) -> tuple[int, int]:
        """The exit code and the signal of the first that failed; zeros when none did."""
        return (0, 0) if self._failed is None else (self._failed.code, self._failed.signal)

    def status(self, ip: str = "") -> PodStatus:
        """How it is now."""
        found = tuple(each.status for each in self._states.values())
        notes = tuple(self._notes.values())
        return PodStatus(containers=found, notes=notes, ip=ip, over=self.is_over)

    def due(self, now: int) -> list[Action]:
        """What is to be done now; what was said once is not said again."""
        if self._is_ending:
            return self._halts()
        return [*self._unhealthy_halts(), *self._starts(now), *self._looks(now)]

    def next_ms(self) -> int | None:
        """When something is due next, if time alone brings it."""
        if self._is_ending:
            return None
        times = [
            each.not_before_ms
            for each in self._states.values()
            if not each.runs_now and not each.is_done
        ]
        for each in self._states.values():
            if each.status.phase is Phase.RUNNING and not each.is_halting:
                times += [look.next_ms for look in each.looks.values() if not look.is_asked]
        return min(times, default=None)

    def note(self, note: PodNote) -> None:
        """Something happened that the user may want to know; the same again is counted."""
        key = (note.container, note.reason, note.text)
        before = self._notes.pop(key, None)
        if before is not None:
            note = replace(note, count=before.count + 1, first_at=before.first_at or before.at)
        self._notes[key] = note
        while len(self._notes) > MOST_NOTES:
            self._notes.pop(next(iter(self._notes)))

    def found_image(self, name: str, id: str) -> None:
        """The machine has the image of the container."""
        state = self._states[name]
        state.status = replace(state.status, image_id=id)

    def started(self, name: str, at: int, id: str = "") -> None:
        """The container runs."""
        state = self._states[name]
        state.is_starting, state.tries = False, 0
        state.looks = {
            kind: _Looking(next_ms=at + probe.delay_s * SECOND_MS)
            for kind, probe in _probes(state.spec).items()
        }
        is_started = ProbeKind.STARTUP not in state.looks
        state.status = replace(
            state.status,
            phase=Phase.RUNNING,
            at=at,
            restarts=state.runs - 1,
            started=is_started,
            ready=is_started and ProbeKind.READINESS not in state.looks,
            reason="",
            message="",
            ended=None,
            last=state.status.ended or state.status.last,
            id=id,
        )
        self.note(PodNote(at=at, reason="Created", text="Container created", container=name))
        self.note(PodNote(at=at, reason="Started", text="Container started", container=name))

    def could_not_pull(self, name: str, at: int, problem: str) -> None:
        """Its image cannot be had; that is tried again, later each time."""
        image = self._states[name].spec.image
        waits = f'Back-off pulling image "{image}"'
        told = (
            ("Failed", f'Failed to pull image "{image}": {problem}'),
            ("Failed", "Error: ErrImagePull"),
            ("BackOff", waits),
            ("Failed", "Error: ImagePullBackOff"),
        )
        for reason, text in told:
            is_bad = reason == "Failed"
            self.note(PodNote(at=at, reason=reason, text=text, container=name, warning=is_bad))
        why = f"{waits}: ErrImagePull: {problem}"
        self.could_not_start(
            name, CannotStart(at=at, reason="ImagePullBackOff", text=why, grows=True)
        )

    def could_not_start(self, name: str, why: CannotStart) -> None:
        """It waits, and is tried again."""
        state = self._states[name]
        state.is_starting = False
        state.runs -= 1
        pause = _pause(state.tries) if why.grows else CONFIG_PAUSE_MS
        state.tries += 1
        state.not_before_ms = why.at + max(pause, CONFIG_PAUSE_MS)
        state.status = replace(
            state.status, phase=Phase.WAITING, reason=why.reason, message=why.text
        )

    def ended(self, name: str, end: Ended) -> None:
        """The container is over; it may start again."""
        state = self._states[name]
        before = state.status
        run = ContainerRun(
            began_at=before.at if before.phase is Phase.RUNNING else end.at,
            ended_at=end.at,
            code=end.code,
            signal=end.signal,
            reason=end.reason,
            message=end.text,
            id=before.id,
        )
        state.is_starting = state.is_halting = False
        state.looks = {}
        state.status = replace(
            before,
            phase=Phase.ENDED,
            at=end.at,
            restarts=max(0, state.runs - 1),
            ready=False,
            started=False,
            ended=run,
            last=before.ended or before.last,
        )
        if self._is_ending:
            return
        if self._begins_again(state, end):
            self._pause(state, run)
            return
        state.is_done = True
        if end.is_failure and self._failed is None:
            self._failed = end
        self._end_if_done(state, end)

    def probed(self, name: str, kind: ProbeKind, *, at: int, text: str | None) -> None:
        """The answer to a probe; text: why it is no."""
        state = self._states[name]
        look, probe = state.looks.get(kind), _probes(state.spec).get(kind)
        if look is None or probe is None or state.status.phase is not Phase.RUNNING:
            return
        look.is_asked, look.next_ms = False, at + probe.period_s * SECOND_MS
        look.good, look.bad = (0, look.bad + 1) if text is not None else (look.good + 1, 0)
        if text is not None:
            words = f"{kind.capitalize()} probe failed: {text}"
            self.note(PodNote(at=at, reason="Unhealthy", text=words, container=name, warning=True))
        self._judge(state, kind, (look, probe), at)

    def stop(self, at: int) -> None:
        """The pod must end: nothing begins any more."""
        if self._is_ending:
            return
        self._is_ending = True
        for name, state in self._states.items():
            if state.runs_now:
                text = f"Stopping container {name}"
                self.note(PodNote(at=at, reason="Killing", text=text, container=name))

    def _starts(self, now: int) -> list[Action]:
        actions: list[Action] = []
        for state in self._states.values():
            if state.spec.stage is Stage.MAIN and not self._is_initialized:
                break
            if not state.runs_now and not state.is_done and state.not_before_ms <= now:
                actions.append(self._start(state))
            if not self._is_initialized and not _lets_others_begin(state):
                break
        if not self._is_initialized and self._are_first_done():
            self._is_initialized = True
            return [*actions, *self._starts(now)]
        return actions

    def _start(self, state: _State) -> Start:
        state.is_starting = True
        state.runs += 1
        return Start(name=state.spec.name, run=state.runs - 1)

    def _are_first_done(self) -> bool:
        return all(
            _lets_others_begin(each)
            for each in self._states.values()
            if each.spec.stage is not Stage.MAIN
        )

    def _looks(self, now: int) -> list[Action]:
        actions: list[Action] = []
        for name, state in self._states.items():
            if state.status.phase is not Phase.RUNNING or state.is_halting:
                continue
            for kind, look in state.looks.items():
                is_its_turn = (kind is ProbeKind.STARTUP) is not state.status.started
                if is_its_turn and not look.is_asked and look.next_ms <= now:
                    look.is_asked = True
                    actions.append(Look(name=name, kind=kind))
        return actions

    def _unhealthy_halts(self) -> list[Action]:
        """Of those that a probe has given up."""
        given_up = [each for each in self._states.values() if each.is_given_up]
        for each in given_up:
            each.is_given_up = False
        return [Halt(name=each.spec.name, grace_ms=self._grace_of(each.spec)) for each in given_up]

    def _halts(self) -> list[Action]:
        """Sidecars go on until the others are over, and end in the opposite order."""
        running = [each for each in self._states.values() if each.status.phase is Phase.RUNNING]
        others = [each for each in running if each.spec.stage is not Stage.SIDECAR]
        chosen = others or running[-1:]
        grace_ms = self._pod.grace_s * SECOND_MS
        actions: list[Action] = []
        for state in chosen:
            if not state.is_halting:
                state.is_halting = True
                actions.append(Halt(name=state.spec.name, grace_ms=grace_ms))
        return actions

    def _judge(
        self, state: _State, kind: ProbeKind, answers: tuple[_Looking, Probe], at: int
    ) -> None:
        look, probe = answers
        is_good, is_bad = look.good >= probe.successes, look.bad >= probe.failures
        match kind:
            case ProbeKind.READINESS:
                ready = is_good or (state.status.ready and not is_bad)
                state.status = replace(state.status, ready=ready)
            case ProbeKind.STARTUP if is_good:
                is_ready = ProbeKind.READINESS not in state.looks
                state.status = replace(state.status, started=True, ready=is_ready)
                for other in state.looks.values():
                    other.next_ms = at
                del state.looks[kind]
            case ProbeKind.STARTUP | ProbeKind.LIVENESS if is_bad:
                self._give_up(state, kind, at)
            case ProbeKind.STARTUP | ProbeKind.LIVENESS:
                pass

    def _give_up(self, state: _State, kind: ProbeKind, at: int) -> None:
        """It is not alive: its end is a failure, and the pod's rule says what follows."""
        name = state.spec.name
        text = f"Container {name} failed {kind} probe, will be restarted"
        self.note(PodNote(at=at, reason="Killing", text=text, container=name))
        state.is_halting = state.is_given_up = True

    def _begins_again(self, state: _State, end: Ended) -> bool:
        match _policy(state.spec.stage, self._pod.restart):
            case Restart.ALWAYS:
                return True
            case Restart.ON_FAILURE:
                return end.is_failure
            case Restart.NEVER:
                return False

    def _pause(self, state: _State, run: ContainerRun) -> None:
        if run.ended_at - run.began_at >= FORGIVEN_AFTER_MS:
            state.crashes = 0
        pause = _pause(state.crashes)
        state.crashes += 1
        state.not_before_ms = run.ended_at + pause
        if not pause:
            return
        name, pod = state.spec.name, f"{self._pod.name}_{self._pod.namespace}({self._pod.uid})"
        seconds = pause // SECOND_MS
        state.status = replace(
            state.status,
            phase=Phase.WAITING,
            reason=CRASHES,
            message=f"back-off {seconds}s restarting failed container={name} pod={pod}",
            ended=None,
            last=run,
        )
        text = f"Back-off restarting failed container {name} in pod {pod}"
        self.note(
            PodNote(at=run.ended_at, reason="BackOff", text=text, container=name, warning=True)
        )

    def _end_if_done(self, state: _State, end: Ended) -> None:
        """A failed first container ends the pod; so does the last of the others."""
        mains = [each for each in self._states.values() if each.spec.stage is Stage.MAIN]
        is_stuck = state.spec.stage is Stage.INIT and end.is_failure
        if is_stuck or all(each.is_done for each in mains):
            self._is_ending = True

    def _grace_of(self, spec: Container) -> int:
        own = spec.liveness.grace_s if spec.liveness is not None else None
        return (self._pod.grace_s if own is None else own) * SECOND_MS


def _probes(spec: Container) -> dict[ProbeKind, Probe]:
    found = {
        ProbeKind.STARTUP: spec.startup,
        ProbeKind.LIVENESS: spec.liveness,
        ProbeKind.READINESS: spec.readiness,
    }
    return {kind: probe for kind, probe in found.items() if probe is not None}


def _policy(stage: Stage, restart: Restart) -> Restart:
    match stage:
        case Stage.SIDECAR:
            return Restart.ALWAYS
        case Stage.INIT:
            return Restart.NEVER if restart is Restart.NEVER else Restart.ON_FAILURE
        case Stage.MAIN:
            return restart


def _lets_others_begin(state: _State) -> bool:
    match state.spec.stage:
        case Stage.INIT:
            return state.is_done
        case Stage.SIDECAR:
            return state.status.started
        case Stage.MAIN:
            return True


def _pause(times: int) -> int:
    """None before the first time; then ten seconds, and twice as long each time."""
    return min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS << (times - 1)) if times else 0
