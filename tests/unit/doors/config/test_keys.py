import re
from collections.abc import Iterator

import pytest

from muster.doors.config.kinds import ValueType
from muster.doors.config.of_site import SECTIONS, SITE
from muster.doors.config.page import page
from muster.doors.config.parse import site_from
from muster.doors.config.shapes import (
    Aside,
    Branches,
    Inside,
    Key,
    Many,
    NamedMapping,
    Section,
    ValueList,
)
from muster.doors.config.show import value_of
from muster.model.burst import Burst
from muster.model.cluster import AmountReserved, NodesReserved, Pool
from muster.model.policy import OrderWeights, Policy, PreemptPolicy, SharePolicy
from muster.model.queue import Ceiling, JobClass, Queue, Quota, Scope
from muster.model.site import Site, User
from muster.model.value import Value
from shape.source import ROOT

PAGE = ROOT / "docs" / "reference" / "cluster-yaml.md"

SET_BY_THE_FILE: tuple[type[Value], ...] = (
    Site,
    Queue,
    Quota,
    Scope,
    JobClass,
    Ceiling,
    Pool,
    User,
    Policy,
    OrderWeights,
    SharePolicy,
    PreemptPolicy,
    Burst,
    NodesReserved,
    AmountReserved,
)


FOUND_OUT = {"members"}
"""What no file says: the controller asks the system who is in the groups of a pool."""


@pytest.mark.parametrize("made", SET_BY_THE_FILE, ids=lambda made: made.__name__)
def test_every_field_of_the_model_can_be_set_from_the_file(made: type[Value]) -> None:
    sections = [section for section in SECTIONS if made in section.makes]

    settable = {name for section in sections for name in fields_of(section, made)}

    assert set(made.__struct_fields__) - settable - FOUND_OUT == set()


def test_every_section_hangs_on_the_file() -> None:
    assert {section.title for section in reachable(SITE)} == {each.title for each in SECTIONS}


def test_the_defaults_of_what_lies_inside_are_those_of_the_model() -> None:
    for section in SECTIONS:
        for key in section.keys:
            if isinstance(key.shape, Inside):
                assert value_of(section.blank, key.target) == key.shape.section.blank


def test_every_example_of_the_page_can_be_read() -> None:
    for section in SECTIONS:
        for key in section.keys:
            if isinstance(key.shape, ValueType):
                key.shape.read(key.example)
            elif isinstance(key.shape, Many):
                for word in key.example.strip("[]").split(","):
                    key.shape.each.read(word.strip(' "'))


def test_every_key_sets_its_field() -> None:
    site = site_from(
        "queues: {q: {weight: 2, priority: 3, quotas: [{model: M, lend_limit: 1}], max_jobs: 4,"
        " max_submitted: 5, max_submitted_per_user: 6, may_submit: [u], default_class: c,"
        " when_full: refuse, private: true,"
        " images_on_host: true}}\n"
        "classes: {c: {priority: 1, preempts: [c], preemptible: false, preempt_mode: suspend,"
        " grace: 1s, min_run: 2s, max_time: 3s, spot_only: true, per_user: {cpus: 1, memory: 1G},"
        " per_queue: {jobs: 1}, may_use: [u], queues: [q], may_decline: [u],"
        " on_idle: {after: 1h, warn_before: 1m, do: cancel, spares_interactive: false}}}\n"
        "pools: {p: {cluster: x, levels: [rack], default_time: 1h, max_time: 2h, spot: true,"
        " gpu_hour: 1, users: [u], groups: [g], queues: [q], classes: [c],"
        " accepts: false, starts: false}}\n"
        "users: {u: {roles: [viewer], default_queue: q}}\n"
        "everyone: viewer\ndefault_queue: q\ndefault_pool: p\n"
        "policy: {packing: spread, prefer: price, backfill_depth: 1, backfill_horizon: 2,"
        " patience: 3d,"
        " default_time: 1m, repartition: false, grow: false, aim: slowdown,"
        " order: {job_class: 1, fair_share: 2, age: 3, size: -4, short: 7, service: 8,"
        " queue: 5, age_full: 6d},"
        " share: {half_life: 1d, lookahead: 2h}, preempt: {by_class: false, reclaim: false,"
        " by_service: true, by_service_if_saved: true, tries: 1, candidates: 2, min_run: 3s,"
        " restart_cost: 4s,"
        " waited_percent: 5}, bursts: [{preferred: x, to: y, classes: [c], over_gpu_hours: 1,"
        " cost_percent: 60, transfer: 1m, transfer_cost: 2}]}\n"
        "per_user: {max_jobs: 1, max_submit: 1G}\n"
        "currency: EUR\nhistory: {keep: 1d}\ncontainers: {images_on_host: true}\n"
        "alerts: {receivers: {m: {kind: mail, to: u}, s: {kind: slack, url_file: /u},"
        " c: {kind: command, command: [/c]}}, routes: [{receivers: [m], severities: [info],"
        " alerts: [A], queue: q, owner: true}], jobs: [{receivers: [m], on: [failed, waits_long],"
        " queue: q, users: [ada], owner: true, waits: 2h}], wait: 1s, changes: 2s, repeat: 3s,"
        " rules: false, pretend: true}\n"
        "telemetry: {interval: 30s, job_labels: true, metrics_open: true,"
        " clusters: {lab: {prometheus: 'http://p:9090', match: '{a=\"b\"}', token_file: /t},"
        " near: {exporter: 'http://{node}:9400/metrics'}},"
        " sinks: {s: {kind: otlp, url: 'http://o:4318', sends: [metrics], headers_file: /h,"
        " queue: q, metrics: [m]}}}\n"
    )

    values = (site, site.policy, site.policy.order, site.policy.share, site.policy.preempt)
    values = (
        *values,
        *site.queues.values(),
        *site.classes.values(),
        *site.pools.values(),
        *site.policy.bursts,
    )
    left = {
        f"{type(value).__name__}.{name}"
        for value in values
        for name in value.__struct_fields__
        if name not in {"reservations", *FOUND_OUT}
        and getattr(value, name) == default_of(value, name)
    }
    assert left == set()


def test_the_reference_page_is_what_the_code_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), (
        "run: python -m muster.doors.config.page > docs/reference/cluster-yaml.md"
    )


def test_the_reference_page_has_every_key_and_no_other() -> None:
    _, *parts = PAGE.read_text(encoding="utf-8").split("\n## ")

    listed = {
        part.partition("\n")[0]: re.findall(r"^\| `(\w+)` \|", part, re.MULTILINE) for part in parts
    }

    assert listed == {each.title: [key.name for key in each.keys] for each in SECTIONS}


def fields_of(section: Section, made: type[Value]) -> Iterator[str]:
    """The fields of this type that the section's keys, or its name, set."""
    if section.named:
        yield section.named
    for key in section.keys:
        if isinstance(key.shape, Aside):
            yield from fields_of(key.shape.section, made)
        elif made is Scope:
            yield key.target.removeprefix("scope.")
        else:
            yield key.target.partition(".")[0]


def reachable(section: Section) -> Iterator[Section]:
    yield section
    for key in section.keys:
        for below in sections_of(key, section):
            yield from reachable(below)


def sections_of(key: Key, section: Section) -> tuple[Section, ...]:
    match key.shape:
        case Inside(section=below) | Aside(section=below) | NamedMapping(section=below):
            return (below,)
        case ValueList(section=below):
            return (below,)
        case Branches() if section is SITE:
            return tuple(each for each in SECTIONS if each.noun == "queue")
        case _:
            return ()


def default_of(value: Value, name: str) -> object:
    blanks = {type(each.blank): each.blank for each in SECTIONS if each.blank is not None}
    return getattr(blanks[type(value)], name)
