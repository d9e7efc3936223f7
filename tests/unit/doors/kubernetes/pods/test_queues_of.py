from muster.doors.kubernetes.pods.queues_of import (
    job_class_of,
    namespace_object,
    namespace_of_queue,
    namespaces,
    priority_class_object,
    priority_classes,
)
from muster.model.queue import JobClass, Queue
from muster.model.value import ClassName, QueuePath
from unit.doors.kubernetes.pods.worlds import NOW

QUEUES = tuple(map(QueuePath, ("default", "acme", "acme/nlp", "acme-nlp", "acme/Vision_2")))


def test_each_queue_is_a_namespace_of_its_own() -> None:
    found = namespaces(QUEUES)

    assert sorted(found.values()) == sorted(QUEUES)
    assert found["default"] == "default"
    assert found["acme-nlp"] == "acme-nlp"
    assert found["acme-vision-2"] == "acme/Vision_2"
    assert namespace_of_queue(QueuePath("acme/nlp"), QUEUES).startswith("acme-nlp-")
    assert namespace_of_queue(QueuePath("gone/now"), QUEUES) == "gone-now"


def test_a_namespace_says_which_queue_it_is() -> None:
    found = namespace_object("acme-nlp", Queue(path=QueuePath("acme/nlp")), NOW)

    assert found["metadata"]["annotations"] == {"muster.io/queue": "acme/nlp"}
    assert found["status"] == {"phase": "Active"}


def test_a_job_class_is_a_priority_class_and_back() -> None:
    low = JobClass(name=ClassName("low"), priority=-5)
    high = JobClass(name=ClassName("high"), priority=100, preempts=(ClassName("low"),))
    classes = {low.name: low}

    shown = priority_class_object(high, NOW)

    assert shown["value"] == 100
    assert shown["preemptionPolicy"] == "PreemptLowerPriority"
    assert job_class_of(shown, classes) == high
    assert priority_class_object(low, NOW)["preemptionPolicy"] == "Never"
    assert priority_classes({**classes, high.name: high}) == {"high": "high", "low": "low"}
