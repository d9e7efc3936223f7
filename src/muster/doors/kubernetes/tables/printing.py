"""Which columns and cells each kind has."""

from muster.doors.kubernetes.objects import kinds
from muster.doors.kubernetes.objects.rules import Printing
from muster.doors.kubernetes.objects.value import Kind
from muster.doors.kubernetes.tables import cluster, pods, policies, workloads

PRINTING: dict[str, Printing] = {
    kind.qualified_kind: printing
    for kind, printing in (
        (kinds.POD, pods.PODS),
        (kinds.POD_TEMPLATE, pods.POD_TEMPLATES),
        (kinds.JOB, workloads.JOBS),
        (kinds.CRON_JOB, workloads.CRON_JOBS),
        (kinds.REPLICA_SET, workloads.REPLICA_SETS),
        (kinds.REPLICATION_CONTROLLER, workloads.REPLICA_SETS),
        (kinds.DEPLOYMENT, workloads.DEPLOYMENTS),
        (kinds.STATEFUL_SET, workloads.STATEFUL_SETS),
        (kinds.DAEMON_SET, workloads.DAEMON_SETS),
        (kinds.CONTROLLER_REVISION, workloads.CONTROLLER_REVISIONS),
        (kinds.HORIZONTAL_POD_AUTOSCALER, policies.AUTOSCALERS),
        (kinds.POD_DISRUPTION_BUDGET, policies.DISRUPTION_BUDGETS),
        (kinds.RESOURCE_QUOTA, policies.QUOTAS),
        (kinds.PRIORITY_CLASS, policies.PRIORITY_CLASSES),
        (kinds.LIMIT_RANGE, policies.CREATED),
        (kinds.ROLE, policies.CREATED),
        (kinds.CLUSTER_ROLE, policies.CREATED),
        (kinds.CRD, policies.CREATED),
        (kinds.NODE, cluster.NODES),
        (kinds.EVENT, cluster.EVENTS),
        (kinds.SERVICE, cluster.SERVICES),
        (kinds.ENDPOINT_SLICE, cluster.ENDPOINT_SLICES),
        (kinds.ENDPOINTS, cluster.ENDPOINTS),
        (kinds.ROLE_BINDING, cluster.ROLE_BINDINGS),
        (kinds.CLUSTER_ROLE_BINDING, cluster.ROLE_BINDINGS),
        (kinds.NAMESPACE, cluster.NAMESPACES),
        (kinds.CONFIG_MAP, cluster.CONFIG_MAPS),
        (kinds.SECRET, cluster.SECRETS),
        (kinds.LEASE, cluster.LEASES),
        (kinds.SERVICE_ACCOUNT, cluster.PLAIN),
    )
}


def printing_of(kind: Kind) -> Printing:
    """How a kind is shown; its name and age, where nothing else is known of it."""
    return PRINTING.get(kind.qualified_kind, cluster.PLAIN)
