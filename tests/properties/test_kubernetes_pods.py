"""Pods that nobody has thought of: amounts keep their value, and nothing is dropped silently."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.doors.kubernetes.objects.errors import StatusError
from muster.doors.kubernetes.pods import quantities, support
from muster.doors.kubernetes.pods.checks.pod import pod_causes
from muster.doors.kubernetes.pods.defaults import admitted, defaulted
from muster.doors.kubernetes.pods.job_of import job_of
from muster.doors.kubernetes.pods.pod_of import amounts_of
from muster.doors.kubernetes.pods.support import TABLE, Treatment
from unit.doors.kubernetes.pods.worlds import WORLD

SUFFIXES = st.sampled_from(["", "n", "u", "m", "k", "M", "G", "Ki", "Mi", "Gi", "e3", "E2"])
NUMBERS = st.one_of(
    st.integers(0, 10**6).map(str),
    st.decimals(0, 1_000, places=3, allow_nan=False).map(str),
)
AMOUNTS = st.tuples(NUMBERS, SUFFIXES).map("".join)
NAMES = st.from_regex(r"[a-z]([-a-z0-9]{0,8}[a-z0-9])?", fullmatch=True)

CONTAINERS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"name": NAMES, "image": st.just("img:1")},
    optional={
        "command": st.lists(st.text(max_size=5), min_size=1, max_size=3),
        "env": st.lists(
            st.fixed_dictionaries({"name": NAMES, "value": st.text(max_size=5)}), max_size=2
        ),
        "resources": st.fixed_dictionaries(
            {},
            optional={
                "limits": st.fixed_dictionaries(
                    {},
                    optional={
                        "cpu": st.integers(1, 64).map(str),
                        "memory": st.integers(1, 64).map(lambda gib: f"{gib}Gi"),
                        "nvidia.com/gpu": st.integers(0, 8).map(str),
                    },
                )
            },
        ),
        "tty": st.booleans(),
        "restartPolicyRules": st.just([{"action": "Restart"}]),
        "volumeDevices": st.just([{"name": "d", "devicePath": "/d"}]),
    },
)
SPECS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "containers": st.lists(
            CONTAINERS, min_size=1, max_size=3, unique_by=lambda each: each["name"]
        )
    },
    optional={
        "restartPolicy": st.sampled_from(["Always", "OnFailure", "Never"]),
        "nodeSelector": st.dictionaries(NAMES, NAMES, max_size=2),
        "shareProcessNamespace": st.booleans(),
        "subdomain": NAMES,
        "runtimeClassName": NAMES,
        "activeDeadlineSeconds": st.integers(1, 10_000),
        "tolerations": st.lists(
            st.fixed_dictionaries({"key": NAMES, "operator": st.just("Exists")}), max_size=2
        ),
        "volumes": st.just([{"name": "v", "nfs": {"server": "s", "path": "/"}}]),
    },
)


def a_pod(spec: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p"}, "spec": spec}


@given(AMOUNTS)
def test_the_canonical_form_of_an_amount_is_the_same_amount(text: str) -> None:
    kept = quantities.canonical(text)

    assert quantities.amount(kept) == quantities.amount(text)
    assert quantities.canonical(kept) == kept


@given(SPECS)
def test_what_is_defaulted_once_stays_as_it_is(spec: dict[str, Any]) -> None:
    once = admitted(defaulted(a_pod(spec)), None)

    assert defaulted(once) == once
    assert pod_causes(once, once) == pod_causes(once, None)


@given(SPECS)
def test_nothing_that_a_pod_asks_for_is_dropped_silently(spec: dict[str, Any]) -> None:
    pod = defaulted(a_pod(spec))
    inert = [
        each.path
        for each in support.met(pod["spec"])
        if each.field.treatment is Treatment.WARNED and each.value not in each.field.harmless
    ]
    if any(each.field.treatment is Treatment.REFUSED for each in support.met(pod["spec"])):
        with pytest.raises(StatusError):
            job_of(pod, WORLD)
        return

    found = job_of(pod, WORLD)

    for path in inert:
        assert any(text.startswith(path) for text in found.warnings)


@given(SPECS)
def test_what_a_pod_asks_for_is_what_it_is_shown_to_have(spec: dict[str, Any]) -> None:
    pod = defaulted(a_pod({**spec, "volumes": [], "runtimeClassName": ""}))
    for container in pod["spec"]["containers"]:
        container.pop("restartPolicyRules", None)
        container.pop("volumeDevices", None)
    wanted = quantities.totals(
        *(each["resources"].get("limits", {}) for each in pod["spec"]["containers"])
    )

    shown = amounts_of(job_of(pod, WORLD).spec.groups[0].each)

    assert quantities.totals(shown) == {name: value for name, value in wanted.items() if value}


def test_every_part_that_the_table_names_is_in_it() -> None:
    named = {field.of for fields in TABLE.values() for field in fields.values() if field.of}

    assert named - TABLE.keys() == set()
