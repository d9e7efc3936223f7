"""`muster telemetry`: configuration that has other people's tools read ours."""

from pathlib import Path

import click

from muster.doors.cli.options import example
from muster.doors.cli.screen.printing import say

TARGET = "127.0.0.1:7411"
TOKEN_FILE = "/etc/prometheus/muster.token"  # noqa: S105 -- where it is, not what
RULES = Path(__file__).parents[3] / "telemetry" / "rules" / "muster.rules.yml"

_PROMETHEUS = """\
# For prometheus.yml. Muster answers there once it was started with: muster up --listen {target}
# The token: muster tokens create --role viewer --lifetime 365d -o name > {token}
scrape_configs:
- job_name: muster
  honor_labels: true # the label `job` says which job has a GPU
  scrape_interval: 15s
  authorization: {{credentials_file: {token}}}
  static_configs: [{{targets: ["{target}"]}}]
rule_files: ["{rules}"]
"""

_ALERTMANAGER = """\
# For alertmanager.yml. Put your own receivers in the place of these addresses.
route:
  receiver: everybody
  group_by: [alertname, queue]
  group_wait: 30s
  repeat_interval: 4h
  routes:
  - {matchers: ['pretend="true"'], receiver: nobody}
  - {matchers: ['severity="critical"'], receiver: on-call}
receivers:
- name: nobody
- name: everybody
  webhook_configs: [{url: "http://127.0.0.1:9/everybody"}]
- name: on-call
  webhook_configs: [{url: "http://127.0.0.1:9/on-call"}]
inhibit_rules:
- {source_matchers: ['alertname="GpuBroken"'], target_matchers: ['UUID=~".+"'], equal: [UUID]}
- source_matchers: ['alertname="NodeGone"']
  target_matchers: ['Hostname=~".+"']
  equal: [Hostname]
"""

_GRAFANA = """\
# provisioning/datasources/muster.yaml
apiVersion: 1
datasources:
- {{name: Prometheus, type: prometheus, access: proxy, url: "http://{prometheus}"}}
---
# provisioning/dashboards/muster.yaml; the files are in examples/grafana of Muster's source.
apiVersion: 1
providers:
- {{name: muster, folder: Muster, type: file, options: {{path: {folder}}}}}
"""

_DATADOG = """\
# For conf.d/openmetrics.d/conf.yaml of the agent. Every series is billed: this is a short list.
instances:
- openmetrics_endpoint: http://{target}/metrics
  namespace: muster
  headers: {{Authorization: "Bearer TOKEN"}} # muster tokens create --role viewer -o name
  metrics:
  - muster_jobs
  - muster_jobs_waiting
  - muster_jobs_ended
  - muster_pool_gpus
  - muster_queue_used_gpus
  - muster_queue_oldest_wait_seconds
  - muster_leads
  - DCGM_FI_DEV_GPU_UTIL
  - DCGM_FI_DEV_GPU_TEMP
  - DCGM_FI_DEV_FB_USED
  - DCGM_FI_DEV_POWER_USAGE
"""

_target = click.option(
    "--target", default=TARGET, show_default=True, help="Where Muster answers: HOST:PORT."
)


@click.group(epilog=example("muster telemetry prometheus >> prometheus.yml"))
def telemetry() -> None:
    """Print configuration with which other tools read what Muster measures."""


@telemetry.command(epilog=example("muster telemetry prometheus --target login1:7411"))
@_target
@click.option("--token-file", default=TOKEN_FILE, show_default=True, help="Where its token lies.")
def prometheus(target: str, token_file: str) -> None:
    """Have Prometheus read Muster, and judge our rules."""
    say(_PROMETHEUS.format(target=target, token=token_file, rules=RULES).rstrip())


@telemetry.command(epilog=example("muster telemetry alertmanager > alertmanager.yml"))
def alertmanager() -> None:
    """Have Alertmanager send what Prometheus finds, and leave pretend GPUs out."""
    say(_ALERTMANAGER.rstrip())


@telemetry.command(epilog=example("muster telemetry grafana --folder /srv/muster/grafana"))
@click.option(
    "--prometheus", default="127.0.0.1:9090", show_default=True, help="Where it is: HOST:PORT."
)
@click.option(
    "--folder",
    default="/var/lib/grafana/dashboards/muster",
    show_default=True,
    help="Where the dashboards lie.",
)
def grafana(prometheus: str, folder: str) -> None:
    """Have Grafana show our dashboards."""
    say(_GRAFANA.format(prometheus=prometheus, folder=folder).rstrip())


@telemetry.command(epilog=example("muster telemetry datadog"))
@_target
def datadog(target: str) -> None:
    """Have Datadog's agent read a few metrics."""
    say(_DATADOG.format(target=target).rstrip())
