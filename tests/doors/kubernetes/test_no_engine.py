"""Pods on a machine without a container tool: what the administrator chose is in their events."""

from collections.abc import Iterator

import pytest

from containers.hidden import path_without_tools
from doors.kubernetes.cluster import PATIENT, KubernetesHouse, kubernetes_house

pytestmark = pytest.mark.slow

RULES = """
queues:
  open: {images_on_host: true}
  closed: {}
  default: {}
classes: {normal: {}}
"""
REASONS = "-o jsonpath='{range .items[*]}{.type} {.reason}: {.message}{\"\\n\"}{end}'"


@pytest.fixture(scope="module")
def bare_house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubernetesHouse]:
    folder = tmp_path_factory.mktemp("bare")
    rules = folder / "site.yaml"
    rules.write_text(RULES, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", path_without_tools(folder / "bin"))
        with kubernetes_house() as found:
            applied = found.shell(f"muster apply -f {rules}")
            assert applied.code == 0, applied.out + applied.err
            seen = found.shell("until kubectl get namespace open closed; do :; done")
            assert seen.code == 0, seen.err
            yield found


def test_who_may_run_without_images_is_told_so_in_the_events(bare_house: KubernetesHouse) -> None:
    bare_house.kubectl("run bare -n open --image=any:1 --restart=Never --command -- id -u")
    bare_house.kubectl(
        f"wait -n open pod/bare --for=jsonpath={{.status.phase}}=Succeeded {PATIENT}"
    )

    events = bare_house.kubectl(f"get events -n open {REASONS}")
    described = bare_house.kubectl("describe pod bare -n open")

    told = "Containers run on the machine itself, without images, as the queue allows"
    assert f"Normal RunsOnHost: {told}" in events
    assert "Pulled" not in events
    assert told in described
    assert bare_house.kubectl("logs bare -n open").strip().isdigit()


def test_who_may_not_is_refused_at_once_and_told_whom_to_ask(bare_house: KubernetesHouse) -> None:
    said = bare_house.refused("run bare -n closed --image=any:1 --restart=Never --command -- id -u")

    assert 'pods "bare" is forbidden: No node can run the image any:1' in said
    assert "ask an administrator to install one, or to allow images_on_host for your queue" in said
