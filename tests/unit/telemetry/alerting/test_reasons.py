from muster.model.value import Instant
from muster.telemetry.alerting.judging import Alert, AlertState
from muster.telemetry.alerting.reasons import WHY, with_reasons
from muster.telemetry.family import Family, FamilyKind, Labels, Point
from muster.telemetry.promql.labels import series_name


def alert(name: str, queue: str = "acme") -> Alert:
    return Alert(
        labels=series_name({"alertname": name, "queue": queue}),
        annotations=(("summary", "so it is"),),
        value=1,
        state=AlertState.FIRING,
        since=Instant(0),
    )


def gauges(name: str, *points: tuple[Labels, float]) -> Family:
    found = tuple(Point(labels, value) for labels, value in points)
    return Family(name=name, kind=FamilyKind.GAUGE, help="", points=found)


WAITING = gauges(
    "muster_jobs_waiting",
    ((("queue", "acme"), ("reason", "no_room")), 2),
    ((("queue", "acme/nlp"), ("reason", "over_limit")), 5),
    ((("queue", "acmes"), ("reason", "behind")), 9),
)
FINDINGS = gauges(
    "muster_job_finding",
    *(
        ((("job", str(job)), ("queue", "acme"), ("user", "ada"), ("cause", "idle")), float(job))
        for job in range(1, 6)
    ),
)


def why(alert: Alert, *families: Family) -> str:
    (told,) = with_reasons([alert], families)
    assert told.labels == alert.labels
    return told.annotation(WHY)


def test_an_alert_about_a_queue_says_what_most_of_its_jobs_wait_for() -> None:
    assert why(alert("QueueWaitLong"), WAITING) == "5 of 7 waiting jobs wait for: over_limit"
    assert why(alert("QueueBelowGuarantee", "acmes"), WAITING) == (
        "9 of 9 waiting jobs wait for: behind"
    )


def test_an_alert_about_money_names_the_dearest_jobs_and_nobody() -> None:
    told = why(alert("QueueWastesMoney"), FINDINGS)

    assert told == (
        "dearest now: job 5 (idle, 5.00 an hour), job 4 (idle, 4.00 an hour), "
        "job 3 (idle, 3.00 an hour)"
    )


def test_where_nothing_more_is_known_nothing_is_said() -> None:
    assert why(alert("GpuBroken"), WAITING, FINDINGS) == ""
    assert why(alert("QueueWaitLong", "elsewhere"), WAITING) == ""
    assert why(alert("QueueWastesMoney")) == ""
