from typing import Any

import yaml

from muster.doors.kubernetes.importing.volcano import exported, imported
from muster.model.queue import Meter, Queue, Quota, Scope
from muster.model.site import Site
from muster.model.value import ClusterName, QueuePath

HERE = ClusterName("local")
VOLCANO = """
{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: root}}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: acme}
spec: {weight: 4, parent: root, capability: {cpu: 100, nvidia.com/gpu: 16}}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: nlp}
spec:
  parent: acme
  reclaimable: false
  priority: 5
  deserved: {nvidia.com/gpu: 8, memory: 1Gi, hca: 1}
---
kind: PodGroup
metadata: {name: pg}
spec: {minMember: 4}
---
{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, metadata: {name: j}}
"""
KAI = """
apiVersion: scheduling.run.ai/v2
kind: Queue
metadata: {name: team}
spec:
  parentQueue: dept
  resources:
    cpu: {quota: 4000, limit: -1, overQuotaWeight: 1}
    memory: {quota: -1, limit: 1048.576, overQuotaWeight: 1}
    gpu: {quota: 2.5, limit: 4, overQuotaWeight: 3}
---
apiVersion: scheduling.run.ai/v2
kind: Queue
metadata: {name: dept}
spec: {resources: {gpu: {quota: 8, limit: -1, overQuotaWeight: 1}}}
"""
GPU, MEMORY, CPU = (Scope(meter=each) for each in (Meter.GPU, Meter.MEMORY, Meter.CPU))


def objects(text: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(text))


def test_queues_of_volcano_are_a_tree_with_quotas() -> None:
    site = imported(objects(VOLCANO), HERE).site

    assert list(site.queues) == ["acme", "acme/nlp"]
    assert site.queues[QueuePath("acme")].weight == 4
    assert site.queues[QueuePath("acme")].quotas == (
        Quota(scope=CPU, limit=100_000),
        Quota(scope=GPU, limit=16_000),
    )
    nlp = site.queues[QueuePath("acme/nlp")]
    assert nlp.priority == 5
    assert nlp.quotas == (
        Quota(scope=MEMORY, guaranteed=1_024, lend_limit=0),
        Quota(scope=GPU, guaranteed=8_000, lend_limit=0),
    )


def test_gangs_and_jobs_are_no_rules() -> None:
    told = [f"{each.about}: {each.text}" for each in imported(objects(VOLCANO), HERE).notes]

    assert told == [
        "PodGroup pg: is a gang of 4, which the jobs themselves ask for, not the rules",
        "Job j: is a job: create it through the Kubernetes door",
        "Queue nlp: hca is not counted by Muster",
    ]


def test_queues_of_kai_count_in_units_of_their_own() -> None:
    made = imported(objects(KAI), HERE)

    team = made.site.queues[QueuePath("dept/team")]
    assert team.weight == 3
    assert team.quotas == (
        Quota(scope=CPU, guaranteed=4_000),
        Quota(scope=MEMORY, limit=1_000),
        Quota(scope=GPU, guaranteed=2_500, limit=4_000),
    )
    assert [each.about for each in made.notes] == ["Queue team", "Queue team"]


def test_queues_that_are_exported_come_back() -> None:
    queues = (
        Queue(path=QueuePath("acme"), weight=2, quotas=(Quota(scope=GPU, limit=8_000),)),
        Queue(path=QueuePath("acme/nlp"), quotas=(Quota(scope=CPU, guaranteed=500),)),
    )
    site = Site(queues={each.path: each for each in queues})

    again = imported(exported(site).objects, HERE).site

    assert again.queues[QueuePath("acme")] == queues[0]
    assert again.queues[QueuePath("acme/nlp")].quotas == queues[1].quotas
