import pytest

from doors.rest.running import running, shell, started
from muster import ApiError, Client
from muster.api.pages import RehearsalAsked
from muster.api.requests import GroupDocument, SubmitDocument
from muster.api.site import QuotaAsked
from muster.model.value import replace

SITE = """
queues:
  default: {}
  acme:
    weight: 3
    queues:
      nlp: {}
"""


def test_status_tells_what_there_is(client: Client) -> None:
    status = client.status()

    assert (status.gpus, status.nodes, status.pretend, status.leading) == (8, {"up": 2}, True, True)


def test_nodes_show_what_is_held_and_by_whom(client: Client) -> None:
    job = client.submit_document(shell("sleep 60", gpus=2)).id
    where = started(client, job).nodes[0]

    node = client.node(where)

    assert job in node.jobs
    assert node.gpus_used >= 2
    assert [device.jobs for device in node.devices].count((job,)) == 2
    client.cancel([job])
    client.wait(job)


def test_a_node_is_drained_and_taken_back(client: Client) -> None:
    drained = client.drain("pretend2", "new cooler")
    back = client.undrain("pretend2")

    assert (drained.state, drained.reason) == ("draining", "new cooler")
    assert (back.state, back.reason) == ("up", "")


def test_a_configuration_is_tried_applied_and_read_back(client: Client) -> None:
    text = site_with(client, SITE)

    tried = client.apply(text, dry_run=True)
    applied = client.apply(text)
    again = client.apply(client.site())

    assert (tried.applied, applied.applied, again.applied) == (False, True, False)
    assert tried.changes == applied.changes
    assert any("acme" in line for line in applied.changes)
    assert [queue.path for queue in client.queues()] == ["acme", "acme/nlp", "default"]
    assert client.queue("acme").share == pytest.approx(0.75)


def test_a_quota_is_set_and_what_is_used_is_counted_up_the_tree(client: Client) -> None:
    client.apply(site_with(client, SITE))
    client.set_quota(QuotaAsked(queue="acme", guaranteed="1", limit="50%"))
    job = client.submit_document(shell("sleep 60", gpus=2, queue="acme/nlp")).id
    started(client, job)

    acme = client.queue("acme")

    assert acme.running == 1
    assert acme.gpus_used == 2
    (line,) = acme.quotas
    assert (line.used, line.guaranteed, line.limit, line.borrowed) == (2, 1, 4, 1)
    client.cancel([job])
    client.wait(job)


def test_a_rehearsed_submit_says_what_would_become_of_it(client: Client) -> None:
    fits = SubmitDocument(command=("true",), groups=(GroupDocument(gpus=1),))
    before = client.event_page().next

    rehearsal = client.rehearse(RehearsalAsked(submit=fits))

    assert "Starts now" in rehearsal.text
    assert client.event_page(after=before).events == ()


def test_a_rehearsed_submit_says_that_it_would_miss_its_deadline() -> None:
    asked = SubmitDocument(command=("sleep", "60"), time="30m", groups=(GroupDocument(gpus=4),))
    late = replace(asked, deadline="now+31m")
    # A Muster that has seen no job end: what jobs of other tests took would say when these end.
    with running() as daemon, daemon.client() as client:
        filling = [client.submit_document(asked).id for _ in range(2)]
        for job in filling:
            started(client, job)

        rehearsal = client.rehearse(RehearsalAsked(submit=late))

        client.cancel(filling)
        for job in filling:
            client.wait(job)
    assert "It is expected to start too late for its deadline, in 31m." in rehearsal.text


def test_a_rehearsed_change_of_rules_changes_nothing(client: Client) -> None:
    before = client.site()

    client.rehearse(RehearsalAsked(quota=QuotaAsked(queue="default", limit="1")))

    assert client.site() == before


def test_a_queue_that_is_not_there_cannot_have_a_quota(client: Client) -> None:
    with pytest.raises(ApiError) as refused:
        client.set_quota(QuotaAsked(queue="nowhere", limit="1"))

    assert refused.value.status == 404


def test_classes_say_who_may_use_them_and_queues_whether_they_are_private(client: Client) -> None:
    before = client.site()
    text = before.replace("queues:\n", "queues:\n  hidden:\n    private: true\n", 1)
    text = text.replace("classes:\n", "classes:\n  mine: {priority: 500, may_use: [ann]}\n", 1)
    client.apply(text)

    may = {each.name: each.may_use for each in client.classes()}
    private = {each.path for each in client.queues() if each.private}

    assert may == {"mine": ("ann",), "high": (), "normal": ("everyone",), "low": ("everyone",)}
    assert private == {"hidden"}
    client.apply(before)


def test_classes_come_by_priority_and_users_by_name(client: Client) -> None:
    assert [each.name for each in client.classes()] == ["high", "normal", "low"]
    assert client.users().everyone == "user"


def site_with(client: Client, queues: str) -> str:
    """What is there, with other queues."""
    _, _, rest = client.site().partition("\nclasses:")
    return f"{queues}\nclasses:{rest}"
