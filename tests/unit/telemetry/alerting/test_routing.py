from muster.model.alerting import (
    Alerting,
    LabelTest,
    Receiver,
    ReceiverKind,
    Route,
    Severity,
    Silence,
)
from muster.model.value import Duration, Instant, QueuePath, UserName
from muster.telemetry.alerting.bodies import (
    MOST_SHOWN,
    MOST_TOLD,
    alertmanager_bodies,
    fingerprint,
    mail_text,
    rfc3339,
    slack_body,
    teams_body,
    webhook_body,
)
from muster.telemetry.alerting.judging import Alert, AlertState
from muster.telemetry.alerting.muting import Mute, MuteKind, Muting, mutes
from muster.telemetry.alerting.routing import Notification, Router, for_alertmanagers
from muster.telemetry.promql.labels import series_name

HOOK = Receiver(name="hook", kind=ReceiverKind.WEBHOOK, url_file="/etc/hook")
MANAGER = Receiver(name="manager", kind=ReceiverKind.ALERTMANAGER, url_file="/etc/manager")
ALL = Alerting(receivers={"hook": HOOK}, routes=(Route(receivers=("hook",)),))


def test_a_group_waits_for_others_like_it_and_is_told_once() -> None:
    router = Router(ALL)

    told = [
        told_of(router.due(firing, at(seconds)))
        for seconds, firing in (
            (0, [alert("A", gpu="0")]),
            (15, [alert("A", gpu="0"), alert("A", gpu="1")]),
            (30, [alert("A", gpu="0"), alert("A", gpu="1")]),
            (45, [alert("A", gpu="0"), alert("A", gpu="1")]),
        )
    ]

    assert told == [[], [], [("A", 2, 0)], []]


def test_a_group_is_told_again_when_it_changed_and_when_it_is_over() -> None:
    router = Router(ALL)
    router.due([alert("A", gpu="0")], at(0))
    router.due([alert("A", gpu="0")], at(30))
    two = [alert("A", gpu="0"), alert("A", gpu="1")]

    assert told_of(router.due(two, at(60))) == []
    assert told_of(router.due(two, at(330))) == [("A", 2, 0)]
    assert told_of(router.due([], at(345))) == [("A", 0, 2)]
    assert told_of(router.due([], at(360))) == []


def test_a_group_that_goes_on_is_told_again_after_four_hours() -> None:
    router = Router(ALL)
    router.due([alert("A")], at(0))
    router.due([alert("A")], at(30))

    assert told_of(router.due([alert("A")], at(4 * 3600))) == []
    assert told_of(router.due([alert("A")], at(4 * 3600 + 30))) == [("A", 1, 0)]


def test_an_alert_that_is_over_before_it_was_told_is_not_told() -> None:
    router = Router(ALL)
    router.due([alert("A")], at(0))

    assert told_of(router.due([], at(30))) == []


def test_an_alert_that_is_silenced_is_not_over() -> None:
    router = Router(ALL)
    router.due([alert("A")], at(0))
    router.due([alert("A")], at(30))

    assert told_of(router.due([alert("A")], at(600), muted={alert("A")})) == []
    assert told_of(router.due([], at(615))) == [("A", 0, 1)]


def test_routes_choose_by_severity_queue_and_name() -> None:
    pager = Receiver(name="pager", kind=ReceiverKind.WEBHOOK, url_file="/etc/pager")
    alerting = Alerting(
        receivers={"hook": HOOK, "pager": pager},
        routes=(
            Route(receivers=("pager",), severities=(Severity.CRITICAL,)),
            Route(receivers=("hook",), queue=QueuePath("acme")),
        ),
    )
    router = Router(alerting)
    firing = [
        alert("A", severity="critical", queue="acme/nlp"),
        alert("B", severity="warning", queue="acmex"),
        alert("C", severity="warning", queue="acme"),
    ]
    router.due(firing, at(0))

    found = [(each.key.address.receiver, each.key.alert) for each in router.due(firing, at(30))]

    assert sorted(found) == [("hook", "A"), ("hook", "C"), ("pager", "A")]


def test_the_owner_of_a_job_is_told_of_their_own() -> None:
    router = Router(Alerting(routes=(Route(owner=True),)))
    firing = [alert("JobHangs", job="7", user="ada"), alert("JobHangs", job="8", user="bob")]
    router.due(firing, at(0))

    found = {each.key.address.user: len(each.alerts) for each in router.due(firing, at(30))}

    assert found == {"ada": 1, "bob": 1}


def test_pretend_devices_never_page_unless_somebody_wants_so() -> None:
    firing = [alert("A", pretend="true")]
    router, open_router = (
        Router(ALL),
        Router(Alerting(receivers=ALL.receivers, routes=ALL.routes, pretend=True)),
    )
    for each in (router, open_router):
        each.due(firing, at(0))

    assert told_of(router.due(firing, at(30))) == []
    assert told_of(open_router.due(firing, at(30))) == [("A", 1, 0)]


def test_an_alertmanager_is_told_everything_every_time() -> None:
    alerting = Alerting(receivers={"manager": MANAGER}, routes=(Route(receivers=("manager",)),))
    firing = [alert("A"), alert("B", state=AlertState.PENDING)]

    assert Router(alerting).due(firing, at(30)) == ()
    assert [each.name for each in for_alertmanagers(alerting, firing)["manager"]] == ["A"]


def test_a_silence_mutes_what_fulfils_all_of_its_tests_until_it_ends() -> None:
    silence = Silence(
        id="s1",
        tests=(
            LabelTest(name="alertname", operator="=~", value="Gpu.*"),
            LabelTest(name="gpu", operator="=", value="0"),
        ),
        begins_at=at(0),
        ends_at=at(60),
        by=UserName("root"),
        comment="being replaced",
    )
    ours, other = alert("GpuBroken", gpu="0"), alert("GpuBroken", gpu="1")
    muting = Muting(silences=(silence,))

    assert mutes([ours, other], muting, at(59)) == {ours: Mute(kind=MuteKind.SILENCED, by="s1")}
    assert mutes([ours, other], muting, at(60)) == {}


def test_a_silence_of_a_queue_reaches_no_other() -> None:
    silence = Silence(
        id="s1",
        tests=(),
        begins_at=at(0),
        ends_at=at(60),
        by=UserName("ada"),
        comment="",
        queue=QueuePath("acme"),
    )
    inside, beside, above = alert("A", queue="acme/nlp"), alert("A", queue="acmes"), alert("A")

    found = mutes([inside, beside, above], Muting(silences=(silence,)), at(1))

    assert list(found) == [inside]


def test_a_broken_device_mutes_its_jobs_a_node_its_devices_a_cluster_its_nodes() -> None:
    broken = alert("GpuBroken", UUID="GPU-1", Hostname="n1")
    node = alert("NodeGone", node="n1", cluster="c")
    cluster = alert("BackendUnreachable", cluster="c")
    job, other = alert("JobHangs", job="7"), alert("JobHangs", job="8")
    muting = Muting(devices={"7": frozenset({"GPU-1"}), "8": frozenset({"GPU-2"})})

    assert list(mutes([broken, job, other], muting, at(0))) == [job]
    assert list(mutes([broken, node], muting, at(0))) == [broken]
    assert list(mutes([node, cluster], muting, at(0))) == [node]


def test_a_webhook_gets_alertmanagers_body() -> None:
    body = webhook_body(message(alert("A", gpu="0", queue="q"), alert("A", gpu="1", queue="q")))

    assert body["version"] == "4"
    assert body["status"] == "firing"
    assert body["groupLabels"] == {"alertname": "A", "queue": "q"}
    assert body["commonLabels"] == {"alertname": "A", "queue": "q"}
    assert [each["labels"]["gpu"] for each in body["alerts"]] == ["0", "1"]
    assert body["alerts"][0]["startsAt"] == "1970-01-01T00:00:00.000Z"
    assert body["alerts"][0]["endsAt"] == "0001-01-01T00:00:00Z"
    assert len(body["alerts"][0]["fingerprint"]) == 16


def test_ten_thousand_alerts_are_messages_that_receivers_take() -> None:
    many = [alert("A", said="x" * 300, gpu=f"{number:05}") for number in range(10_000)]
    told = message(*many)

    body, mail = webhook_body(told), mail_text(told).body

    assert (len(body["alerts"]), body["truncatedAlerts"]) == (MOST_TOLD, 10_000 - MOST_TOLD)
    assert body["commonLabels"] == {"alertname": "A"}
    assert f"and {10_000 - MOST_SHOWN} more; see muster alerts" in mail
    assert len(slack_body(told)["text"]) <= 2_000
    assert len(teams_body(told)["attachments"][0]["content"]["body"]) == MOST_SHOWN + 2
    # An Alertmanager has to know all of them: what it is not told of is over.
    batches = alertmanager_bodies(many, at(60), Duration(60_000))
    assert [len(batch) for batch in batches] == [MOST_TOLD] * 10


def test_ten_thousand_alerts_of_five_thousand_causes_are_muted() -> None:
    broken = [alert("GpuBroken", UUID=f"GPU-{number}") for number in range(5_000)]
    jobs = [alert("JobHangs", job=str(number)) for number in range(10_000)]
    held = {str(number): frozenset({f"GPU-{number}"}) for number in range(10_000)}

    found = mutes([*broken, *jobs], Muting(devices=held), at(0))

    assert list(found) == jobs[:5_000]
    assert set(found.values()) == {Mute(kind=MuteKind.INHIBITED, by="GpuBroken")}


def test_texts_of_users_are_neither_links_nor_styles_nor_headers() -> None:
    evil = alert("A", said="<!channel> *x* [a](http://b)\nBcc: eve@example.org")

    assert "<!channel>" not in slack_body(message(evil))["text"]
    card = teams_body(message(evil))["attachments"][0]["content"]["body"]
    assert "[a](" not in card[0]["text"]
    assert "\n" not in mail_text(message(evil)).subject
    assert len(slack_body(message(alert("A", said="x" * 9_000)))["text"]) <= 2_000


def test_what_is_not_sent_again_is_over_for_an_alertmanager() -> None:
    ((body,),) = alertmanager_bodies([alert("A")], at(60), Duration(60_000))

    assert (body["startsAt"], body["endsAt"]) == (rfc3339(at(0)), rfc3339(at(300)))


def test_instants_are_those_of_the_calendar() -> None:
    assert rfc3339(Instant(951_782_400_123)) == "2000-02-29T00:00:00.123Z"
    assert rfc3339(Instant(1_796_083_200_000)) == "2026-12-01T00:00:00.000Z"
    assert rfc3339(Instant(-1)) == "1969-12-31T23:59:59.999Z"


def test_a_fingerprint_is_that_of_prometheus() -> None:
    plain = alert("A")

    assert fingerprint(plain) == f"{fnv(b'alertname' + bytes([255]) + b'A' + bytes([255])):016x}"


def fnv(data: bytes) -> int:
    found = 14695981039346656037
    for byte in data:
        found = (found ^ byte) * 1099511628211 % 2**64
    return found


def message(*alerts: Alert) -> Notification:
    router = Router(ALL)
    router.due(alerts, at(0))
    (told,) = router.due(alerts, at(30))
    return told


def told_of(told: tuple[Notification, ...]) -> list[tuple[str, int, int]]:
    """The alert's name, how many fire, and how many are over."""
    return [
        (
            each.key.alert,
            sum(one.state is AlertState.FIRING for one in each.alerts),
            sum(one.state is AlertState.RESOLVED for one in each.alerts),
        )
        for each in told
    ]


def alert(
    name: str, said: str = "it is so", state: AlertState = AlertState.FIRING, **labels: str
) -> Alert:
    return Alert(
        labels=series_name({**labels, "alertname": name}),
        annotations=(("description", said), ("summary", said)),
        value=1,
        state=state,
        since=at(0),
        fired_at=at(0),
    )


def at(seconds: int) -> Instant:
    return Instant(seconds * 1000)
