"""What the pods of these tests are read against."""

from datetime import UTC

from muster.client.sending import Origin
from muster.doors.kubernetes.pods.job_of import PodWorld
from muster.doors.kubernetes.pods.queue_marks import LOCAL, QueueMark
from muster.doors.request.parse import Submitter
from muster.model.value import ClassName, GpuModel, Instant, QueuePath, UserName

NOW = Instant(1_800_000_000_000)

WORLD = PodWorld(
    by=Submitter(user=UserName("ada"), queue=QueuePath("team"), now=NOW),
    origin=Origin(workdir="/", environ={}, umask=0o022, zone=UTC),
    queues={QueueMark(kind=LOCAL, name="lq"): QueuePath("team/lq")},
    classes={"urgent": ClassName("urgent")},
    products={"NVIDIA-A100-SXM4-80GB": GpuModel("A100-80GB")},
)
