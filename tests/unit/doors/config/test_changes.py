import pytest

from muster.api.site import QuotaAsked
from muster.doors.config.checks import cautions, mistakes
from muster.doors.config.default import DEFAULT_SITE
from muster.doors.config.diff import changes
from muster.doors.config.parse import site_from
from muster.doors.config.quota import with_quota
from muster.doors.config.show import site_text
from muster.doors.units import BadTextError
from muster.model.errors import UnknownError
from muster.model.queue import Meter, Percent, Quota, Scope
from muster.model.site import Site
from muster.model.value import PoolName, QueuePath
from shape.source import ROOT

TWO_TEAMS = """
queues:
  acme: {quotas: [{guaranteed: 16, limit: 64}], queues: {nlp: {weight: 3}, vision: }}
  guests:
classes: {normal: {priority: 100}, low: , high: {priority: 1000, preempts: [low]}}
pools: {dgx: {cluster: local}}
users: {bob: {roles: [user]}}
default_queue: guests
"""


def edited(*edits: tuple[str, str]) -> Site:
    text = TWO_TEAMS
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    return site_from(text)


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("limit: 64", "limit: 32", "~ queue acme: limit (gpu) 64 -> 32"),
        ("guaranteed: 16, ", "", "~ queue acme: guaranteed (gpu) 16 -> 0"),
        ("weight: 3", "weight: 4", "~ queue acme/nlp: weight 3 -> 4"),
        (", vision: ", "", "- queue acme/vision"),
        ("low: ", "low: , urgent: ", "+ class urgent"),
        ("preempts: [low]", "preempts: []", "~ class high: preempts [low] -> []"),
        ("bob: {roles: [user]}", "", "- user bob"),
        ("roles: [user]", "roles: [admin]", "~ user bob: roles [user] -> [admin]"),
        ("guests\n", "acme\n", "~ default_queue: guests -> acme"),
        ("cluster: local", "cluster: local, max_time: 7d", "~ pool dgx: max_time none -> 7d"),
    ],
)
def test_a_change_is_reported_in_one_line(old: str, new: str, line: str) -> None:
    after = edited((old, new))

    assert changes(edited(), after) == (line,)


def test_changes_inside_the_policy_are_reported_with_their_way() -> None:
    before = edited()
    after = site_from(TWO_TEAMS + "policy: {share: {half_life: 3d}}\nhistory: {keep: none}\n")

    assert changes(before, after) == (
        "~ policy.share.half_life: 7d -> 3d",
        "~ history.keep: 400d -> none",
    )


def test_a_line_of_quota_says_what_it_counts() -> None:
    before = edited()
    after = edited(("[{guaranteed", "[{pool: dgx, model: A100-40GB, limit: 50%}, {guaranteed"))

    assert changes(before, after) == (
        "~ queue acme: limit (gpu in pool dgx on A100-40GB) none -> 50%",
    )


def test_nothing_is_listed_where_nothing_changes() -> None:
    assert changes(edited(), edited()) == ()


def test_a_quota_is_changed_in_its_place() -> None:
    site = with_quota(edited(), QuotaAsked(queue="acme", limit="32", lend_limit="25%"))

    assert site.queues[QueuePath("acme")].quotas == (
        Quota(guaranteed=16_000, limit=32_000, lend_limit=Percent(percent=25)),
    )


def test_a_quota_line_is_added_and_taken_away() -> None:
    asked = QuotaAsked(queue="guests", pool="dgx", meter="memory", limit="512G", weight=2)
    with_line = with_quota(edited(), asked)
    guests = with_line.queues[QueuePath("guests")]

    without = with_quota(
        with_line, QuotaAsked(queue="guests", pool="dgx", meter="memory", limit="none")
    )

    scope = Scope(meter=Meter.MEMORY, pool=PoolName("dgx"))
    assert guests.quotas == (Quota(scope=scope, limit=524_288),)
    assert guests.weight == 2
    assert without.queues[QueuePath("guests")].quotas == ()


def test_an_unknown_queue_or_pool_has_near_matches() -> None:
    with pytest.raises(UnknownError, match="no queue `acme/npl`; did you mean `acme/nlp`"):
        with_quota(edited(), QuotaAsked(queue="acme/npl", limit="1"))
    with pytest.raises(UnknownError, match="no pool `dxg`; did you mean `dgx`"):
        with_quota(edited(), QuotaAsked(queue="acme", pool="dxg", limit="1"))


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(QuotaAsked(queue="acme", limit="lots"), id="amount"),
        pytest.param(QuotaAsked(queue="acme", meter="gpus", limit="1"), id="meter"),
        pytest.param(QuotaAsked(queue="acme", meter="mig", limit="1"), id="no profile"),
        pytest.param(QuotaAsked(queue="acme", profile="1g.5gb", limit="1"), id="profile"),
        pytest.param(QuotaAsked(queue="acme", model=" ", limit="1"), id="model"),
        pytest.param(QuotaAsked(queue="acme", weight=0), id="weight"),
    ],
)
def test_a_quota_that_cannot_be_read_is_refused(asked: QuotaAsked) -> None:
    with pytest.raises(BadTextError):
        with_quota(edited(), asked)


def test_the_example_is_shown_as_the_golden_file_says() -> None:
    example = (ROOT / "examples" / "cluster.yaml").read_text(encoding="utf-8")
    golden = ROOT / "tests" / "golden" / "config" / "shown.yaml"

    assert site_text(site_from(example)) == golden.read_text(encoding="utf-8")


def test_the_first_site_makes_sense() -> None:
    assert list(mistakes(DEFAULT_SITE)) == []
    assert cautions(DEFAULT_SITE) == ()
    assert site_from(site_text(DEFAULT_SITE)) == DEFAULT_SITE


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        (
            "weight: 3",
            "quotas: [{guaranteed: 20}]",
            "the queues below acme are guaranteed more (20) than there is to share (16)",
        ),
        (
            "guests:\n",
            "guests: {quotas: [{guaranteed: 60%}]}\n  more: {quotas: [{guaranteed: 50%}]}\n",
            "the queues at the top are guaranteed more (60% + 50%) than there is to share (100%)",
        ),
        (
            "limit: 64",
            "limit: 8",
            "queue acme: the limit is how much in all, and 8 is less than the guaranteed 16",
        ),
        (
            "preempts: [low]",
            "preempts: [high]",
            "class high never preempts high, whose priority is not lower: 1000 beside 1000",
        ),
        (
            "low: ",
            "low: {preemptible: false}",
            "class high never preempts low, which is not preemptible",
        ),
        (
            "normal: {priority: 100}, ",
            "",
            (
                "jobs in acme and guests that name no class are refused: "
                "set `default_class` there, or add a class `normal`"
            ),
        ),
        ("guests\n", "guests\neveryone: admin\n", "everyone on this machine is admin"),
        (
            "low: ",
            "low: {spot_only: true}",
            "class low runs in spot pools only, and no pool is one",
        ),
    ],
)
def test_what_is_seldom_meant_is_a_caution(old: str, new: str, word: str) -> None:
    site = edited((old, new))

    assert cautions(site) == (word,)


def test_lists_and_names_inside_a_section_change_in_words() -> None:
    plain = "queues: {q: {}}\ndefault_queue: q\n"
    before = plain + "alerts: {receivers: {m: {kind: mail, to: u}}, routes: [{receivers: [m]}]}\n"
    after = plain + (
        "alerts: {receivers: {m: {kind: mail, to: v}, w: {kind: webhook, url_file: /u}},"
        " routes: [{receivers: [m]}, {receivers: [w]}]}\n"
        "policy: {bursts: [{preferred: x, to: y, classes: []}]}\n"
    )

    found = changes(site_from(before), site_from(after))

    assert found == (
        "~ policy.bursts: 0 -> 1",
        "~ alerts.receivers.m.to: u -> v",
        "~ alerts.receivers.w: added",
        "~ alerts.routes: 1 -> 2",
    )
