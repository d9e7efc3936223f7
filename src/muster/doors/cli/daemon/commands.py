"""`muster up`, `muster down` and `muster serve`: the program that does the work."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from muster.doors.cli.daemon.port import (
    DownOptions,
    ListenOptions,
    PretendGpus,
    ServeOptions,
    UpOptions,
)
from muster.doors.cli.options import example
from muster.doors.cli.surroundings import Call

F = TypeVar("F", bound=Callable[..., Any])

FILE = click.Path(path_type=Path)

KUBERNETES_ADDRESS = "127.0.0.1:6443"
"""Where clients of Kubernetes usually find an API."""

_GPUS = re.compile(r"(?:([0-9]{1,4})x)?([A-Za-z][\w.+-]{0,63})")

home_option = click.option(
    "--home", type=FILE, help="The state folder; MUSTER_HOME or the usual one if not said."
)


def _listening(command: F) -> F:
    wraps: tuple[Any, ...] = (
        click.option("--listen", metavar="HOST:PORT", help="Answer over the network as well."),
        click.option("--tls-cert", type=FILE, help="The certificate for --listen."),
        click.option("--tls-key", type=FILE, help="The key of that certificate."),
        click.option(
            "--store", metavar="URL", help="Where the state is kept: postgresql://...; else SQLite."
        ),
        click.option(
            "--kubernetes",
            is_flag=False,
            flag_value=KUBERNETES_ADDRESS,
            metavar="[HOST:PORT]",
            help=f"Serve kubectl as well, at {KUBERNETES_ADDRESS} unless said; none: no more.",
        ),
        home_option,
    )
    for wrap in reversed(wraps):
        command = wrap(command)
    return command


@click.command(
    epilog=example(
        "muster up",
        "muster up --nodes 3 --gpus 4xA100-40GB",
        "muster up --listen 0.0.0.0:7411 --tls-cert cert.pem --tls-key key.pem",
    )
)
@click.option("--nodes", type=click.IntRange(min=1), help="Pretend to have so many nodes.")
@click.option(
    "--gpus", multiple=True, metavar="COUNTxMODEL", help="GPUs of each pretend node: 4xA100-40GB."
)
@click.option(
    "--pretend",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Pretend nodes of several kinds: a YAML list, as for muster simulate --cluster.",
)
@click.option("--site", type=FILE, help="A configuration file to begin with.")
@click.option(
    "--standby-for",
    type=FILE,
    metavar="HOME",
    help="Take over from the Muster in that folder, with its store, when it ends.",
)
@click.option(
    "--mail-program",
    metavar="PROGRAM",
    help="What sends mail about jobs, such as /usr/bin/mail; none: nothing does.",
)
@click.option(
    "--recover",
    is_flag=True,
    help="The database was lost or is old: take over the jobs that run without it.",
)
@click.option(
    "--only-clusters/--here-too",
    default=None,
    help="Run no jobs on this machine, only on clusters that were added; or here as well.",
)
@click.option(
    "--lease",
    metavar="[NAMESPACE/]NAME",
    help="Lead only with this Lease of the Kubernetes cluster of KUBECONFIG, or of this pod.",
)
@click.option("--foreground", is_flag=True, help="Stay here until Ctrl-C.")
@_listening
@click.pass_obj
def up(call: Call, **chosen: Any) -> int:
    """Start Muster on this machine, with the CPUs, memory and GPUs that it has.

    With `--nodes`, `--gpus` or `--pretend` it presents pretend nodes; jobs are real processes all
    the same.
    Jobs that were running when it stopped are taken over.
    """
    gpus = tuple(pretend_gpus(text) for text in chosen["gpus"])
    if chosen["pretend"] is not None and (gpus or chosen["nodes"] is not None):
        raise click.UsageError("Either --pretend, or --nodes and --gpus; not both.")
    return call.daemon.up(
        UpOptions(
            home=chosen["home"],
            nodes=chosen["nodes"],
            gpus=gpus,
            pretend=chosen["pretend"],
            listen=_listen(chosen),
            site=chosen["site"],
            store=chosen["store"],
            standby_for=chosen["standby_for"],
            mail_program=chosen["mail_program"],
            kubernetes=chosen["kubernetes"],
            recover=chosen["recover"],
            only_clusters=chosen["only_clusters"],
            lease=chosen["lease"],
            foreground=chosen["foreground"],
        )
    )


@click.command(epilog=example("muster down"))
@home_option
@click.option(
    "--wait", "patience_s", type=click.IntRange(min=1), default=30, help="Wait so many seconds."
)
@click.pass_obj
def down(call: Call, home: Path | None, patience_s: int) -> int:
    """Stop Muster on this machine. Running jobs run on, and `muster up` takes them over."""
    return call.daemon.down(DownOptions(home=home, patience_s=patience_s))


@click.command(
    epilog=example("muster serve --store postgresql://db/muster --listen 0.0.0.0:7411 ...")
)
@_listening
@click.pass_obj
def serve(call: Call, **chosen: Any) -> int:
    """Answer at the doors only, for a controller that runs elsewhere on the same store."""
    return call.daemon.serve(
        ServeOptions(
            home=chosen["home"],
            listen=_listen(chosen),
            store=chosen["store"],
            kubernetes=chosen["kubernetes"],
        )
    )


def pretend_gpus(text: str) -> PretendGpus:
    """`4xA100-40GB`; a model alone means one."""
    found = _GPUS.fullmatch(text)
    if found is None or found[1] == "0":
        raise click.UsageError(f"--gpus {text!r}: write COUNTxMODEL, such as 4xA100-40GB.")
    return PretendGpus(count=int(found[1] or 1), model=found[2])


def _listen(chosen: dict[str, Any]) -> ListenOptions:
    if (chosen["tls_cert"] is None) != (chosen["tls_key"] is None):
        raise click.UsageError("--tls-cert and --tls-key belong together.")
    if chosen["tls_cert"] is not None and chosen["listen"] is None:
        raise click.UsageError("--tls-cert is for --listen; say where to listen.")
    return ListenOptions(
        address=chosen["listen"], tls_cert=chosen["tls_cert"], tls_key=chosen["tls_key"]
    )
