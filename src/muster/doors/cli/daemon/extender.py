"""`muster extender`: only the packing, for clusters that keep kube-scheduler."""

from pathlib import Path

import click

from muster.doors.cli.daemon.port import ExtenderOptions
from muster.doors.cli.options import example
from muster.doors.cli.surroundings import Call


@click.command(epilog=example("muster extender --listen 127.0.0.1:8888"))
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="How the cluster is reached (default: ~/.kube/config).",
)
@click.option("--context", default="", help="The context in it, if not the current one.")
@click.option("--listen", default="127.0.0.1:8888", help="HOST:PORT to answer at.")
@click.pass_obj
def extender(call: Call, kubeconfig: Path | None, context: str, listen: str) -> int:
    """Answer kube-scheduler's HTTP extender: which nodes suit a pod best.

    kube-scheduler keeps deciding and binding. It needs `urlPrefix: http://127.0.0.1:8888` with
    `filterVerb: filter` and `prioritizeVerb: prioritize` in its configuration.
    """
    options = ExtenderOptions(kubeconfig=kubeconfig, context=context, listen=listen)
    return call.daemon.extender(options)
