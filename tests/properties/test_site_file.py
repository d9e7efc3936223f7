import contextlib

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from muster.doors.config.checks import cautions, mistakes
from muster.doors.config.diff import changes
from muster.doors.config.faults import BadSiteError
from muster.doors.config.parse import site_from
from muster.doors.config.show import site_text
from muster.model.cluster import AmountReserved, Every, NodesReserved, Pool, Reservation
from muster.model.idle import IdleAction, IdleRule
from muster.model.policy import (
    OrderWeights,
    Packing,
    Policy,
    PreemptPolicy,
    Preference,
    SharePolicy,
)
from muster.model.queue import (
    Amount,
    Ceiling,
    JobClass,
    Meter,
    Percent,
    PreemptMode,
    Queue,
    Quota,
    Scope,
    WhenFull,
)
from muster.model.site import Grant, Role, Site, User
from muster.model.value import DAY, Duration, Instant, QueuePath, replace
from shape.source import ROOT

EXAMPLE = (ROOT / "examples" / "cluster.yaml").read_text(encoding="utf-8")

# Words that YAML would take for something else are the ones that go wrong.
NAMES = st.sampled_from(
    ["a", "b1", "no", "on", "true", "12", "1e3", "0x1f", "2026-12-01", "x.y-z", "ada@x", "Ünï", "_"]
) | st.from_regex(r"[a-z0-9][a-z0-9_.+@-]{0,8}", fullmatch=True).filter(
    lambda name: name not in ("none", "null")
)
USERS = NAMES | st.sampled_from(["dom\\ada", "pc$"])
SPANS = st.integers(0, 500 * DAY).map(Duration)
LIMITS = st.none() | st.integers(1, 500 * DAY).map(Duration)
COUNTS = st.none() | st.integers(0, 10**6)
WHOLES = st.integers(0, 10**6)
INSTANTS = st.integers(0, 3 * 10**12)


def several(of: SearchStrategy[str], most: int = 3) -> SearchStrategy[tuple[str, ...]]:
    return st.lists(of, max_size=most).map(tuple)


def one_of_these(known: list[str]) -> SearchStrategy[str | None]:
    return st.none() | st.sampled_from(known) if known else st.none()


def amounts() -> SearchStrategy[Amount]:
    return st.integers(0, 10**6) | st.builds(Percent, percent=st.integers(0, 100))


@st.composite
def lines(draw: DrawFn, pools: list[str]) -> Quota:
    meter = draw(st.sampled_from(Meter))
    scope = st.builds(
        Scope,
        meter=st.just(meter),
        profile=st.just("1g.5gb" if meter is Meter.MIG else None),
        pool=one_of_these(pools),
        model=st.sampled_from((None, "A100-40GB", "RTX 6000 Ada", "#1: a, b")),
    )
    bound = st.none() | amounts()
    return draw(
        st.builds(
            Quota,
            scope=scope,
            guaranteed=amounts(),
            limit=bound,
            lend_limit=bound,
            borrow_limit=bound,
        )
    )


@st.composite
def queue_trees(draw: DrawFn, classes: list[str], pools: list[str]) -> dict[str, Queue]:
    paths = [draw(NAMES)]
    for _ in range(draw(st.integers(0, 4))):
        above = draw(st.sampled_from(("", *(f"{path}/" for path in paths))))
        paths.append(above + draw(NAMES))
    queue = st.builds(
        Queue,
        path=st.just(QueuePath("")),
        quotas=st.lists(lines(pools), max_size=3, unique_by=lambda line: line.scope).map(tuple),
        weight=st.integers(1, 9),
        priority=st.integers(-99, 99),
        max_jobs=COUNTS,
        max_submitted=COUNTS,
        max_submitted_per_user=COUNTS,
        images_on_host=st.sampled_from((None, False, True)),
        may_submit=several(USERS),
        default_class=one_of_these(classes),
        when_full=st.sampled_from(WhenFull),
    )
    return {path: replace(draw(queue), path=QueuePath(path)) for path in paths}


def ceilings() -> SearchStrategy[Ceiling]:
    return st.builds(Ceiling, gpu_milli=COUNTS, cpu_milli=COUNTS, memory_mib=COUNTS, jobs=COUNTS)


def job_class(name: str, names: list[str]) -> SearchStrategy[JobClass]:
    return st.builds(
        JobClass,
        name=st.just(name),
        priority=st.integers(-999, 999),
        preempts=several(st.sampled_from(names)),
        preemptible=st.booleans(),
        preempt_mode=st.sampled_from(PreemptMode),
        grace=SPANS,
        min_run=SPANS,
        max_time=LIMITS,
        spot_only=st.booleans(),
        per_user=ceilings(),
        per_queue=ceilings(),
        on_idle=st.builds(
            IdleRule,
            after=LIMITS,
            warn_before=SPANS,
            do=st.sampled_from(IdleAction),
            spares_interactive=st.booleans(),
        ),
    )


def pool(name: str) -> SearchStrategy[Pool]:
    return st.builds(
        Pool,
        name=st.just(name),
        cluster=NAMES,
        levels=several(NAMES),
        default_time=LIMITS,
        max_time=LIMITS,
        spot=st.booleans(),
        gpu_hour_micros=WHOLES,
        users=several(USERS),
        groups=several(NAMES),
    )


def user(name: str, queues: list[str]) -> SearchStrategy[User]:
    grant = st.builds(Grant, role=st.sampled_from(Role), queue=one_of_these(queues))
    grants = st.lists(grant, max_size=3).map(tuple)
    return st.builds(User, name=st.just(name), grants=grants, default_queue=one_of_these(queues))


def policies() -> SearchStrategy[Policy]:
    spans = st.integers(1, 99 * DAY).map(Duration)
    return st.builds(
        Policy,
        order=st.builds(OrderWeights, age=WHOLES, size=st.integers(-99, 99), age_full=spans),
        share=st.builds(SharePolicy, half_life=spans, lookahead=SPANS),
        preempt=st.builds(PreemptPolicy, by_class=st.booleans(), tries=WHOLES, min_run=SPANS),
        packing=st.sampled_from(Packing),
        prefer=st.sampled_from(Preference),
        backfill_depth=WHOLES,
        default_time=LIMITS,
        repartition=st.booleans(),
        grow=st.booleans(),
    )


@st.composite
def reservations(draw: DrawFn, name: str, queues: list[str], pools: list[str]) -> Reservation:
    begins_at = draw(INSTANTS)
    times = {
        "begins_at": st.just(Instant(begins_at)),
        "ends_at": st.integers(begins_at + 1, begins_at + 10**10).map(Instant),
    }
    nodes = st.lists(NAMES, min_size=1, max_size=9).map(tuple)
    shared = {
        "name": st.just(name),
        "for_users": several(USERS),
        "by_name": st.booleans(),
        "every": st.sampled_from([None, *Every]),
        "zone": st.sampled_from([None, "UTC", "Europe/Berlin"]),
        "flexible": st.booleans(),
        "flags": several(NAMES),
        **times,
    }
    whole = st.builds(NodesReserved, nodes=nodes, for_queue=one_of_these(queues), **shared)
    if not pools:
        return draw(whole)
    amount = st.builds(
        AmountReserved,
        pool=st.sampled_from(pools),
        gpu_milli=st.integers(1, 10**6),
        for_queue=st.sampled_from(queues),
        **shared,
    )
    return draw(whole | amount)


@st.composite
def sites(draw: DrawFn) -> Site:
    """Sites in which every name that is used exists."""
    names = st.lists(NAMES, max_size=3, unique=True)
    classes, pools = draw(names), draw(names)
    queues = draw(queue_trees(classes, pools))
    paths = [*queues]
    site = st.builds(
        Site,
        queues=st.just(queues),
        classes=st.fixed_dictionaries({name: job_class(name, classes) for name in classes}),
        pools=st.fixed_dictionaries({name: pool(name) for name in pools}),
        users=st.fixed_dictionaries(
            {name: user(name, paths) for name in draw(st.lists(USERS, max_size=2, unique=True))}
        ),
        everyone=st.sampled_from(Role),
        default_queue=st.sampled_from(paths),
        policy=policies(),
        reservations=st.tuples(*(reservations(name, paths, pools) for name in draw(names))),
        keep_history=LIMITS,
        images_on_host=st.booleans(),
    )
    return draw(site)


@settings(max_examples=60)
@given(sites())
def test_a_site_that_is_shown_and_read_is_the_same(site: Site) -> None:
    assert list(mistakes(site)) == []

    text = site_text(site)

    assert site_from(text) == site
    assert site_text(site_from(text)) == text


@settings(max_examples=60)
@given(sites(), sites())
def test_changes_are_listed_exactly_where_there_are_some(one: Site, other: Site) -> None:
    assert changes(one, one) == ()
    assert (changes(one, other) == ()) == (one == other)


@settings(max_examples=40)
@given(sites())
def test_a_cautious_word_can_be_said_about_every_site(site: Site) -> None:
    assert all(cautions(site))


@given(st.data())
def test_a_file_with_a_typing_error_is_read_or_refused_with_its_place(data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(EXAMPLE)))
    taken = data.draw(st.integers(0, 12))
    typed = data.draw(
        st.text(max_size=3) | st.sampled_from(["{", "[", "*a", "&a", "- ", ": ", "!"])
    )
    text = EXAMPLE[:at] + typed + EXAMPLE[at + taken :]

    with contextlib.suppress(BadSiteError):
        site_from(text)
