"""Who is in which groups, and which pools let them in."""

import pytest

from controller.desk import LAB, MAIN, SITE, Desk
from muster.controller.world.groups import UserGroups, groups_of
from muster.lifecycle.refusal import PoolIsClosed
from muster.model.cluster import Pool
from muster.model.errors import RefusedError
from muster.model.job import JobState
from muster.model.value import Instant, PoolName, UserName, replace

GUARDED = Pool(name=MAIN, cluster=LAB, groups=("daemon",))
CLOSED = replace(SITE, pools={MAIN: GUARDED})


def test_the_system_says_who_is_in_which_groups() -> None:
    assert groups_of(UserName("daemon")) == {"daemon"}
    assert groups_of(UserName("nobody")) == {"nogroup"}
    assert groups_of(UserName("nobody-of-this-name")) == frozenset()
    assert groups_of(UserName("root")) is None


@pytest.mark.parametrize("user", ["daemon", "root"])
def test_a_pool_is_open_to_members_of_its_groups_and_to_root(user: str) -> None:
    desk = Desk(site=CLOSED)
    job = desk.submits(user, pools=(MAIN,))
    free = desk.submits(user)

    desk.lets_pass(1)

    assert {desk.state(job), desk.state(free)} == {JobState.RUNNING}


def test_a_pool_is_closed_to_others() -> None:
    desk = Desk(site=CLOSED)

    with pytest.raises(RefusedError, match="Pool main is for group daemon") as refused:
        desk.submits("nobody", pools=(MAIN,))

    assert refused.value.reason == PoolIsClosed(pool=MAIN)


def test_users_that_a_pool_names_need_no_group() -> None:
    desk = Desk(site=replace(SITE, pools={MAIN: replace(GUARDED, users=(UserName("ada"),))}))
    job = desk.submits("ada", pools=(MAIN,))

    desk.lets_pass(1)

    assert desk.state(job) is JobState.RUNNING


def test_a_pool_that_gets_groups_lets_waiting_members_in_and_nobody_else() -> None:
    desk = Desk(gpus=1)
    first = desk.submits(lasts=60)
    desk.lets_pass(1)
    outside, inside = desk.submits("nobody", lasts=5), desk.submits("daemon", lasts=5)
    desk.changes_site(pools={MAIN: GUARDED})

    desk.lets_pass(100)

    states = [desk.state(job) for job in (first, outside, inside)]
    assert states == [JobState.COMPLETED, JobState.PENDING, JobState.COMPLETED]


def test_groups_are_asked_for_again_after_a_while() -> None:
    groups = {UserName("ada"): frozenset({"old"})}
    people = UserGroups(lambda user: groups[user])
    people.meet(groups, Instant(0))
    groups[UserName("ada")] = frozenset({"daemon"})

    people.meet(groups, Instant(59_999))
    soon = members(people)
    people.meet(groups, Instant(60_000))

    assert (soon, members(people), people.version) == ((), ("ada",), 2)


def members(people: UserGroups) -> tuple[UserName, ...]:
    return people.let_into({PoolName("main"): GUARDED})[PoolName("main")].members
