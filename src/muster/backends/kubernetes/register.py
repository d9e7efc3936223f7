"""What is known of attempts on a cluster, and which pods are theirs."""

from muster.backends.attempts import Attempt
from muster.backends.base import Run
from muster.backends.kubernetes.deeds import Place
from muster.backends.kubernetes.link import KubernetesLink
from muster.backends.kubernetes.manifest import name_of
from muster.backends.kubernetes.pod_news import PodNews
from muster.backends.kubernetes.pods import Key, Pod
from muster.backends.looking import CheckpointLook
from muster.backends.notes import Note
from muster.model.placement import DeviceShare
from muster.model.value import JobId, replace

AttemptId = tuple[JobId, int]


class Register:
    """Attempts by their keys, with what was last seen of each. The backend's thread writes.

    unbegun: those whose pods are not all there yet, or were not given to us yet; lacking: those of
    them that read what is not there. pods: what was told of pods of users.
    """

    def __init__(self, link: KubernetesLink) -> None:
        self._link = link
        self.attempts: dict[AttemptId, Attempt] = {}
        self.unbegun: dict[AttemptId, Run] = {}
        self.last: dict[AttemptId, dict[int, Pod]] = {}
        self.lacking: set[AttemptId] = set()
        self.pods: dict[AttemptId, PodNews] = {}
        self.looks: dict[AttemptId, CheckpointLook] = {}
        self.devices: dict[AttemptId, tuple[DeviceShare, ...]] = {}
        self._adopted: dict[str, tuple[AttemptId, int]] = {}

    def clear(self) -> None:
        for each in (self.attempts, self.unbegun, self.last, self.looks, self.devices, self.pods):
            each.clear()
        self.lacking.clear()
        self._adopted.clear()

    def enter(self, attempt: Attempt) -> None:
        """It is looked after from now on."""
        note = attempt.note
        key = (note.job, note.attempt)
        self.attempts[key] = attempt
        if note.names:
            self._adopted |= {uid: (key, rank) for rank, uid in enumerate(note.parts)}

    def drop(self, key: AttemptId) -> Attempt | None:
        """Nothing of it is known any more."""
        attempt = self.attempts.pop(key, None)
        self.begun(key)
        for each in (self.looks, self.devices, self.pods):
            each.pop(key, None)
        for uid in attempt.note.parts if attempt is not None and attempt.note.names else ():
            self._adopted.pop(uid, None)
        return attempt

    def begun(self, key: AttemptId) -> None:
        """Nothing more has to be made for it."""
        self.unbegun.pop(key, None)
        self.lacking.discard(key)

    def news_of(self, key: AttemptId) -> PodNews:
        return self.pods.setdefault(key, PodNews())

    def is_adopted(self, uid: str) -> bool:
        return uid in self._adopted

    def claimed(self, pod: Pod) -> tuple[AttemptId, Pod] | None:
        """Whose attempt a pod is, and as what of it; None where it is none of ours.

        Labels are anybody's to write; the names of pods that we made are not, nor are uids.
        """
        found = self._adopted.get(pod.uid)
        if found is not None:
            key, rank = found
            return key, replace(pod, rank=rank, wanted=self.attempts[key].note.nodes[rank])
        said = pod.key
        if said is None or said.site != self._link.site:
            return None
        key = (JobId(said.job), said.attempt)
        if pod.name != f"{name_of(self.mark(key))}-{pod.rank}":
            return None
        attempt = self.attempts.get(key)
        parts = () if attempt is None else attempt.note.parts
        is_it = not parts or (pod.rank < len(parts) and parts[pod.rank] == pod.uid)
        return (key, pod) if is_it else None

    def mark(self, key: AttemptId) -> Key:
        return Key(site=self._link.site, job=key[0], attempt=key[1], seal=self._link.seal)

    def place(self, key: AttemptId) -> Place:
        """Where the objects of an attempt are: as noted, or where they would be made."""
        attempt, run = self.attempts.get(key), self.unbegun.get(key)
        noted = (attempt.note.handle or "") if attempt is not None else ""
        names = attempt.note.names if attempt is not None else ()
        namespace = noted.partition("/")[0]
        if not namespace and run is not None:
            namespace = self.namespace_of(run)
        usual = self._link.manner.namespace
        return Place(namespace=namespace or usual, key=self.mark(key), names=names)

    def namespace_of(self, run: Run) -> str:
        adopts = run.launch.adopts
        return adopts[0].namespace if adopts else self._link.manner.namespace_of(run.job.spec.queue)

    def called(self, key: AttemptId) -> str:
        """What the objects of an attempt are called, with the namespace that they are in."""
        where = self.place(key)
        name = where.names[0] if where.names else name_of(where.key)
        return f"{where.namespace}/{name}"

    def places_of(self, note: Note) -> tuple[Place, ...]:
        """Where the objects of an attempt may be of which there is only this note."""
        key = (note.job, note.attempt)
        if note.handle is None:
            return self.places(key)
        namespace = note.handle.partition("/")[0]
        return (Place(namespace=namespace, key=self.mark(key), names=note.names),)

    def places(self, key: AttemptId) -> tuple[Place, ...]:
        """The same; every place where they may be if nothing is known."""
        if key in self.attempts or key in self.unbegun:
            return (self.place(key),)
        manner = self._link.manner
        every = sorted({manner.namespace, *manner.namespaces.values()})
        return tuple(Place(namespace=each, key=self.mark(key)) for each in every)
