"""The page of alerts in the documentation, made from the rules that come with Muster."""

import re
import sys

from muster.telemetry.alerting.reading import rule_groups
from muster.telemetry.alerting.rules import AlertRule, RuleGroup
from muster.telemetry.promql.durations import duration_text

INTRODUCTION = """\
# Alerts

What each alert of the rules that come with Muster means, and what to do.
How they are told, and how to add your own: [Have somebody told](howto/alerts.md).
`critical`: somebody must act now. `warning`: in these days. `info`: if you care.

This page is made from `src/muster/telemetry/rules/muster.rules.yml`: run `make reference`.
"""

_SHOWN = re.compile(r"\{\{.*?\}\}")


def page(rules: str) -> str:
    """The page as it belongs in docs/alerts.md."""
    return INTRODUCTION + "".join(map(_group, rule_groups(rules)))


def _group(group: RuleGroup) -> str:
    alerts = [rule for rule in group.rules if isinstance(rule, AlertRule)]
    return "".join(map(_alert, alerts))


def _alert(rule: AlertRule) -> str:
    texts = {name: written.source for name, written in (*rule.labels, *rule.annotations)}
    held = f", once it has held for {duration_text(rule.for_ms)}" if rule.for_ms else ""
    return f"""
## {rule.name}

{texts["severity"]}{held}

{_plain(texts["summary"])}.
{_plain(texts["description"])}

**What to do.** {_plain(texts["action"])}

    {_plain(texts["muster"])}
"""


def _plain(text: str) -> str:
    """Where a value stands in an alert, its name stands here."""
    return _SHOWN.sub(lambda found: _name(found.group()), text)


def _name(term: str) -> str:
    label = re.search(r"\$labels\.(\w+)", term)
    return label.group(1).upper() if label else "N"


if __name__ == "__main__":
    sys.stdout.write(page(sys.stdin.read()))
