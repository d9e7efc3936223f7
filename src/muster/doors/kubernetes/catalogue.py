"""What each kind adds to the machinery that all kinds share.

To teach the door about a kind, write a module with its functions in `controllers`, `pods`,
`tables` or `objects`, and name them in a row here.
"""

from muster.doors.kubernetes.controllers.kubeflow.frameworks import TRAINING_JOBS
from muster.doors.kubernetes.controllers.kubeflow.rules import training_rules
from muster.doors.kubernetes.controllers.specs.fields import PodSpecs
from muster.doors.kubernetes.controllers.specs.rules import workload_rules
from muster.doors.kubernetes.controllers.volcano.rules import volcano_rules
from muster.doors.kubernetes.foreign.definitions import DEFINITIONS
from muster.doors.kubernetes.foreign.kinds import VOLCANO_JOB, in_every_version
from muster.doors.kubernetes.objects.basics import (
    CONFIG_MAPS,
    EVENTS,
    NAMESPACES,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
)
from muster.doors.kubernetes.objects.faces import FACES, face_rules
from muster.doors.kubernetes.objects.kept import KEPT
from muster.doors.kubernetes.objects.kinds import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    CONFIG_MAP,
    CRD,
    CSR,
    EVENT,
    KINDS,
    LIMIT_RANGE,
    NAMESPACE,
    NODE,
    POD,
    PRIORITY_CLASS,
    RESOURCE_QUOTA,
    ROLE,
    ROLE_BINDING,
    RUNTIME_CLASS,
    SECRET,
    SERVICE,
    SERVICE_ACCOUNT,
)
from muster.doors.kubernetes.objects.rules import NO_RULES, Printing, Rules
from muster.doors.kubernetes.objects.selectors import text_at
from muster.doors.kubernetes.objects.services import SERVICES
from muster.doors.kubernetes.objects.value import Kind
from muster.doors.kubernetes.pods.checks.pod import pod_causes, spec_causes
from muster.doors.kubernetes.pods.checks.scheduling import label_causes
from muster.doors.kubernetes.pods.defaults import admitted, defaulted, fill_template
from muster.doors.kubernetes.pods.limits import defaulted_range, range_causes
from muster.doors.kubernetes.pods.priority_classes import class_causes, defaulted_class
from muster.doors.kubernetes.pods.quota import quota_causes
from muster.doors.kubernetes.pods.runtime_classes import defaulted_runtime, runtime_causes
from muster.doors.kubernetes.pods.selecting import OF_NODES, SELECTABLE, grace_of
from muster.doors.kubernetes.tables.printing import printing_of
from muster.model.value import replace

_POD_SPECS = PodSpecs(fill=fill_template, causes=spec_causes, labels=label_causes)
_ADDED: dict[Kind, Rules] = {
    **workload_rules(_POD_SPECS),
    **KEPT,
    CONFIG_MAP: CONFIG_MAPS,
    CRD: DEFINITIONS,
    CSR: Rules(selectable={"spec.signerName": text_at("spec", "signerName")}),
    EVENT: EVENTS,
    LIMIT_RANGE: Rules(default=defaulted_range, validate=range_causes),
    NAMESPACE: NAMESPACES,
    NODE: Rules(keeps_status=True, selectable=OF_NODES),
    POD: Rules(
        default=defaulted,
        prepare=admitted,
        validate=pod_causes,
        keeps_status=True,
        grace_s=grace_of,
        selectable=SELECTABLE,
    ),
    PRIORITY_CLASS: Rules(default=defaulted_class, validate=class_causes),
    RESOURCE_QUOTA: Rules(validate=quota_causes),
    RUNTIME_CLASS: Rules(default=defaulted_runtime, validate=runtime_causes),
    SECRET: SECRETS,
    SERVICE: SERVICES,
    SERVICE_ACCOUNT: SERVICE_ACCOUNTS,
    ROLE: ROLES,
    CLUSTER_ROLE: ROLES,
    ROLE_BINDING: ROLE_BINDINGS,
    CLUSTER_ROLE_BINDING: ROLE_BINDINGS,
}

FOREIGN: dict[Kind, Rules] = {
    **{
        kind: training_rules(each, _POD_SPECS)
        for each in TRAINING_JOBS
        for kind in in_every_version(each.kind)
    },
    VOLCANO_JOB: volcano_rules(_POD_SPECS),
}
"""What built-in kinds of other projects add to their schemas."""

RULES: dict[Kind, Rules] = {
    kind: replace(_ADDED.get(kind, NO_RULES), printing=printing_of(kind))
    for kind in KINDS
    if kind.is_stored
}
RULES.update({each: face_rules(each, RULES[each.kept]) for each in FACES})


def rules_of(kind: Kind) -> Rules:
    """What this kind adds; nothing, where it has no row."""
    return RULES.get(kind, NO_RULES)


def printed(kind: Kind) -> Printing:
    """How objects of this kind are shown as a Table."""
    return rules_of(kind).printing or printing_of(kind)
