"""Who is let into the containers of a pod: `kubectl exec`, `attach`, `cp` and `port-forward`.

To enter a container is to be its person: besides a right to `pods/exec`, whoever asks must be the
user of the pod's job, or root.
"""

from muster.controller.use_cases.service import Service
from muster.doors.kubernetes.objects.errors import (
    Reason,
    StatusError,
    bad_request,
    forbidden,
    not_found,
)
from muster.doors.kubernetes.objects.kinds import POD, SERVICE_ACCOUNT
from muster.doors.kubernetes.objects.rbac import ACCOUNT_PREFIX
from muster.doors.kubernetes.objects.value import JsonObject, name_of, namespace_of, part
from muster.doors.kubernetes.serve.access import Identity
from muster.doors.kubernetes.serve.call import Query, Target, flag
from muster.doors.kubernetes.serve.pod_containers import container_asked_for, container_status
from muster.doors.kubernetes.serve.pod_jobs import PodJob, PodJobs
from muster.doors.kubernetes.serve.view import ObjectView
from muster.model.errors import ForbiddenError, UnknownError
from muster.model.running import AttachTo, ConnectTo, RunInside, Visit, VisitStream
from muster.model.value import JobId, Value

EXEC, ATTACH, PORT_FORWARD = "exec", "attach", "portforward"
MOST_PORTS = 64
VISITS = frozenset({EXEC, ATTACH, PORT_FORWARD})


class PlainError(StatusError):
    """An error that kubelets answer in plain text."""

    @classmethod
    def plain(cls, code: int, words: str) -> "PlainError":
        """With these words and nothing around them."""
        return cls(Reason.UNKNOWN, words, code=code)


class Visitor(Value):
    """Somebody who may enter, and what for.

    wanted: None for ports, which are named later, or in `ports`.
    """

    identity: Identity
    pod: str
    job: JobId
    task: int
    wanted: RunInside | AttachTo | None
    ports: tuple[int, ...] = ()
    stdin: bool = False
    stdout: bool = False
    stderr: bool = False


class PodVisits:
    """Looks at requests to enter, and begins visits."""

    def __init__(self, service: Service, view: ObjectView) -> None:
        self._service = service
        self._view = view
        self._jobs = PodJobs(service.queries)

    def visitor(self, target: Target, query: Query, identity: Identity) -> Visitor:
        """What is asked for; StatusError when it cannot be, or is not for this caller."""
        pod = self._view.get(POD, target.namespace, target.name)
        if pod is None:
            raise not_found(POD, target.name)
        container = "" if target.subresource == PORT_FORWARD else container_asked_for(pod, query)
        if not part(pod, "spec").get("nodeName"):
            raise bad_request(f"pod {target.name} does not have a host assigned")
        found = self._job(pod, container, target.subresource)
        visitor = Visitor(
            identity=identity,
            pod=target.name,
            job=found.job,
            task=found.task,
            wanted=_wanted(target.subresource, container, query),
            ports=_ports(query) if target.subresource == PORT_FORWARD else (),
            stdin=flag(query, "stdin"),
            stdout=flag(query, "stdout"),
            stderr=flag(query, "stderr") and not flag(query, "tty"),
        )
        self._demand_owner(visitor)
        if visitor.wanted and not (visitor.stdin or visitor.stdout or visitor.stderr):
            raise PlainError.plain(400, "you must specify at least 1 of stdin, stdout, stderr")
        return visitor

    def shown(self, target: Target, query: Query) -> JsonObject:
        """What is asked for as an object, as those are shown it who have a say."""
        kind = next(each.kind for each in POD.subresources if each.name == target.subresource)
        named: JsonObject = {"kind": kind, "apiVersion": POD.api_version}
        if target.subresource == PORT_FORWARD:
            return {**named, "ports": list(_ports(query))}
        pod = self._view.get(POD, target.namespace, target.name) or {}
        named["container"] = container_asked_for(pod, query)
        named |= {each: True for each in ("stdin", "stdout", "stderr", "tty") if flag(query, each)}
        commands = {"command": list(query.get("command", ()))}
        return {**named, **commands} if target.subresource == EXEC else named

    def begin(self, visitor: Visitor) -> VisitStream | None:
        """Write down who enters, and let them in; None for ports. StatusError: it is too late."""
        wanted, caller = visitor.wanted, visitor.identity.caller
        match wanted:
            case RunInside(container=container, argv=argv):
                # Never its arguments: secrets may stand there.
                how, detail = "exec", f"container {container}: {argv[0]!r}"
            case AttachTo(container=container):
                how, detail = "attach", f"container {container}"
            case None:
                how, detail = "port-forward", ""
        self._service.announce_visit(caller, visitor.job, how, detail)
        if wanted is None:
            return None
        try:
            return self._visit(visitor, wanted)
        except UnknownError as error:
            raise PlainError.plain(500, f"{error}") from error

    def connect(self, visitor: Visitor, port: int) -> VisitStream:
        """To a port of the pod; UnknownError when it is gone."""
        return self._visit(visitor, ConnectTo(port=port))

    def _visit(self, visitor: Visitor, wanted: Visit) -> VisitStream:
        caller = visitor.identity.caller
        return self._service.queries.attempts.visit(caller, visitor.job, wanted, task=visitor.task)

    def is_good(self, identity: Identity) -> bool:
        """Is what they came with still good? A token may be revoked, an account deleted."""
        name, token = identity.user.name, identity.caller.token
        if identity.by is not None and not self.is_good(identity.by):
            return False
        if name.startswith(ACCOUNT_PREFIX):
            namespace, _, account = name.removeprefix(ACCOUNT_PREFIX).partition(":")
            return self._view.get(SERVICE_ACCOUNT, namespace, account) is not None
        return token is None or self._service.queries.people.is_good(token)

    def _job(self, pod: JsonObject, container: str, how: str) -> PodJob:
        """StatusError unless the container runs, in the words of kubelets."""
        found = self._jobs.of(pod)
        state = part(container_status(pod, container), "state")
        if container and state.get("running") is None:
            whole = f"{name_of(pod)}_{namespace_of(pod)}"
            told = f'container not found ("{container}")'
            raise PlainError.plain(
                500, told if how == EXEC else f"container {container} not found in pod {whole}"
            )
        if found is None or not self._service.queries.jobs.is_live(found.job):
            raise PlainError.plain(404, "pod does not exist")
        return found

    def _demand_owner(self, visitor: Visitor) -> None:
        """Who acts for another must be allowed to be its user as well."""
        who: Identity | None = visitor.identity
        while who is not None:
            try:
                self._service.queries.attempts.demand_owner(
                    who.caller, visitor.job, to="enter its containers"
                )
            except ForbiddenError as error:
                named = f"enter the containers of job {visitor.job}"
                self._service.note_refusal(who.caller, named, str(error))
                raise forbidden(POD, visitor.pod, str(error)) from error
            who = who.by


def _ports(query: Query) -> tuple[int, ...]:
    """Those that the client names at once; one after the other, or between commas."""
    named = [each for text in query.get("ports", ()) for each in text.split(",")]
    if len(named) > MOST_PORTS:
        raise bad_request(f"at most {MOST_PORTS} ports can be forwarded at once")
    for each in named:
        if not (each.isascii() and each.isdecimal() and len(each) <= 5 and 0 < int(each) < 1 << 16):
            raise bad_request(f"port {each!r} must be a number from 1 to 65535")
    return tuple(map(int, named))


def _wanted(how: str, container: str, query: Query) -> RunInside | AttachTo | None:
    if how == PORT_FORWARD:
        return None
    if how == ATTACH:
        return AttachTo(container=container, stdin=flag(query, "stdin"))
    argv = tuple(query.get("command", ()))
    if not argv or not argv[0]:
        raise bad_request("you must specify at least one command for the container")
    if any("\0" in each for each in argv):
        raise bad_request("a command cannot have a zero byte")
    return RunInside(
        container=container, argv=argv, stdin=flag(query, "stdin"), tty=flag(query, "tty")
    )
