"""Who is in which groups: asked of the machine's own database, and remembered for a while."""

import grp
import os
import pwd
from collections.abc import Callable, Iterable, Mapping
from threading import Lock

from muster.model.cluster import Pool
from muster.model.job import Job
from muster.model.value import MINUTE, Duration, Instant, JobId, PoolName, UserName, replace

FRESH_FOR = Duration(60_000)
"""Somebody who was put into a group is let in so long afterwards."""

LOOK_EVERY = Duration(10 * MINUTE)
"""So often it is asked again in which groups those are whose jobs wait."""

Pools = Mapping[PoolName, Pool]

GroupsOf = Callable[[UserName], frozenset[str] | None]
"""The groups of a user; None is all of them."""


def groups_of(user: UserName) -> frozenset[str] | None:
    """As the machine has it. Root is nowhere a stranger, and who is not known is in no group."""
    try:
        person = pwd.getpwnam(user)
    except KeyError:
        return frozenset()
    if person.pw_uid == 0:
        return None
    return frozenset(filter(None, map(_name, os.getgrouplist(user, person.pw_gid))))


def is_guarded(pools: Pools) -> bool:
    """Does any pool ask for groups?"""
    return any(pool.groups for pool in pools.values())


class UserGroups:
    """Users that were met, with their groups."""

    def __init__(self, asks: GroupsOf = groups_of) -> None:
        self._asks = asks
        self._met: dict[UserName, tuple[Instant, frozenset[str] | None]] = {}
        self._lock = Lock()
        self.version = 0
        self._looked: tuple[Pools, Instant] = ({}, Instant(0))
        self._let_in: tuple[Pools, int, Pools] = ({}, 0, {})

    def meet(self, users: Iterable[UserName], now: Instant) -> None:
        """Know their groups as they are now, or were a moment ago."""
        for user in users:
            known = self._met.get(user)
            if known is not None and now < known[0] + FRESH_FOR:
                continue
            groups = self._asks(user)
            with self._lock:
                self._met[user] = (now, groups)
                self.version += known is None or known[1] != groups

    def look_again(self, pools: Pools, jobs: Mapping[JobId, Job], now: Instant) -> None:
        """Groups and rules change: now and then those are met again whose jobs are there."""
        looked_with, looked_at = self._looked
        is_time = looked_with is not pools or now > looked_at + LOOK_EVERY
        if is_time and is_guarded(pools):
            self._looked = (pools, now)
            self.meet({job.spec.user for job in tuple(jobs.values())}, now)

    def let_into(self, pools: Pools) -> Pools:
        """The pools with those who are in their groups, of all who were met."""
        if not is_guarded(pools):
            return pools
        given, version, found = self._let_in
        if given is not pools or version != self.version:
            version, met = self.version, tuple(self._met.items())
            found = {
                name: replace(pool, members=_members(pool, met)) if pool.groups else pool
                for name, pool in pools.items()
            }
            self._let_in = (pools, version, found)
        return found


def _members(
    pool: Pool, met: tuple[tuple[UserName, tuple[Instant, frozenset[str] | None]], ...]
) -> tuple[UserName, ...]:
    wanted = set(pool.groups)
    return tuple(
        sorted(user for user, (_, groups) in met if groups is None or not wanted.isdisjoint(groups))
    )


def _name(gid: int) -> str | None:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return None
