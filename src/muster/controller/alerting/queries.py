"""Alerts and silences as their askers may see them."""

from muster.controller.alerting.board import AlertBoard, Standing
from muster.controller.alerting.kept import RULES_KEY, SILENCES, rules_text, silences_of
from muster.controller.messages import Caller
from muster.controller.rights import has_role, sees_names
from muster.controller.world.journal import Clock
from muster.controller.world.record import Record
from muster.model.alerting import Silence
from muster.model.site import Role
from muster.model.value import QueuePath, replace
from muster.telemetry.alerting.judging import Alert, AlertState


class AlertQueries:
    """Whoever may look at a queue sees its alerts; what belongs to none is for those above all."""

    def __init__(self, record: Record, board: AlertBoard, clock: Clock) -> None:
        self._record = record
        self._board = board
        self._clock = clock

    def standing(self, caller: Caller) -> Standing:
        """The alerts that the caller may see; problems are for those who see everything."""
        standing = self._board.standing
        sees_all = has_role(caller, self._record.site, Role.VIEWER)
        alerts = tuple(
            alert
            for alert in standing.alerts
            if (sees_all or self._sees(caller, alert)) and self._may_know(caller, alert)
        )
        problems = standing.problems if sees_all else ()
        return replace(standing, alerts=alerts, problems=problems)

    def problems(self) -> tuple[str, ...]:
        """Rules and receivers that do not work."""
        return self._board.standing.problems

    def firing(self) -> tuple[Alert, ...] | None:
        """What fires, for parts of Muster itself; None where nobody has judged rules yet."""
        standing = self._board.standing
        if standing.at is None:
            return None
        return tuple(each for each in standing.alerts if each.state is AlertState.FIRING)

    def silences(self, caller: Caller) -> tuple[Silence, ...]:
        """Those that have not ended, of what the caller may see."""
        now = self._clock()
        with self._record.lock:
            kept = [each for key, each in self._record.objects.items() if key.shelf == SILENCES]
        return tuple(
            silence
            for silence in silences_of(kept)
            if silence.is_active(now)
            and has_role(caller, self._record.site, Role.VIEWER, silence.queue)
        )

    def rules(self) -> str:
        """The administrators' own rules, as they were applied."""
        with self._record.lock:
            return rules_text(self._record.objects.get(RULES_KEY))

    def _may_know(self, caller: Caller, alert: Alert) -> bool:
        """An alert about a job says whose it is; private queues keep that to themselves."""
        user, queue = alert.label("user"), alert.label("queue")
        if not user or not queue or user == caller.user:
            return True
        return sees_names(caller, self._record.site, QueuePath(queue))

    def _sees(self, caller: Caller, alert: Alert) -> bool:
        queue = alert.label("queue")
        return bool(queue) and has_role(caller, self._record.site, Role.VIEWER, QueuePath(queue))
