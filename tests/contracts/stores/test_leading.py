"""Exactly one process leads, and another takes over when it is gone."""

from contracts.stores.children import child
from contracts.stores.given import soon
from contracts.stores.places import Place, PostgresPlace, SqlitePlace
from muster.stores.opening import WholeStore


def test_the_first_leads_and_goes_on_leading(store: WholeStore) -> None:
    assert store.lead()
    assert store.lead()


def test_who_stepped_down_can_lead_again(store: WholeStore) -> None:
    store.lead()

    store.step_down()
    store.step_down()

    assert store.lead()


def test_of_two_only_one_leads(database: Place) -> None:
    first, second = database.open(), database.open()

    assert first.lead()
    assert not second.lead()
    first.step_down()
    assert second.lead()
    assert not first.lead()


def test_who_closes_does_not_lead_any_more(database: SqlitePlace | PostgresPlace) -> None:
    first, second = database.open(), database.open()
    first.lead()

    database.shut(first)

    assert soon(second.lead)


def test_a_standby_takes_over_from_a_leader_that_was_killed(
    database: SqlitePlace | PostgresPlace,
) -> None:
    standby = database.open()
    with child("lead", database.url) as leader:
        assert leader.says() == "True"
        assert not standby.lead()

        leader.kill()

        assert soon(standby.lead, within_s=2)


def test_who_lost_the_connection_lost_the_lead(pg: PostgresPlace) -> None:
    leader, standby = pg.open(), pg.open()
    assert leader.lead()
    pg.server.say("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'")

    assert soon(standby.lead, within_s=2)
    assert not leader.lead()
