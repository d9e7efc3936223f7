"""Why jobs wait or are slow, and what would help, as events of their pods."""

from collections.abc import Callable, Mapping

from muster.controller.use_cases.service import Service
from muster.doors.diagnosis_words import in_short
from muster.doors.kubernetes.objects.errors import StatusError
from muster.doors.kubernetes.objects.kinds import EVENT, POD
from muster.doors.kubernetes.objects.value import JsonObject, name_of, namespace_of
from muster.doors.kubernetes.pods import events_of
from muster.doors.kubernetes.serve.access import ITSELF
from muster.doors.kubernetes.serve.call import Target, Writing
from muster.doors.kubernetes.serve.served import ServedKinds
from muster.doors.kubernetes.serve.writing import Author, ObjectWriter, Request
from muster.model.errors import MusterError
from muster.model.plan import Wait
from muster.model.value import SECOND, Instant, JobId

AT_ONCE = 10
"""How many are explained before others have their turn: each may take as long as a plan."""
EVERY = 30 * SECOND


class Explainer:
    """Explains what waits, a few at a time, and again after a while."""

    def __init__(
        self,
        service: Service,
        writer: ObjectWriter,
        kinds: ServedKinds,
        clock: Callable[[], Instant],
    ) -> None:
        self._service = service
        self._writer = writer
        self._kinds = kinds
        self._clock = clock
        self._explained: dict[JobId, Instant] = {}
        self._diagnosed: dict[JobId, Instant] = {}

    def explain_waiting(self, every: Mapping[JobId, tuple[str, str]]) -> None:
        """Those whose turn it is, of all jobs that wait; and where their pods are."""
        now = self._clock()
        self._explained, due = _due(self._explained, every, now)
        for job in due:
            pod = self._writer.view.get(POD, *every[job])
            if pod is not None:
                self._explain(job, pod, now)

    def diagnose(self, every: Mapping[JobId, tuple[str, str]]) -> None:
        """Of those that run: why they are slow, and what would help."""
        now = self._clock()
        self._diagnosed, due = _due(self._diagnosed, every, now)
        for job in due:
            pod = self._writer.view.get(POD, *every[job])
            found = None if pod is None else self._service.queries.diagnosis.told(job)
            text = "" if found is None else in_short(found)
            if pod is not None and text:
                event = events_of.PodEvent(
                    source=events_of.MUSTER, reason="Diagnosed", text=text, at=now
                )
                self._write(events_of.lasting(pod, event))

    def _explain(self, job: JobId, pod: JsonObject, now: Instant) -> None:
        try:
            found = self._service.queries.plan.explain(ITSELF, job)
        except MusterError:
            # It started or ended meanwhile, or the planner is busy: there is another time.
            return
        if not isinstance(found.decision, Wait):
            return
        told: dict[str, events_of.PodEvent] = {}
        for event in events_of.explained(found, now):
            told[event.reason] = events_of.added(told.get(event.reason), event)
        for event in told.values():
            self._write(events_of.lasting(pod, event))

    def _write(self, event: JsonObject) -> None:
        """The same thing about the same pod is one event, which says how it is now."""
        request = Request(
            target=Target(kind=EVENT, namespace=namespace_of(event), name=name_of(event)),
            writing=Writing(manager=events_of.MUSTER),
            author=Author(caller=ITSELF),
            blueprint=self._kinds.blueprint(EVENT),
        )

        def mutate(old: JsonObject | None) -> JsonObject:
            if old is None:
                return event
            now = {name: event[name] for name in ("message", "lastTimestamp")}
            return {**old, **now, "count": int(old.get("count") or 1) + 1}

        known = self._writer.view.get(EVENT, namespace_of(event), name_of(event))
        if known is not None and known.get("message") == event["message"]:
            return
        try:
            self._writer.change(request, mutate)
        except StatusError:
            # A namespace that is ending takes none.
            return


def _due(
    told: Mapping[JobId, Instant], every: Mapping[JobId, tuple[str, str]], now: Instant
) -> tuple[dict[JobId, Instant], list[JobId]]:
    """Those that were told longest ago, and when each was told after that."""
    known = {job: at for job, at in told.items() if job in every}
    due = [job for job in every if now - known.get(job, Instant(0)) >= EVERY]
    due = sorted(due, key=lambda job: (known.get(job, 0), job))[:AT_ONCE]
    return {**known, **dict.fromkeys(due, now)}, due
