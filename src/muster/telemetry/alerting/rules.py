"""Groups of rules, as they were read."""

from muster.model.value import Value
from muster.telemetry.alerting.template import Template
from muster.telemetry.promql.syntax import Expression


class Recording(Value):
    """An expression whose answer is kept as a metric of this name."""

    name: str
    of: Expression
    labels: tuple[tuple[str, str], ...] = ()


class AlertRule(Value):
    """An expression whose every answer is an alert once it has held for this long.

    keep_ms: how long an alert goes on after its expression holds no more.
    """

    name: str
    of: Expression
    for_ms: int = 0
    keep_ms: int = 0
    labels: tuple[tuple[str, Template], ...] = ()
    annotations: tuple[tuple[str, Template], ...] = ()


Rule = Recording | AlertRule


class RuleGroup(Value):
    """Rules that are evaluated one after the other. interval_ms: 0 is every time.

    limit: more answers of one rule than this are a mistake; 0 sets no bound.
    """

    name: str
    rules: tuple[Rule, ...]
    interval_ms: int = 0
    limit: int = 0
