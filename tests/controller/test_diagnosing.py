"""Why jobs are slow, from looks at a small installation in pretend time; and who may see it."""

import pytest

from controller.desk import LAB, MAIN
from controller.observed import Observed
from muster.controller.alerting.loop import shipped_rules
from muster.controller.loop.controller import LastPlan
from muster.controller.messages import Caller
from muster.controller.queries.diagnosis import ReportQuery
from muster.controller.watching.diagnosing import Diagnosing
from muster.controller.watching.diagnosis_source import MOST_FINDINGS, DiagnosisSource
from muster.controller.watching.holdings import holdings_of
from muster.controller.watching.left_out import LeftOut
from muster.controller.watching.queue_names import QueueNames
from muster.controller.watching.tenancies import Tenancies
from muster.controller.world.record import Record
from muster.model.cluster import Pool
from muster.model.errors import ForbiddenError, UnknownError
from muster.model.finding import Cause, Use
from muster.model.job import JobState
from muster.model.samples import DeviceSample, Samples
from muster.model.value import SECOND, DeviceId, Duration, Instant, JobId, UserName, replace
from muster.stores.base import LiveState
from muster.telemetry.alerting.judging import Judge
from muster.telemetry.alerting.reading import rule_groups
from muster.telemetry.diagnosis.enough import Asked
from muster.telemetry.diagnosis.fixes import fixes_of
from muster.telemetry.diagnosis.flags import Language
from muster.telemetry.family import Labels
from muster.telemetry.look import Look


def caller(user: str) -> Caller:
    return Caller(user=UserName(user), door="test")


def test_a_job_that_waits_for_its_cpus_is_told_so_and_what_it_costs() -> None:
    observed = Observed()
    job = observed.desk.submits("ada", gpus=2, queue="a/b", lasts=6_000)
    observed.passes(10, busy=300, cpu=970, thread=990)

    report = observed.diagnosing.report(job)

    assert report is not None
    assert (report.headline, report.is_over) == (Cause.INPUT_CPU, False)
    (finding,) = report.findings
    assert (finding.job, finding.user, finding.queue) == (job, "ada", "a/b")
    assert finding.wasted_micros == report.wasted_micros > 0
    assert sum(each.gpu_ms for each in report.causes) == report.gpu_ms


def test_fixes_are_flags_of_the_door_that_the_job_came_through() -> None:
    observed = Observed()
    job = observed.desk.submits("ada", gpus=1, lasts=6_000)
    observed.passes(10, busy=300, cpu=970, thread=990)
    report = observed.diagnosing.report(job)
    assert report is not None
    spec = observed.desk.record.jobs[job].spec

    flags = [fixes_of(report, Asked(spec=spec, language=each))[0].flag for each in Language]

    assert flags == ["--cpus-per-task=4", "resources.limits.cpu: 4", "--cpus 4"]


def test_what_is_over_has_a_report_that_is_handed_on_to_be_kept() -> None:
    observed = Observed()
    observed.passes(1, busy=0)
    job = observed.desk.submits("ada", gpus=4, lasts=200)
    observed.passes(6, busy=950)

    report = observed.diagnosing.report(job)

    assert report is not None
    assert (report.headline, report.is_over) == (Cause.FINE, True)
    assert [each.job for told in observed.kept for each in told.reports] == [job]
    assert report.gpu_ms == 4 * 200_000


def test_every_second_of_every_gpu_is_one_row() -> None:
    observed = Observed()
    observed.desk.submits("ada", gpus=1, lasts=100)
    observed.desk.submits("bob", gpus=2, lasts=6_000)
    observed.passes(10, busy=950)
    rows = observed.diagnosing.rows()

    uses = {row.use for row in rows}
    counted = sum(time.milli_ms for time in rows.values())

    assert uses == {Use.WORKING, "free_no_demand"}
    # What bob held in the minute that is not over yet is not judged yet.
    whole = 4 * 1_000 * (10 * 60_000 - 15_000)
    assert 0 <= whole - counted <= 2 * 1_000 * 60_000
    assert sum(each.milli_ms for each in observed.uses()) == counted


def test_a_job_shorter_than_the_pause_between_two_looks_is_counted() -> None:
    observed = Observed()
    observed.passes(1, busy=0)
    job = observed.desk.submits("ada", gpus=1, lasts=4)
    observed.passes(3, busy=0)

    report = observed.diagnosing.report(job)

    assert report is not None
    assert report.gpu_ms == 4_000


def test_metrics_say_what_became_of_gpus_and_what_findings_cost() -> None:
    observed = Observed()
    job = observed.desk.submits("ada", gpus=2, queue="a/b", lasts=6_000)
    observed.passes(10, busy=300, cpu=970, thread=990)
    queue_names = QueueNames()
    queue_names.admit(observed.desk.record.site.queues, {})
    source = DiagnosisSource(observed.diagnosing, queue_names, LeftOut())

    families = {each.name: each for each in source(observed.desk.simulation.now)}

    finding = families["muster_job_finding"].points[0]
    assert dict(finding.labels) == {
        "job": str(job), "queue": "a/b", "user": "ada", "cause": "input_cpu",
    }  # fmt: skip
    assert finding.value > 0
    queues = families["muster_queue_gpu_seconds_total"].points
    assert {dict(point.labels)["queue"] for point in queues} == {"a/b"}


def test_what_gpus_cost_never_goes_down_and_no_rule_takes_it_for_waste() -> None:
    """What counts less than before began again for Prometheus, which then adds all of it."""
    observed = Observed(gpus=8)
    pool = Pool(name=MAIN, cluster=LAB, gpu_hour_micros=97_654_321)
    observed.desk.changes_site(pools={MAIN: pool})
    for number, queue in enumerate(("a/b", "a", "default"), 1):
        observed.desk.submits("ada", gpus=1, queue=queue, lasts=400 * number)
    observed.passes(25, busy=0)
    observed.desk.submits("bob", gpus=1, queue="a/b", lasts=60_000)
    source = DiagnosisSource(observed.diagnosing, QueueNames(), LeftOut())
    judge = Judge([each for each in rule_groups(shipped_rules()) if each.name == "muster-jobs"])
    seen: dict[Labels, float] = {}
    fired: set[str] = set()

    for _ in range(4 * 125):
        observed.passes_once(busy=950)
        now = observed.desk.simulation.now
        families = tuple(source(now))
        (cost,) = (each for each in families if each.name == "muster_gpu_cost_total")
        points = {point.labels: point.value for point in cost.points}
        assert all(points[labels] >= value for labels, value in seen.items())
        seen = points
        fired |= {alert.name for alert in judge.look(families, now).alerts}

    assert "QueueWastesMoney" not in fired


def test_a_user_sees_what_became_of_their_own_gpus_and_a_chief_of_those_of_all() -> None:
    observed = Observed()
    observed.desk.submits("ada", gpus=1, queue="a/b", lasts=6_000)
    observed.desk.submits("bob", gpus=2, queue="a/b", lasts=6_000)
    observed.passes(10, busy=950)

    def held(asks: str, user: str | None = None) -> dict[str, int]:
        query = ReportQuery(user=None if user is None else UserName(user))
        rows = observed.queries.fleet(caller(asks), query)
        found: dict[str, int] = {}
        for each in rows:
            found[each.row.user] = found.get(each.row.user, 0) + each.cost_micros
        return found

    assert held("ada", "ada") == {"ada": held("root")["ada"]}
    assert held("ada", "bob") == {}
    assert held("root").keys() == {"ada", "bob", ""}
    assert held("boss").keys() == {"ada", "bob"}
    assert held("ada").keys() == {"ada", ""}
    assert sum(held("ada").values()) == sum(held("root").values())


@pytest.mark.slow
def test_of_ten_thousand_findings_the_dearest_are_series() -> None:
    observed, many = Observed(gpus=1), 10_000
    only = observed.desk.record.jobs[observed.desk.submits("ada", gpus=1, lasts=60_000)]
    observed.passes(1, busy=0)
    (holding,) = holdings_of(observed.desk.record.allocations.values(), observed.desk.record.jobs)
    jobs = tuple(
        replace(only, id=JobId(1 + number), state=JobState.RUNNING) for number in range(many)
    )
    holdings = tuple(
        replace(holding, job=each.id, device=DeviceId(f"gpu{each.id}")) for each in jobs
    )
    record = Record(LiveState(jobs=jobs), {}, observed.desk.record.site)
    diagnosing, left_out = Diagnosing(record, LastPlan(), Tenancies()), LeftOut()
    now = observed.desk.simulation.now
    for _ in range(9):
        now = Instant(now + 15_000)
        idle = tuple(
            DeviceSample(device=each.device, node=each.node, at=now, index=0, busy_milli=0)
            for each in holdings
        )
        samples = {LAB: Samples(at=now, devices=idle)}
        interval = Duration(15 * SECOND)
        diagnosing.look(Look(at=now, interval=interval, samples=samples, holdings=holdings))

    families = {
        each.name: each for each in DiagnosisSource(diagnosing, QueueNames(), left_out)(now)
    }

    assert sum(len(each.findings) for each in diagnosing.reports()) == many
    assert len(families["muster_job_finding"].points) == MOST_FINDINGS
    (counted,) = left_out(now)
    left = {dict(each.labels)["what"]: each.value for each in counted.points}
    assert left["findings"] == many - MOST_FINDINGS


@pytest.mark.parametrize(
    ("user", "sees"), [("ada", True), ("boss", True), ("root", True), ("bob", False)]
)
def test_who_may_see_what_a_job_uses_may_see_why_it_is_slow(user: str, *, sees: bool) -> None:
    observed = Observed()
    job = observed.desk.submits("ada", gpus=2, queue="a/b", lasts=6_000)
    observed.passes(10, busy=300, cpu=970, thread=990)
    asks = caller(user)

    if sees:
        assert observed.queries.of_job(asks, job).report.job == job
    else:
        with pytest.raises(ForbiddenError):
            observed.queries.of_job(asks, job)
    assert bool(observed.queries.findings(asks, ReportQuery())) is sees
    assert bool(observed.queries.reports(asks, ReportQuery())) is sees


def test_a_job_without_a_gpu_has_no_report() -> None:
    observed = Observed()
    job = observed.desk.submits("ada", gpus=0, lasts=600)
    observed.passes(2, busy=0)

    with pytest.raises(UnknownError, match="nothing was measured"):
        observed.queries.of_job(caller("ada"), job)


def test_what_another_process_saw_is_found_where_it_is_kept() -> None:
    observed = Observed()
    observed.passes(1, busy=0)
    job = observed.desk.submits("ada", gpus=4, lasts=200)
    observed.passes(6, busy=950)
    assert observed.past is not None
    for each in observed.kept:
        observed.past.keep(each)
    before = observed.queries.of_job(caller("ada"), job).report

    observed.diagnosing.begin()

    assert observed.queries.of_job(caller("ada"), job).report == before
    assert observed.queries.reports(caller("ada"), ReportQuery()) == (before,)
    assert observed.queries.fleet(caller("root"), ReportQuery(since=Instant(0)))


def test_a_leader_begins_again_when_it_leads_again() -> None:
    observed = Observed()
    observed.desk.submits("ada", gpus=2, lasts=6_000)
    observed.passes(4, busy=900)

    observed.diagnosing.begin()

    assert observed.diagnosing.rows() == {}
    assert observed.diagnosing.report(JobId(1)) is None
