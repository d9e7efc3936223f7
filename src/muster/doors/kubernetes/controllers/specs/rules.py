"""What each kind of workload adds to the machinery that all kinds share."""

from muster.doors.kubernetes.controllers.specs.apps import Apps, prepare_daemon_set
from muster.doors.kubernetes.controllers.specs.batch import Batch, prepare_job
from muster.doors.kubernetes.controllers.specs.fields import PodSpecs
from muster.doors.kubernetes.controllers.specs.policies import (
    autoscaler_causes,
    budget_causes,
    default_autoscaler,
)
from muster.doors.kubernetes.objects.kinds import (
    CRON_JOB,
    DAEMON_SET,
    DEPLOYMENT,
    HORIZONTAL_POD_AUTOSCALER,
    JOB,
    POD_DISRUPTION_BUDGET,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
)
from muster.doors.kubernetes.objects.rules import Rules
from muster.doors.kubernetes.objects.value import JsonObject, Kind, part


def workload_rules(pods: PodSpecs) -> dict[Kind, Rules]:
    """A row for each kind. pods: what is known of the specs of pods."""
    batch, apps = Batch(pods), Apps(pods)
    return {
        JOB: Rules(
            default=batch.default_job,
            prepare=prepare_job,
            validate=batch.job_causes,
            selectable={"status.successful": _successful},
        ),
        CRON_JOB: Rules(default=batch.default_cron_job, validate=batch.cron_job_causes),
        REPLICA_SET: Rules(
            default=apps.default_replica_set,
            validate=apps.replica_set_causes,
            selectable={"status.replicas": _replicas},
        ),
        REPLICATION_CONTROLLER: Rules(
            default=apps.default_replication,
            validate=apps.replication_causes,
            selectable={"status.replicas": _replicas},
        ),
        DEPLOYMENT: Rules(default=apps.default_deployment, validate=apps.deployment_causes),
        STATEFUL_SET: Rules(default=apps.default_stateful_set, validate=apps.stateful_set_causes),
        DAEMON_SET: Rules(
            default=apps.default_daemon_set,
            prepare=prepare_daemon_set,
            validate=apps.daemon_set_causes,
        ),
        HORIZONTAL_POD_AUTOSCALER: Rules(default=default_autoscaler, validate=autoscaler_causes),
        POD_DISRUPTION_BUDGET: Rules(validate=budget_causes),
    }


def _successful(job: JsonObject) -> str:
    return str(part(job, "status").get("succeeded", 0))


def _replicas(replica_set: JsonObject) -> str:
    return str(part(replica_set, "status").get("replicas", 0))
