from typing import Any

import yaml

from muster.doors.kubernetes.importing.kueue import exported, imported
from muster.model.queue import JobClass, Meter, Queue, Quota, Scope
from muster.model.site import Site
from muster.model.value import ClassName, ClusterName, PoolName, QueuePath

HERE = ClusterName("local")
OBJECTS = """
kind: ResourceFlavor
metadata: {name: a100}
spec: {nodeLabels: {gpu: a100}, nodeTaints: [{key: x, effect: NoSchedule}]}
---
kind: Cohort
metadata: {name: research}
spec: {parentName: acme, fairSharing: {weight: 3}}
---
kind: ClusterQueue
metadata: {name: nlp}
spec:
  cohort: research
  queueingStrategy: StrictFIFO
  resourceGroups:
  - coveredResources: [cpu, memory, nvidia.com/gpu, rdma/hca]
    flavors:
    - name: a100
      resources:
      - {name: cpu, nominalQuota: 10}
      - {name: memory, nominalQuota: 100Gi}
      - {name: nvidia.com/gpu, nominalQuota: 8, borrowingLimit: 4, lendingLimit: 2}
      - {name: rdma/hca, nominalQuota: 1}
---
kind: ClusterQueue
metadata: {name: alone}
spec:
  resourceGroups:
  - flavors: [{name: a100, resources: [{name: nvidia.com/mig-1g.5gb, nominalQuota: 3}]}]
---
kind: LocalQueue
metadata: {name: train, namespace: team-a}
spec: {clusterQueue: nlp}
---
kind: LocalQueue
metadata: {name: train, namespace: team-b}
spec: {clusterQueue: nlp}
---
kind: WorkloadPriorityClass
metadata: {name: high}
value: 1000
---
kind: AdmissionCheck
metadata: {name: check}
"""


def objects(text: str = OBJECTS) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(text))


def test_cohorts_and_queues_are_one_tree() -> None:
    site = imported(objects(), HERE).site

    assert sorted(site.queues) == [
        "acme/research",
        "acme/research/nlp",
        "acme/research/nlp/team-b-train",
        "acme/research/nlp/train",
        "alone",
    ]
    assert site.queues[QueuePath("acme/research")].weight == 3


def test_nominal_quota_is_guaranteed_and_borrowing_is_limited() -> None:
    site = imported(objects(), HERE).site
    pool = PoolName("a100")

    assert site.queues[QueuePath("acme/research/nlp")].quotas == (
        Quota(scope=Scope(meter=Meter.CPU, pool=pool), guaranteed=10_000),
        Quota(scope=Scope(meter=Meter.MEMORY, pool=pool), guaranteed=102_400),
        Quota(
            scope=Scope(meter=Meter.GPU, pool=pool),
            guaranteed=8_000,
            borrow_limit=4_000,
            lend_limit=2_000,
        ),
    )
    assert site.queues[QueuePath("alone")].quotas == (
        Quota(scope=Scope(meter=Meter.MIG, profile="1g.5gb", pool=pool), guaranteed=3, limit=3),
    )


def test_flavors_are_pools_and_priorities_are_classes() -> None:
    site = imported(objects(), HERE).site

    assert list(site.pools) == ["a100"]
    assert site.classes[ClassName("high")].priority == 1_000


def test_what_has_no_counterpart_is_listed() -> None:
    told = {f"{each.about}: {each.text}" for each in imported(objects(), HERE).notes}

    assert "AdmissionCheck check: has no counterpart and is left out" in told
    assert "ClusterQueue nlp: rdma/hca is not counted by Muster" in told
    assert "ResourceFlavor a100: put the nodes with gpu=a100 into pool a100" in told
    assert any(each.startswith("ClusterQueue nlp: StrictFIFO") for each in told)


def test_rules_that_are_exported_come_back() -> None:
    gpus = Quota(
        scope=Scope(meter=Meter.GPU, pool=PoolName("a100")),
        guaranteed=4_000,
        borrow_limit=1_500,
        lend_limit=0,
    )
    queues = (
        Queue(path=QueuePath("acme"), weight=2),
        Queue(path=QueuePath("acme/nlp"), quotas=(gpus,)),
    )
    high = JobClass(name=ClassName("high"), priority=7)
    before = imported(objects(), HERE).site
    site = Site(
        queues={each.path: each for each in queues}, classes={high.name: high}, pools=before.pools
    )

    again = imported(exported(site).objects, HERE).site

    assert again.queues[QueuePath("acme")].weight == 2
    assert again.queues[QueuePath("acme/nlp")].quotas == (gpus,)
    assert again.classes[ClassName("high")].priority == 7
    assert list(again.pools) == ["a100"]


def test_what_kueue_cannot_do_is_listed() -> None:
    queue = Queue(path=QueuePath("a"), max_jobs=3)

    told = exported(Site(queues={queue.path: queue})).notes

    assert [(each.about, each.text) for each in told] == [
        ("queue a", "max_jobs has no counterpart")
    ]
