"""Leading by a Lease: over real HTTP, and by a clock that the test sets."""

import time
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Event

import pytest

from muster.app.parts import Muster
from muster.backends.kubernetes.client import Client
from muster.backends.kubernetes.kubeconfig import access_of
from muster.backends.kubernetes.lease import Standing, Terms
from muster.backends.kubernetes.seat import LeaseRefusedError, Place, Process, Seat
from muster.model.value import Duration, Instant
from muster.settings import LeaseToLead, Settings
from pretend_kubernetes.api import Json, PretendApi, Refusal, pretend_api

LEASES = "/apis/coordination.k8s.io/v1/leases"
COLLECTION = "/apis/coordination.k8s.io/v1/namespaces/muster/leases"
PLACE = Place(namespace="muster", name="lead")


class Clock:
    def __init__(self) -> None:
        self.now = Instant(1_000)

    def __call__(self) -> Instant:
        return self.now

    def passes(self, seconds: float) -> None:
        self.now = Instant(self.now + int(1_000 * seconds))


class House:
    """An API server, and processes that lead by the same Lease."""

    def __init__(self, api: PretendApi, kubeconfig: Path) -> None:
        self.api, self.kubeconfig, self.clock = api, kubeconfig, Clock()
        self.woken, self.ended = Event(), Event()
        self._seats: list[Seat] = []

    def seat(self, name: str, renews_every: int = 600_000) -> Seat:
        """One that renews so rarely that the test has the say."""
        standing = Standing(me=name, terms=Terms(renews_every=Duration(renews_every)))
        client = Client(access_of(self.kubeconfig), answer_s=3, tries=1)
        process = Process(clock=self.clock, wake=self.woken.set, end=self.ended.set)
        made = Seat(client, PLACE, standing, process)
        self._seats.append(made)
        return made

    @property
    def spec(self) -> Json:
        found = self.api.see(LEASES, "muster", "lead")
        assert found is not None
        spec: Json = found["spec"]
        return spec

    @property
    def holder(self) -> str:
        return str(self.spec["holderIdentity"])

    @property
    def renewals(self) -> int:
        return self.api.times(f"PATCH {PLACE.path}")

    def close(self) -> None:
        for each in self._seats:
            each.close()


@pytest.fixture
def house(tmp_path: Path) -> Generator[House]:
    with pretend_api(tmp_path) as (api, kubeconfig), closing(House(api, kubeconfig)) as made:
        yield made


def until(is_so: Callable[[], object]) -> None:
    deadline = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_of_two_one_leads_and_the_other_takes_over_what_is_given_back(house: House) -> None:
    first, second = house.seat("first"), house.seat("second")

    assert first.lead()
    assert first.lead()
    assert not second.lead()
    assert house.holder == "first"

    first.step_down()
    assert house.holder == ""
    assert second.lead()
    assert not first.lead()
    assert (house.holder, house.spec["leaseTransitions"]) == ("second", 1)


def test_who_stepped_down_can_lead_again(house: House) -> None:
    seat = house.seat("first")
    seat.step_down()
    assert seat.lead()
    seat.step_down()
    seat.step_down()

    assert seat.lead()


def test_who_is_silent_is_succeeded_after_fifteen_seconds_and_has_stopped_before(
    house: House,
) -> None:
    first, second = house.seat("first"), house.seat("second")
    assert first.lead()
    assert not second.lead()

    house.clock.passes(9.9)
    assert first.lead()
    house.clock.passes(0.2)
    assert not first.lead()
    assert not second.lead()
    first.step_down()
    house.clock.passes(5)

    assert second.lead()


def test_who_leads_renews(house: House) -> None:
    seat = house.seat("first", renews_every=20)
    assert seat.lead()
    for _ in range(5):
        house.clock.passes(8)
        # One may have been under way; the next one was asked for after the time had passed.
        renewals = house.renewals + 3
        until(lambda enough=renewals: house.renewals >= enough)
        assert seat.lead()

    assert not house.ended.is_set()


def test_while_the_server_is_away_nobody_is_made_leader_and_the_leader_stops(house: House) -> None:
    first, second = house.seat("first", renews_every=20), house.seat("second")
    assert first.lead()
    house.api.is_away = True
    house.clock.passes(10)
    until(house.woken.is_set)

    assert not first.lead()
    assert not second.lead()
    first.step_down()
    house.api.is_away = False
    # What could not be given back ends by itself.
    assert not second.lead()
    house.clock.passes(15)
    assert second.lead()


def test_who_does_not_come_to_rest_in_time_is_ended_before_another_may_lead(house: House) -> None:
    first = house.seat("first")
    assert first.lead()

    house.clock.passes(13.9)
    until(house.woken.is_set)
    assert not house.ended.is_set()
    house.clock.passes(0.2)

    until(house.ended.is_set)


def test_who_lost_it_does_not_take_it_back_before_it_came_to_rest(house: House) -> None:
    first = house.seat("first", renews_every=20)
    assert first.lead()
    house.api.become(LEASES, "muster", "lead", {"spec": {"holderIdentity": "other"}})
    until(house.woken.is_set)
    house.api.become(LEASES, "muster", "lead", {"spec": {"holderIdentity": ""}})

    assert not first.lead()
    assert house.holder == ""
    first.step_down()
    assert first.lead()


def test_an_answer_that_was_lost_does_no_harm(house: House) -> None:
    house.api.refuse(Refusal(f"POST {COLLECTION}", 500, times=2, is_done=True))
    first, second = house.seat("first"), house.seat("second")

    assert not first.lead()
    assert house.holder == "first"
    assert not second.lead()
    assert first.lead()


def test_a_lease_that_somebody_deletes_is_made_again_by_who_holds_it(house: House) -> None:
    first, second = house.seat("first", renews_every=300), house.seat("second")
    assert first.lead()
    assert not second.lead()
    house.api.remove(LEASES, "muster", "lead")

    assert not second.lead()
    until(lambda: house.api.see(LEASES, "muster", "lead"))
    assert house.holder == "first"
    assert first.lead()


def test_who_may_not_is_told_what_to_do(house: House) -> None:
    house.api.refuse(Refusal(f"GET {COLLECTION}/lead", 403))

    with pytest.raises(LeaseRefusedError, match="deploy/in-cluster"):
        house.seat("first").lead()


@contextmanager
def muster(folder: Path, settings: Settings) -> Generator[Muster]:
    folder.mkdir(exist_ok=True)
    with closing(Muster(folder, settings)) as made:
        made.start()
        yield made


def test_a_muster_leads_by_its_lease_and_gives_it_back_at_the_end(
    house: House, tmp_path: Path
) -> None:
    lease = LeaseToLead(name="lead", namespace="muster", kubeconfig=str(house.kubeconfig))
    settings = Settings(lease=lease, only_clusters=True)

    other = house.seat("other")
    assert other.lead()
    with muster(tmp_path / "home", settings) as made:
        assert not made.controller.is_leading
        other.step_down()
        until(lambda: made.controller.is_leading)
        assert house.holder not in {"", "other"}
        assert made.backends == {}

    assert house.holder == ""


def test_a_muster_that_loses_its_lease_comes_to_rest_and_leads_again_when_it_may(
    house: House, tmp_path: Path
) -> None:
    lease = LeaseToLead(name="lead", namespace="muster", kubeconfig=str(house.kubeconfig))
    settings = Settings(lease=lease, nodes=1, gpus="0")

    with muster(tmp_path / "home", settings) as made:
        until(lambda: made.controller.is_leading)
        house.api.become(LEASES, "muster", "lead", {"spec": {"holderIdentity": "other"}})
        until(lambda: not made.controller.is_leading)
        until(lambda: not made.backends)
        house.api.become(LEASES, "muster", "lead", {"spec": {"holderIdentity": ""}})
        until(lambda: made.controller.is_leading)

    assert house.holder == ""
