"""What follows in Muster from a write of an object, in the transaction that writes it.

So a pod is never without its job, nor a cordoned node without being drained.
"""

from collections.abc import Callable
from functools import partial

from muster.controller.messages import Caller
from muster.controller.use_cases.service import Service
from muster.controller.world.transaction import Transaction
from muster.doors.kubernetes.foreign.kinds import OF_KUEUE, queue_family
from muster.doors.kubernetes.importing.live import with_kueue, with_volcano
from muster.doors.kubernetes.objects.errors import forbidden
from muster.doors.kubernetes.objects.kinds import NODE, POD, PRIORITY_CLASS, RESOURCE_QUOTA, SERVICE
from muster.doors.kubernetes.objects.value import (
    JsonObject,
    Kind,
    name_of,
    namespace_of,
    part,
    uid_of,
)
from muster.doors.kubernetes.pods.admission import SYSTEM_CLASSES
from muster.doors.kubernetes.pods.marks_of import marks_of, state_of
from muster.doors.kubernetes.pods.queues_of import (
    is_of_the_site,
    with_priority_class,
    without_priority_class,
)
from muster.doors.kubernetes.pods.quota import count_refusal, objects_usage
from muster.doors.kubernetes.serve.job_pods import cancel_for
from muster.doors.kubernetes.serve.pod_entry import PodEntry
from muster.doors.kubernetes.serve.view import Lookup
from muster.model.errors import ForbiddenError, RefusedError
from muster.model.site import Site
from muster.model.value import NodeId

Then = Callable[[Transaction], None]


class Entrance:
    """Looks at objects before they are written, and says what is to happen with it."""

    def __init__(self, service: Service, view: Lookup, pods: PodEntry) -> None:
        self._service = service
        self._view = view
        self._pods = pods

    def seeing(self, view: Lookup) -> "Entrance":
        """The same, for somebody who sees what is not committed yet: it counts, too."""
        return Entrance(self._service, view, self._pods.seeing(view))

    def prepared(self, kind: Kind, given: JsonObject, namespace: str, by: Caller) -> JsonObject:
        """A new object with what its namespace adds, and whose it is."""
        return self._pods.prepared(kind, given, namespace, by)

    def changed(self, kind: Kind, new: JsonObject, old: JsonObject, by: Caller) -> JsonObject:
        """A changed object with whose it was; StatusError when who writes may not change it so."""
        return self._pods.changed(kind, new, old, by)

    def entering(self, kind: Kind, new: JsonObject, by: Caller) -> Then | None:
        """What follows from a new object."""
        if kind == POD:
            return self._pods.entering(new, by)
        self._demand_countable(kind, new)
        if kind == PRIORITY_CLASS:
            return self._class_comes(new, by)
        follows: Then | None = None
        if queue_family(kind) is not None:
            follows = self._queues_change(kind, name_of(new), (None, new), by)
        return partial(self._counted, kind, new, follows)

    def changing(self, kind: Kind, old: JsonObject, new: JsonObject, by: Caller) -> Then | None:
        """What follows from a change."""
        if kind == POD:
            return self._pods.changing(old, new, by)
        if kind == NODE:
            return self._node_changes(new, by)
        if queue_family(kind) is not None and part(old, "spec") != part(new, "spec"):
            return self._queues_change(kind, name_of(new), (old, new), by)
        return None

    def asked_to_leave(self, kind: Kind, old: JsonObject, by: Caller) -> None:
        """What is to happen before an object begins to go."""
        if kind == POD:
            cancel_for(self._service, old, by)

    def leaving(self, kind: Kind, name: str, by: Caller) -> Then | None:
        """What follows from a removal."""
        if kind == PRIORITY_CLASS and name not in SYSTEM_CLASSES:
            return self._told(kind, name, by, lambda site: without_priority_class(site, name))
        if queue_family(kind) is not None:
            gone = [each for each in self._view.objects(kind) if name_of(each) == name]
            return self._queues_change(kind, name, (gone[0], None), by) if gone else None
        return None

    def _queues_change(
        self, kind: Kind, name: str, change: tuple[JsonObject | None, JsonObject | None], by: Caller
    ) -> Then:
        """Queues of others are queues of Muster. change: as the object was, and as it is to be."""
        old, new = change
        family = queue_family(kind) or ()
        before = [each for own in family for each in self._view.objects(own)]
        after = [each for each in before if old is None or uid_of(each) != uid_of(old)]
        if new is not None:
            after.append(new)
        with_them = with_kueue if family is OF_KUEUE else with_volcano
        return self._told(kind, name, by, lambda site: with_them(site, before, after))

    def _demand_countable(self, kind: Kind, new: JsonObject) -> None:
        """StatusError when a quota says that there are enough of its kind."""
        space = namespace_of(new)
        quotas = self._view.objects(RESOURCE_QUOTA, space) if space else []
        if not quotas:
            return
        others = self._view.objects(kind, space)
        used = objects_usage(kind, len(others), others if kind == SERVICE else ())
        refused = count_refusal(kind, new, quotas, used)
        if refused is not None:
            raise refused

    def _counted(
        self, kind: Kind, new: JsonObject, follows: Then | None, transaction: Transaction
    ) -> None:
        """Looked at again where nothing can come between."""
        self._pods.counting.demand_place_for(kind, new, transaction)
        if follows is not None:
            follows(transaction)

    def _class_comes(self, new: JsonObject, by: Caller) -> Then | None:
        """A PriorityClass is a job class, unless it was made from one."""
        is_known = is_of_the_site(new, self._service.queries.site().classes)
        if is_known or name_of(new) in SYSTEM_CLASSES:
            return None
        others = self._view.objects(PRIORITY_CLASS)

        def change(site: Site) -> Site:
            return with_priority_class(site, new, others)

        return self._told(PRIORITY_CLASS, name_of(new), by, change)

    def _node_changes(self, new: JsonObject, by: Caller) -> Then | None:
        """Labels, taints and `unschedulable` are the node's own; what Muster lacks it is told."""
        fleet = self._service.queries.nodes.fleet()
        node = fleet.nodes.get(NodeId(name_of(new)))
        if node is None:
            return None
        labels, taints = marks_of(new, node, fleet.pools.get(node.pool))
        state = state_of(new, node)

        def then(transaction: Transaction) -> None:
            try:
                self._service.marking(by, node.id, labels, taints)(transaction)
                if state is not node.state:
                    self._service.setting(by, node.id, state, "")(transaction)
            except (RefusedError, ForbiddenError) as error:
                raise forbidden(NODE, name_of(new), str(error)) from error

        return then

    def _told(self, kind: Kind, name: str, by: Caller, change: Callable[[Site], Site]) -> Then:
        def then(transaction: Transaction) -> None:
            try:
                self._service.applying(by, change)(transaction)
            except (RefusedError, ForbiddenError) as error:
                raise forbidden(kind, name, str(error)) from error

        return then
