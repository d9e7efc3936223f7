"""What generated worlds are made of: nodes, requests, quotas and rules that bite when few."""

from muster.model.burst import Burst
from muster.model.job import JobState
from muster.model.queue import Ceiling
from muster.model.value import MINUTE, ClassName, ClusterName, Duration
from stories.requests import JobAsked
from stories.things import ClassIs, NodesAre, PoolIs, QueueIs
from stories.words import GroupAsked, group, quota

QUEUES = ("root", "a", "a/x", "a/y", "b")
USERS = ("ann", "bob", "cal")
GUESTS: tuple[dict[str, str], ...] = (
    {"users": "ann bob"},
    {"users": "ann", "queue": "a"},
    {"users": "ann bob", "by_name": "yes"},
    {"queue": "a", "by_name": "yes"},
    {"users": "ann bob", "by_name": "yes", "flexible": "yes"},
)
"""Whom something can be reserved for, beside a queue alone."""
BURSTS = (
    (Burst(preferred=ClusterName("c"), to=ClusterName("d"), classes=(ClassName("normal"),)),),
    (
        Burst(
            preferred=ClusterName("c"),
            to=ClusterName("d"),
            classes=(ClassName("normal"), ClassName("low")),
            over_gpu_hours=2,
            cost_percent=60,
            transfer=Duration(5 * MINUTE),
        ),
        Burst(preferred=ClusterName("d"), to=ClusterName("c"), classes=(ClassName("urgent"),)),
    ),
)
"""Rules about two clusters, of which one is half as dear as the other."""
CLASSES = ("normal", "urgent", "low")
KINDS_OF_NODE: tuple[NodesAre, ...] = (
    {"gpus": 4},
    {"gpus": 2},
    {"gpus": 4, "cpu": 8, "memory_gib": 32},
    {"gpus": 2, "labels": {"disk": "ssd"}},
    {"gpus": 2, "taints": ("team=vision",)},
    {"gpus": 0, "cpu": 32},
    {"gpus": 2, "mig": ()},
    {"gpus": 1, "mig": ("1g.5gb@0", "1g.5gb@1", "2g.10gb@2", "3g.20gb@4")},
    {"gpus": 2, "mig": ("1g.5gb@0", "1g.5gb@1", "1g.5gb@2", "1g.5gb@3")},
    {"gpus": 2, "model": "A100-80GB"},
    {"gpus": 1, "model": "H200-141GB", "mig": ("1g.18gb@0", "2g.35gb@2")},
    {"gpus": 2, "model": "T4-16GB"},
    {"gpus": 2, "parts": 4, "parts_by_mps": True},
    {"gpus": 2, "parts": 2},
)
PLACES = (("z1", "r1"), ("z1", "r2"), ("z2", "r1"))
SHAPES: tuple[GroupAsked, ...] = (
    {},
    {"gpus": 2},
    {"gpus": 4},
    {"tasks": 2, "gpus": 2},
    {"tasks": 4},
    {"tasks": 4, "at_least": 2},
    {"gpus": 1, "cpu": 6, "memory_gib": 24},
    {"gpus": 0, "cpu": 8},
    {"tasks": 3, "gpus": 0, "cpu": 2, "memory_gib": 8},
    {"mig": "1g.5gb"},
    {"mig": "2g.10gb"},
    {"mig": "3g.20gb"},
    {"mig": "1g.18gb"},
    {"gpus": 2, "mig": "1g.5gb"},
    {"mps": 250},
    {"mps": 500, "mps_memory_gib": 10},
    {"time_share": 2},
    {"time_share": 4},
    {"gpus": 9},
)
PLAIN_SHAPES = SHAPES[:6]
RULES: tuple[JobAsked, ...] = (
    {},
    {"together": "rack"},
    {"together": "zone"},
    {"rather_together": "rack"},
    {"needs": ("disk=ssd",)},
    {"needs": ("disk!=ssd",)},
    {"takes": ("pods",)},
    {"prefers": ("disk=ssd",)},
    {"tolerates": ("*",)},
    {"tolerates": ("team=vision",)},
    {"only_on": ("m1", "m2")},
    {"not_on": ("m1",)},
    {"near": ("app=web",)},
    {"near": ("app=web@rack",), "labels": {"app": "web"}},
    {"apart": ("app=web",)},
    {"apart": ("app=web@rack",), "labels": {"app": "web"}},
    {"labels": {"app": "web"}},
    {"exclusive": True},
    {"per_node": 1},
    {"models": ("A100-40GB",)},
    {"models": ("A100-80GB", "H200-141GB")},
    {"gpu_memory_gib": 60},
    {"spot": "allowed"},
    {"spot": "only"},
    {"pools": ("main",)},
    {"pools": ("second", "main")},
    {"clusters": ("c",)},
    {"clusters": ("d", "c")},
    {"begins": 30},
    {"deadline": 60},
    {"priority": 5},
    {"preemptible": False},
    {"mode": "suspend"},
    {"mode": "cancel"},
    {"restart_minutes": 30},
    {"named": "nightly", "after": "singleton"},
    {"held": True},
    {"groups": (group("worker", tasks=2), group("server", tasks=1, gpus=0, cpu=4))},
    {"groups": (group("a", gpus=2), group("b", mig="1g.5gb"))},
)
HARMLESS: tuple[JobAsked, ...] = (
    {},
    {"labels": {"app": "web"}},
    {"preemptible": False},
    {"mode": "suspend"},
    {"mode": "cancel"},
    {"restart_minutes": 30},
)
"""Rules that a job which already runs cannot have broken."""
LINES = (
    quota(guaranteed=2),
    quota(guaranteed=4),
    quota(guaranteed="40%", limit="60%"),
    quota(guaranteed="25%", lend=0),
    quota(guaranteed=2, lend=1, borrow=1),
    quota(limit=3),
    quota(limit="50%"),
    quota(guaranteed=2, borrow=0),
    quota(guaranteed=1, model="A100-40GB"),
    quota(limit=2, model="A100-40GB"),
    quota(guaranteed="50%", limit=4, pool="main"),
    quota(guaranteed="50%", lend="20%", pool="second"),
    quota(profile="1g.5gb", guaranteed=1, limit=2),
    quota(of="cpu", limit=16),
    quota(of="cpu", guaranteed=8, lend=0),
    quota(of="memory", guaranteed="10%", limit="50%"),
)

BOUNDED_POOLS: tuple[PoolIs, ...] = ({}, {"max_minutes": 30})
BOUNDED_QUEUES: tuple[QueueIs, ...] = ({}, {}, {}, {"max_jobs": 2})
BOUNDED_CLASSES: tuple[ClassIs, ...] = (
    {},
    {},
    {"max_minutes": 60},
    {"per_user": Ceiling(gpu_milli=4_000)},
    {"per_user": Ceiling(jobs=1)},
    {"per_queue": Ceiling(gpu_milli=3_000)},
)

STATES = (
    JobState.RUNNING,
    JobState.RUNNING,
    JobState.RUNNING,
    JobState.STARTING,
    JobState.STOPPING,
    JobState.SUSPENDED,
)
