"""Who asks, and what they may do: tokens of Muster and of this door, roles of both."""

import hashlib
import uuid
from collections.abc import Callable, Mapping

from muster.controller.messages import Caller
from muster.controller.queries.queries import Queries
from muster.controller.rights import grants_of, has_role, is_let_in
from muster.doors.kubernetes.objects import kinds
from muster.doors.kubernetes.objects.errors import (
    DeniedError,
    Reason,
    StatusError,
    bad_request,
    forbidden,
)
from muster.doors.kubernetes.objects.faces import FACES
from muster.doors.kubernetes.objects.hidden import CREATOR
from muster.doors.kubernetes.objects.kinds import NAMESPACE
from muster.doors.kubernetes.objects.rbac import (
    ACCOUNT_PREFIX,
    Act,
    Allowed,
    RoleBook,
    User,
    permits,
)
from muster.doors.kubernetes.objects.roles import (
    ADMIN,
    ANONYMOUS,
    AUTHENTICATED,
    EDIT,
    MASTERS,
    UNAUTHENTICATED,
    VIEW,
)
from muster.doors.kubernetes.objects.value import JsonObject, Kind, annotations_of, uid_of
from muster.doors.kubernetes.pods.pod_of import job_of_pod
from muster.doors.kubernetes.pods.queues_of import PERSON_ANNOTATION, QUEUE_ANNOTATION
from muster.doors.kubernetes.serve.tokens import (
    Account,
    BadTokenError,
    Person,
    Signer,
    user_of,
)
from muster.doors.kubernetes.serve.view import ObjectView
from muster.model.errors import ForbiddenError, UnknownError
from muster.model.queue import is_within
from muster.model.site import Role, Token
from muster.model.value import Instant, QueuePath, UserName, Value

DOOR = "kubernetes"

ITSELF = Caller(user=UserName("muster"), door="kubernetes controllers", root=True)
"""Who writes what follows from something else. Nobody who asks comes through that door."""

WORKLOADS = frozenset(
    "Pod Job CronJob Deployment ReplicaSet StatefulSet DaemonSet ReplicationController "
    "PyTorchJob TFJob MPIJob".split()
)
"""Kinds whose objects are somebody's: processes follow from them."""

OF_RIGHTS = (
    kinds.CLUSTER_ROLE,
    kinds.ROLE,
    kinds.CLUSTER_ROLE_BINDING,
    kinds.ROLE_BINDING,
)
"""In the order in which a RoleBook takes them."""

OWNED = tuple(each for each in kinds.KINDS if each.kind in WORKLOADS)
LOOKING = frozenset({"get", "list", "watch"})
INSIDE = frozenset({"log", "exec", "attach", "portforward", "proxy"})
"""Parts of a pod that show what its processes do."""

BEING = frozenset({"exec", "attach", "ephemeralcontainers"})
"""Parts of a pod by which one acts as its user."""

BUILT_IN = frozenset((each.group, each.plural) for each in (*kinds.KINDS, *FACES))
"""What Kubernetes' own roles speak of. About other kinds, a role says only whether one changes."""

ROLES_HERE = {Role.QUEUE_ADMIN: ADMIN, Role.USER: EDIT, Role.VIEWER: VIEW}
"""What a role in a queue is worth in the namespaces of that queue."""


MORE_OF_ANOTHER = b"impersonate-extra-"


class Identity(Value):
    """Who asks: as Kubernetes names them, and as Muster knows them.

    by: who they really are, where somebody acts for another.
    """

    user: User
    caller: Caller
    by: "Identity | None" = None

    @property
    def is_root(self) -> bool:
        """Is it the machine's administrator, who may be anybody?"""
        return self.caller.root or (self.by is not None and self.by.caller.root)

    @property
    def is_another(self) -> bool:
        """Does somebody act for another person who could not be that person?"""
        is_account = self.user.name.startswith(ACCOUNT_PREFIX)
        return self.by is not None and not self.is_root and not is_account


class Access:
    """Answers who somebody is and what they may do, by what is true now."""

    def __init__(
        self, queries: Queries, view: ObjectView, signer: Signer, clock: Callable[[], Instant]
    ) -> None:
        self._queries = queries
        self._view = view
        self._signer = signer
        self._clock = clock
        # The roles as of their versions: they change seldom, and are asked for with every request.
        self._book: tuple[tuple[int, ...], RoleBook] | None = None

    def identity(self, headers: Mapping[bytes, bytes]) -> Identity:
        """Who asks; StatusError for a token that opens nothing."""
        given = headers.get(b"authorization", b"").decode("latin-1")
        scheme, _, secret = given.partition(" ")
        if not given:
            return _nobody()
        if scheme.lower() != "bearer" or not secret.strip():
            raise unauthorized()
        return self.of_token(secret.strip())

    def of_token(self, secret: str) -> Identity:
        """Whose token this is; StatusError if it opens nothing."""
        try:
            if secret.startswith("mst_"):
                return self._person(self._queries.people.caller_of(secret, DOOR))
            found = self._signer.read(secret, self._clock())
            match found:
                case Person():
                    return self._person(self._caller(found))
                case Account():
                    user = user_of(found, self._view)
                    self._demand_good(found.made_with)
                    return Identity(user=user, caller=self._of_account(found))
        except (BadTokenError, ForbiddenError, KeyError, TypeError, ValueError):
            raise unauthorized() from None

    def impersonated(self, identity: Identity, headers: Mapping[bytes, bytes]) -> Identity:
        """Whom they act for, if they say so and may."""
        name = headers.get(b"impersonate-user", b"").decode("latin-1")
        listed = headers.get(b"impersonate-group", b"").decode("latin-1")
        groups = tuple(each.strip() for each in listed.split(",") if each.strip())
        uid = headers.get(b"impersonate-uid", b"").decode("latin-1")
        further = [each for each in headers if each.startswith(MORE_OF_ANOTHER)]
        # A uid says nothing new, or means somebody else of that name.
        is_another = bool(uid) and uid != self._uid_of(name)
        if further or is_another or (groups and not name):
            raise bad_request("one acts for a user by name, or for a user and groups: nothing else")
        if not name:
            return identity
        self._demand_impersonation(identity, name, groups)
        return Identity(user=_named(name, groups), caller=self.caller_named(name), by=identity)

    def _uid_of(self, name: str) -> str:
        if not name.startswith(ACCOUNT_PREFIX):
            return _uid(name)
        namespace, _, account = name.removeprefix(ACCOUNT_PREFIX).partition(":")
        return uid_of(self._view.get(kinds.SERVICE_ACCOUNT, namespace, account) or {})

    def caller_named(self, name: str) -> Caller:
        """The user of Muster who goes by this name here."""
        if not name.startswith(ACCOUNT_PREFIX):
            return Caller(user=UserName(name), door=DOOR)
        namespace, _, account = name.removeprefix(ACCOUNT_PREFIX).partition(":")
        return self._of_account(Account(namespace=namespace, name=account, uid="", token_id=""))

    def allowed(self, identity: Identity, act: Act) -> Allowed | None:
        """May they? By a binding, or by a role that they have in Muster."""
        if MASTERS in identity.user.groups:
            return Allowed(why="")
        return self._by_binding(identity, act) or self._by_role(identity, act)

    def demand(self, identity: Identity, act: Act) -> None:
        """StatusError unless they may."""
        if self.allowed(identity, act) is None:
            raise refused(identity.user, act)

    def demand_owner(self, identity: Identity, act: Act) -> None:
        """StatusError where this lets one act as a pod's user, and they are not that person.

        No binding gives that: it takes the person, or the machine's administrator.
        """
        if act.place != (kinds.POD.group, kinds.POD.plural) or act.subresource not in BEING:
            return
        if identity.is_root or (
            not identity.is_another and self._is_theirs(identity, kinds.POD, act)
        ):
            return
        text = f"{act.subresource} is for the person whose processes they are"
        raise forbidden(kinds.POD, act.name, text)

    def demand_being(self, identity: Identity, kind: Kind, name: str) -> None:
        """StatusError where the object decides whose processes run, and they are not that person.

        Who may act for others sees and changes what they may; being them takes themselves.
        A program that may change every object changes what others run, too.
        """
        if kind == kinds.MUTATING_WEBHOOK and not identity.is_root:
            text = (
                "it changes what everybody runs, and only the machine's administrator may do that"
            )
            raise forbidden(kind, name, text)
        if identity.is_another and (kind == NAMESPACE or kind.kind in WORKLOADS):
            text = f"it decides whose processes run, and only {identity.user.name} can do that"
            raise forbidden(kind, name, text)

    def rules_for(self, identity: Identity, namespace: str) -> list[JsonObject]:
        """All rules that hold for somebody in a namespace."""
        book = self.book()
        if MASTERS in identity.user.groups:
            return book.rules_for(identity.user, namespace)
        role = self._role_in(identity, namespace)
        more = [] if role is None else book.rules_of_role(ROLES_HERE[role])
        return [*book.rules_for(identity.user, namespace), *more]

    def book(self) -> RoleBook:
        """The roles as they are now."""
        kept = [self._view.kept(kind)[1] for kind in OF_RIGHTS]
        versions = tuple(each.version for found in kept for each in found)
        if self._book is None or self._book[0] != versions:
            self._book = (versions, RoleBook(*(map(self._view.read, found) for found in kept)))
        return self._book[1]

    def _caller(self, person: Person) -> Caller:
        token = self._demand_good(person.token)
        return Caller(user=person.user, door=DOOR, root=person.root, token=token)

    def _demand_good(self, token: str | None) -> Token | None:
        """The token of Muster with which another was made; BadTokenError once it opens nothing."""
        if token is None:
            return None
        known = self._queries.people.token(token)
        if known is None or not self._queries.people.is_good(known):
            raise BadTokenError("what it was made with is good no more")
        return known

    def _person(self, caller: Caller) -> Identity:
        site = self._queries.site()
        is_admin = has_role(caller, site, Role.ADMIN)
        groups = (MASTERS, AUTHENTICATED) if is_admin else (AUTHENTICATED,)
        user = User(name=caller.user, uid=_uid(caller.user), groups=groups)
        return Identity(user=user, caller=caller)

    def _of_account(self, account: Account) -> Caller:
        """A service account acts for the person whom its namespace names, or for nobody."""
        namespace = self._view.get(NAMESPACE, "", account.namespace) or {}
        owner = annotations_of(namespace).get(PERSON_ANNOTATION)
        name = owner or f"{ACCOUNT_PREFIX}{account.namespace}:{account.name}"
        return Caller(user=UserName(name), door=DOOR)

    def _by_binding(self, identity: Identity, act: Act) -> Allowed | None:
        """What a token does not reach, no binding gives to who has it, but what all are given."""
        given = (identity.by or identity).caller.token
        if given is not None and not self._reaches(given, act):
            return self.book().allowed(User(name="", groups=(AUTHENTICATED,)), act)
        return self.book().allowed(identity.user, act)

    def _reaches(self, token: Token, act: Act) -> bool:
        """Is this in the token's queue, and does its role let one do it?"""
        if token.queue is not None:
            queue = self._queue_of(act.namespace) if act.namespace else None
            if queue is None or not is_within(queue, token.queue):
                return False
        if token.role is Role.ADMIN:
            return True
        if act.place not in BUILT_IN and not act.path:
            return act.verb in LOOKING or token.role is not Role.VIEWER
        rules = self.book().rules_of_role(ROLES_HERE[token.role])
        return any(permits(rule, act) for rule in rules)

    def _by_role(self, identity: Identity, act: Act) -> Allowed | None:
        role = self._role_in(identity, act.namespace)
        if role is None or act.path:
            return None
        name = ROLES_HERE[role]
        rules = self.book().rules_of_role(name)
        if not any(permits(rule, act) for rule in rules):
            return None
        if role is not Role.QUEUE_ADMIN and not self._is_own(identity, act):
            return None
        return Allowed(why=f'Muster: {role} of the queue of "{act.namespace}" is "{name}" here')

    def _role_in(self, identity: Identity, namespace: str) -> Role | None:
        """The greatest role of a person in the queue of a namespace.

        What everyone is given counts where a namespace names a queue that is open to everyone;
        a namespace that names none belongs to those whom a binding names.
        """
        if not namespace or identity.user.name.startswith("system:"):
            return None
        queue = self._queue_of(namespace)
        if queue is None:
            return None
        site, caller = self._queries.site(), identity.caller
        if not grants_of(caller, site) or not is_let_in(caller, site, queue):
            return None
        return next((each for each in ROLES_HERE if has_role(caller, site, each, queue)), None)

    def _is_own(self, identity: Identity, act: Act) -> bool:
        """As through every other door: all jobs are seen, and only one's own changed or read."""
        kind = next((each for each in OWNED if (each.group, each.plural) == act.place), None)
        is_look = act.verb in LOOKING and act.subresource not in INSIDE
        is_new = act.verb == "create" and not act.subresource
        return kind is None or is_look or is_new or self._is_theirs(identity, kind, act)

    def _is_theirs(self, identity: Identity, kind: Kind, act: Act) -> bool:
        """Are all objects that this is about their own? What is not there is nobody's."""
        if act.name:
            found = self._view.get(kind, act.namespace, act.name)
            named = [] if found is None else [found]
        else:
            named = self._view.objects(kind, act.namespace)
        return all(self._owner(each) == identity.caller.user for each in named)

    def _owner(self, obj: JsonObject) -> str | None:
        """Whose it is: of who made it, and a job's pod is that of the job's user."""
        job = job_of_pod(obj)
        if job is None:
            return annotations_of(obj).get(CREATOR)
        try:
            return self._queries.jobs.detail(ITSELF, job).view.job.spec.user
        except UnknownError:
            return None

    def _queue_of(self, namespace: str) -> QueuePath | None:
        site = self._queries.site()
        found = self._view.get(NAMESPACE, "", namespace)
        if found is None:
            return None
        named = annotations_of(found).get(QUEUE_ANNOTATION)
        if named is None and namespace == "default":
            return site.default_queue
        queue = None if named is None else QueuePath(named)
        return queue if queue in site.queues else None

    def _demand_impersonation(self, identity: Identity, name: str, groups: tuple[str, ...]) -> None:
        resource = "serviceaccounts" if name.startswith(ACCOUNT_PREFIX) else "users"
        if resource == "serviceaccounts":
            namespace, _, account = name.removeprefix(ACCOUNT_PREFIX).partition(":")
            act = Act(verb="impersonate", resource=resource, namespace=namespace, name=account)
        else:
            act = Act(verb="impersonate", resource=resource, name=name)
        self.demand(identity, act)
        for each in groups:
            self.demand(identity, Act(verb="impersonate", resource="groups", name=each))


def _named(name: str, groups: tuple[str, ...]) -> User:
    """A user for whom somebody acts, with the groups that go with such a name."""
    own: tuple[str, ...] = ()
    if name.startswith(ACCOUNT_PREFIX):
        namespace = name.removeprefix(ACCOUNT_PREFIX).partition(":")[0]
        own = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
    everybody = () if name == ANONYMOUS else (AUTHENTICATED,)
    return User(name=name, groups=tuple(dict.fromkeys((*groups, *own, *everybody))))


def _nobody() -> Identity:
    user = User(name=ANONYMOUS, groups=(UNAUTHENTICATED,))
    return Identity(user=user, caller=Caller(user=UserName(ANONYMOUS), door=DOOR))


def _uid(name: str) -> str:
    """Always the same for one name."""
    return str(uuid.UUID(bytes=hashlib.sha256(name.encode()).digest()[:16]))


def unauthorized() -> StatusError:
    """Nobody knows who asks."""
    return StatusError(Reason.UNAUTHORIZED, "Unauthorized")


def refused(user: User, act: Act) -> StatusError:
    """Somebody who may not."""
    if act.path:
        text = f'forbidden: User "{user.name}" cannot {act.verb} path "{act.path}"'
        return DeniedError(Reason.FORBIDDEN, text, details={})
    group = f".{act.group}" if act.group else ""
    where = f'in the namespace "{act.namespace}"' if act.namespace else "at the cluster scope"
    called = f'{act.resource}{group} "{act.name}"' if act.name else f"{act.resource}{group}"
    details: JsonObject = {"name": act.name} if act.name else {}
    if act.group:
        details["group"] = act.group
    details["kind"] = act.resource
    text = (
        f'{called} is forbidden: User "{user.name}" cannot {act.verb} resource '
        f'"{act.whole_resource}" in API group "{act.group}" {where}'
    )
    return DeniedError(Reason.FORBIDDEN, text, details=details)
