"""Fair share with decay, at every level of the tree down to the user.

What counts against a queue or user is what it used lately, each half-life half as much, plus what
it holds now over a short time to come: so a light user overtakes a heavy one, and of several who
arrive together none takes everything. All of it is counted in thousandths of a GPU times
milliseconds, for the dominant of GPU, CPU and memory.
"""

from collections.abc import Mapping
from math import isqrt

from muster.model.policy import SharePolicy
from muster.model.queue import Queue, lineage
from muster.model.resources import Resources
from muster.model.snapshot import Snapshot, UsedLately
from muster.model.value import Duration, Instant, QueuePath, UserName

ONE = 1_000_000_000
"""Shares of use and of weight are counted in billionths."""

FULL = 1_000
"""The factor of somebody who used nothing."""


def decayed(amount: int, *, elapsed: Duration, half_life: Duration) -> int:
    """What is left to count of an amount after some time.

    A power of two in integers, so that it is the same on any machine: the exponent is counted in
    parts of 2 ** 40, and each 10 bits of it are looked up.
    """
    halvings, rest = divmod(max(0, elapsed), half_life)
    exponent = (rest << 40) // half_life
    for place, powers in enumerate(_POWERS):
        amount = amount * powers[exponent >> (30 - 10 * place) & 1_023] >> _BITS
    return amount >> halvings


_BITS = 64


def _powers(bits: int) -> list[int]:
    """2 ** -(n / 2 ** bits) for each n below 1,024, in parts of 2 ** 64, rounded down."""
    root = 1 << (_BITS - 1)
    for _ in range(bits):
        root = isqrt(root << _BITS)
    powers = [1 << _BITS]
    while len(powers) < 1_024:
        powers.append(powers[-1] * root >> _BITS)
    return powers


_POWERS = [_powers(bits) for bits in (10, 20, 30, 40)]


def dominant_milli(amount: Resources, whole: Resources) -> int:
    """The amount in thousandths of a GPU, by the resource of which it is the largest part."""
    if not whole.gpu_milli:
        return amount.cpu_milli
    by_cpu = amount.cpu_milli * whole.gpu_milli // max(1, whole.cpu_milli)
    by_memory = amount.memory_mib * whole.gpu_milli // max(1, whole.memory_mib)
    return max(amount.gpu_milli, by_cpu, by_memory)


class Branch:
    """A queue or, below it, a user: its part of the parent, what it holds, what it used.

    `jobs` counts the jobs that keep a user's branch alive beside past use; `own` is its part of all
    use, in billionths.
    """

    __slots__ = (
        "above",
        "depth",
        "held_milli",
        "jobs",
        "lineage",
        "name",
        "own",
        "part",
        "share",
        "used",
        "weight",
    )

    def __init__(self, name: str, weight: int, above: "Branch | None") -> None:
        self.name = name
        self.weight = weight
        self.above = above
        # From the branch below the root down to this one.
        self.lineage: tuple[Branch, ...] = () if above is None else (*above.lineage, self)
        self.depth = len(self.lineage)
        self.part = ONE
        self.share = ONE
        self.held_milli = 0
        self.jobs = 0
        self.used = 0
        self.own = 0


class Shares:
    """The tree of shares. Parts follow the weights of the branches that are there.

    A user is there who has jobs, or had some lately; a queue, while somebody is below it. So a
    queue without work takes nothing from those beside it, nor from its parent's own users.
    """

    def __init__(self, queues: Mapping[QueuePath, Queue], policy: SharePolicy) -> None:
        self._policy = policy
        self._root = Branch("", 1, None)
        self._queues: dict[QueuePath, Branch] = {}
        self._users: dict[tuple[QueuePath, UserName], Branch] = {}
        # Every branch, with those below it that are there.
        self._below: dict[Branch, list[Branch]] = {self._root: []}
        self._uneven: set[Branch] = set()
        self._whole = 1
        for path in sorted(queues):
            branch = Branch(path, max(1, queues[path].weight), self._parent(path))
            self._queues[path] = branch
            self._below[branch] = []

    def with_queues(self, queues: Mapping[QueuePath, Queue]) -> "Shares":
        """The same users with the same jobs and holdings, below other queues."""
        other = Shares(queues, self._policy)
        for (queue, user), leaf in self._users.items():
            branch = other.leaf(queue, user)
            branch.jobs = leaf.jobs
            other.hold(branch, leaf.held_milli)
        return other

    def leaf(self, queue: QueuePath, user: UserName) -> Branch:
        """The branch of one user in one queue. New branches count from the next `recount` on."""
        known = self._users.get((queue, user))
        if known is None:
            known = Branch(f"{queue}:{user}", 1, self._queues.get(queue, self._root))
            self._users[queue, user] = known
            self._below[known] = []
            self._join(known)
        return known

    def seat(self, queue: QueuePath, user: UserName) -> Branch:
        """The branch of one user in one queue, or the one that he would have if he came now."""
        known = self._users.get((queue, user))
        if known is not None:
            return known
        return self._as_newcomer(f"{queue}:{user}", 1, self._place(queue))

    @property
    def root(self) -> Branch:
        """Everybody together."""
        return self._root

    def queues(self) -> dict[QueuePath, Branch]:
        """All of them; those without work as they would be if somebody came to them now."""
        return {path: self._place(path) for path in self._queues}

    @property
    def users(self) -> Mapping[tuple[QueuePath, UserName], Branch]:
        """Those who have jobs, or had some lately."""
        return self._users

    def recount(self, snapshot: Snapshot, capacity_milli: int) -> None:
        """Count again what everybody used lately, as of now, and who is there to share."""
        for branch in self._below:
            branch.used = 0
        for each in snapshot.used_lately:
            self._count(self.leaf(each.queue, each.user), self._now(each, snapshot.now))
        self._prune()
        for branch in self._uneven:
            self._divide(branch)
        self._uneven.clear()
        self._whole = max(1, self._root.used + capacity_milli * self._policy.lookahead)
        for branch in self._below:
            self._weigh(branch)

    def _count(self, leaf: Branch, used: int) -> None:
        branch: Branch | None = leaf
        while branch is not None:
            branch.used += used
            branch = branch.above

    def _prune(self) -> None:
        """A user without jobs or past use has no part: shares depend on the snapshot alone."""
        gone = [key for key, leaf in self._users.items() if not leaf.jobs and not leaf.used]
        for key in gone:
            leaf = self._users.pop(key)
            del self._below[leaf]
            self._leave(leaf)

    def hold(self, leaf: Branch, milli: int) -> None:
        """Somebody takes (or, below zero, gives back) so much."""
        branch: Branch | None = leaf
        while branch is not None:
            branch.held_milli += milli
            self._weigh(branch)
            branch = branch.above

    def factor(self, leaf: Branch) -> int:
        """From 1,000 for one who used nothing, through 500 at just his share, towards 0."""
        used = self.effective(leaf)
        return FULL * leaf.share // max(1, leaf.share + used)

    def effective(self, leaf: Branch) -> int:
        """Its part of all use, in billionths; of what siblings use, its parent's too."""
        above = 0
        for branch in leaf.lineage:
            own = branch.own
            above = own + (above - own) * branch.part // ONE if branch.depth > 1 else own
        return above

    def _weigh(self, branch: Branch) -> None:
        used = branch.used + branch.held_milli * self._policy.lookahead
        branch.own = used * ONE // self._whole

    def _now(self, used: UsedLately, now: Instant) -> int:
        elapsed = Duration(now - used.as_of)
        return decayed(used.gpu_milli_ms, elapsed=elapsed, half_life=self._policy.half_life)

    def _parent(self, path: QueuePath) -> Branch:
        above = list(lineage(path))[1:]
        return next((self._queues[each] for each in above if each in self._queues), self._root)

    def _join(self, branch: Branch) -> None:
        """The branch is there from now on, and with it those above."""
        above = branch.above
        if above is None:
            return
        self._uneven.add(above)
        is_first = not self._below[above]
        self._below[above].append(branch)
        if is_first:
            self._join(above)

    def _leave(self, branch: Branch) -> None:
        """The branch is no longer there, nor those above that had only this one."""
        above = branch.above
        if above is None:
            return
        self._uneven.add(above)
        self._below[above].remove(branch)
        if not self._below[above]:
            self._leave(above)

    def _place(self, queue: QueuePath) -> Branch:
        branch = self._queues.get(queue, self._root)
        if branch.above is None or self._below[branch]:
            return branch
        return self._as_newcomer(queue, branch.weight, self._place(QueuePath(branch.above.name)))

    def _as_newcomer(self, name: str, weight: int, above: Branch) -> Branch:
        # A branch that is not there itself has none below.
        total = weight + sum(each.weight for each in self._below.get(above, ()))
        branch = Branch(name, weight, above)
        branch.part, branch.share = ONE * weight // total, max(1, above.share * weight // total)
        return branch

    def _divide(self, branch: Branch) -> None:
        below = self._below[branch]
        total = sum(each.weight for each in below)
        for each in below:
            each.part = ONE * each.weight // total
            each.share = max(1, branch.share * each.weight // total)
            self._divide(each)
