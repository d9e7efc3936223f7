from pathlib import Path

import pytest

from muster.doors.config.checks import cautions
from muster.doors.config.faults import BadSiteError, SiteFault
from muster.doors.config.parse import site_from
from muster.model.cluster import AmountReserved, NodesReserved
from muster.model.queue import Percent, Scope
from muster.model.site import Grant, Role
from muster.model.value import DAY, HOUR, ClassName, NodeId, PoolName, QueuePath, UserName
from shape.source import ROOT

EXAMPLE = (ROOT / "examples" / "cluster.yaml").read_text(encoding="utf-8")
GOLDEN = sorted((ROOT / "tests" / "golden" / "config").glob("*.txt"))


def faults(text: str) -> tuple[SiteFault, ...]:
    with pytest.raises(BadSiteError) as caught:
        site_from(text)
    return caught.value.problems


def only_fault(text: str) -> str:
    (fault,) = faults(text)
    return str(fault)


def test_the_example_is_read_and_gives_no_caution() -> None:
    site = site_from(EXAMPLE)

    assert [*site.queues] == ["acme", "acme/nlp", "acme/vision", "acme/notebooks", "guests"]
    assert cautions(site) == ()


def test_quota_is_in_the_unit_of_its_meter() -> None:
    everywhere, in_dgx, memory = site_from(EXAMPLE).queues[QueuePath("acme")].quotas

    assert (everywhere.guaranteed, everywhere.limit) == (16_000, 64_000)
    assert in_dgx.scope == Scope(pool=PoolName("dgx"))
    assert (in_dgx.guaranteed, in_dgx.limit) == (Percent(percent=50), Percent(percent=60))
    assert memory.limit == 8 * 1_024 * 1_024


def test_classes_pools_and_people_are_read() -> None:
    site = site_from(EXAMPLE)

    assert site.classes[ClassName("high")].max_time == 2 * DAY
    assert site.classes[ClassName("high")].per_user.gpu_milli == 8_000
    assert site.pools[PoolName("dgx")].gpu_hour_micros == 2_500_000
    assert site.users[UserName("grace")].grants == (
        Grant(role=Role.USER),
        Grant(role=Role.QUEUE_ADMIN, queue=QueuePath("acme/nlp")),
    )
    assert site.policy.default_time == 12 * HOUR


def test_a_reservation_is_of_nodes_or_of_an_amount() -> None:
    maintenance, demo = site_from(EXAMPLE).reservations

    assert isinstance(maintenance, NodesReserved)
    assert maintenance.nodes == (NodeId("n1"), NodeId("n2"))
    assert isinstance(demo, AmountReserved)
    assert (demo.gpu_milli, demo.for_queue) == (8_000, "acme")


@pytest.mark.parametrize("text", ["", "\n# only a comment\n", "{}", "null", "---\n"])
def test_an_empty_file_is_refused(text: str) -> None:
    assert "would remove every queue" in only_fault(text)


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_every_problem_of_a_bad_file_is_reported_where_it_is(path: Path) -> None:
    written, _, expected = path.read_text(encoding="utf-8").partition("--- expected\n")

    with pytest.raises(BadSiteError) as caught:
        site_from(written)

    assert f"{caught.value}\n" == expected


@pytest.mark.parametrize("word", ["yes", "no", "on", "off", "True", "1"])
def test_only_true_and_false_are_truths(word: str) -> None:
    text = f"queues: {{default: }}\ncontainers: {{images_on_host: {word}}}"

    assert only_fault(text) == (
        f"line 2, column 30: containers.images_on_host: `{word}` cannot be read here; "
        "write `true` or `false`"
    )


def test_words_that_yaml_takes_for_other_things_are_names() -> None:
    site = site_from("queues: {no: {may_submit: [on, 1234]}}\ndefault_queue: no")

    assert site.queues[QueuePath("no")].may_submit == ("on", "1234")
    assert site.default_queue == "no"


def test_anchors_and_merge_keys_are_followed() -> None:
    site = site_from(
        "queues:\n"
        "  default: &usual {weight: 2, quotas: &lines [{limit: 8}]}\n"
        "  second: {<<: *usual, weight: 3}\n"
        "  third: {quotas: *lines}\n"
    )

    weights = {path: queue.weight for path, queue in site.queues.items()}
    assert weights == {"default": 2, "second": 3, "third": 1}
    assert {queue.quotas[0].limit for queue in site.queues.values()} == {8_000}


def test_a_mistake_under_an_anchor_is_reported_once() -> None:
    text = "queues:\n  default: &usual {weight: none}\n  second: *usual\n"

    assert only_fault(text).startswith("line 2, column 28: queues.default.weight")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[" * 100_000, id="flow"),
        pytest.param("- " * 50_000, id="block"),
        pytest.param("queues: &a {a: {queues: *a}}", id="itself"),
        pytest.param("queues: &a {<<: *a}", id="merges itself"),
    ],
)
def test_endless_nesting_is_refused(text: str) -> None:
    assert "nested too deeply" in str(faults(text)[0])


def test_aliases_cannot_blow_a_small_file_up() -> None:
    text = "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True):
        text += f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n"

    assert any("repeats too often" in fault.text for fault in faults(text))


def test_a_file_that_is_too_long_is_refused_unread() -> None:
    assert "too long" in only_fault("#" * 5_000_000)


def test_what_was_not_read_makes_no_second_mistake() -> None:
    text = "queues: {default: }\npools: {dgx: {}}\nreservations: [{name: a, pool: dxg}]\n"

    said = [fault.text.partition(";")[0] for fault in faults(text)]

    assert said == ["`cluster` is missing", "`from` is missing", "`to` is missing"]


def test_none_takes_a_bound_away() -> None:
    site = site_from("queues: {default: {max_jobs: none}}\nhistory: {keep: none}")

    assert site.queues[QueuePath("default")].max_jobs is None
    assert site.keep_history is None
