"""What controllers want is made as far as it may be, and what is refused is told about."""

from concurrent.futures import Future

from controller.test_journal import journal_on
from muster.controller.messages import Caller
from muster.controller.queries.objects import ObjectQueries
from muster.controller.use_cases.objects import ObjectsWrite, ObjectWrite, Written
from muster.controller.world.transaction import Transaction
from muster.doors.kubernetes.controllers.changes import Create, Emit, Outcome
from muster.doors.kubernetes.controllers.cluster import Objects
from muster.doors.kubernetes.objects.errors import forbidden
from muster.doors.kubernetes.objects.kinds import CONFIG_MAP, EVENT
from muster.doors.kubernetes.objects.value import JsonObject, Kind, name_of
from muster.doors.kubernetes.serve.access import ITSELF
from muster.doors.kubernetes.serve.reconciling import Carried, Hands, Wires
from muster.doors.kubernetes.serve.sealing import Sealing
from muster.doors.kubernetes.serve.served import ServedKinds
from muster.doors.kubernetes.serve.view import Lookup, ObjectView
from muster.doors.kubernetes.serve.writing import Then
from muster.model.errors import MusterError, StoreFullError
from muster.model.kept_object import ObjectKey
from muster.model.value import Instant
from muster.stores.memory import MemoryStore

OWNER: JsonObject = {
    "kind": "Job",
    "apiVersion": "batch/v1",
    "metadata": {"name": "train", "namespace": "nlp", "uid": "1"},
}


class RefusesWhenCommitted:
    """Lets everything in, and refuses one name in the transaction, as rights of jobs are."""

    def __init__(self, name: str) -> None:
        self._name = name

    def seeing(self, view: Lookup) -> "RefusesWhenCommitted":  # noqa: ARG002 - as all are
        return self

    def prepared(self, kind: Kind, given: JsonObject, namespace: str, by: Caller) -> JsonObject:  # noqa: ARG002
        return given

    def changed(self, kind: Kind, new: JsonObject, old: JsonObject, by: Caller) -> JsonObject:  # noqa: ARG002
        return new

    def entering(self, kind: Kind, new: JsonObject, by: Caller) -> Then | None:  # noqa: ARG002
        def refuse(_: Transaction) -> None:
            raise forbidden(kind, self._name, "its class is for others")

        return refuse if name_of(new) == self._name else None

    def changing(self, kind: Kind, old: JsonObject, new: JsonObject, by: Caller) -> None:  # noqa: ARG002
        return None

    def asked_to_leave(self, kind: Kind, old: JsonObject, by: Caller) -> None:
        pass

    def leaving(self, kind: Kind, name: str, by: Caller) -> None:  # noqa: ARG002
        return None


def wanted(name: str) -> Create:
    def said(kind: str, reason: str, message: str) -> Emit:
        return Emit(about=OWNER, type=kind, reason=reason, message=message, source="job-controller")  # pyright: ignore[reportArgumentType]

    return Create(
        object={
            "kind": "ConfigMap",
            "apiVersion": "v1",
            "metadata": {"name": name, "namespace": "nlp"},
        },
        emitted=said("Normal", "SuccessfulCreate", f"Created: {name}"),
        refusal=said("Warning", "FailedCreate", "Error creating: "),
    )


class World:
    """A namespace, and hands that write into it; `fails` are raised by the next commits."""

    def __init__(self, entry: RefusesWhenCommitted | None = None) -> None:
        self.fails: list[MusterError] = []
        self._journal, sealing = journal_on(MemoryStore()), Sealing(bytes(32))
        self.view = ObjectView(ObjectQueries(self._journal), sealing.opened)
        key = ObjectKey(group="", resource="namespaces", namespace="", name="nlp")
        space = sealing.closed(key, {"metadata": {"name": "nlp"}})
        write = ObjectWrite(key=key, seen=None, body=space)
        self._commit(ObjectsWrite(caller=ITSELF, writes=(write,)))
        self.hands = Hands(
            Wires(
                view=self.view,
                kinds=ServedKinds(self.view, convert=lambda _, obj, __: obj),
                sealing=sealing,
                commit=self._commit,
                clock=lambda: Instant(1_000),
                entry=entry,
            )
        )

    def _commit(self, wish: ObjectsWrite) -> "Future[tuple[Written, ...]]":
        answer: Future[tuple[Written, ...]] = Future()
        if self.fails:
            answer.set_exception(self.fails.pop())
        else:
            answer.set_result(self._journal.write(wish.apply).result())
        return answer


def test_what_is_refused_in_the_commit_is_told_and_what_came_before_it_is_made() -> None:
    world = World(RefusesWhenCommitted("b"))
    outcome = Outcome(changes=(wanted("a"), wanted("b"), wanted("c")))

    carried = world.hands.carry_out(outcome, Objects())

    assert carried is Carried.REFUSED
    assert [name_of(each) for each in world.view.objects(CONFIG_MAP)] == ["a"]
    told = {each["reason"]: each["message"] for each in world.view.objects(EVENT)}
    assert told["SuccessfulCreate"] == "Created: a"
    assert told["FailedCreate"].startswith("Error creating: ")
    assert "its class is for others" in told["FailedCreate"]


def test_what_cannot_be_written_now_is_to_be_tried_again() -> None:
    world = World()
    world.fails = [StoreFullError("/var/lib/muster/db")]

    carried = world.hands.carry_out(Outcome(changes=(wanted("a"),)), Objects())

    assert carried is Carried.REFUSED
    assert world.hands.carry_out(Outcome(changes=(wanted("a"),)), Objects()) is Carried.OUT
    assert [name_of(each) for each in world.view.objects(CONFIG_MAP)] == ["a"]
