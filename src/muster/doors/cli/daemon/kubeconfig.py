"""`muster kubeconfig`: an entry for kubectl, whose tokens are renewed by this command."""

import base64
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any, cast

import click
import yaml

from muster.api.site import KubernetesDocument
from muster.doors.cli.options import example
from muster.doors.cli.screen.printing import note, say
from muster.doors.cli.surroundings import Call

EXEC_VERSION = "client.authentication.k8s.io/v1"
PASSED_ON = ("MUSTER_HOME", "MUSTER_ADDRESS", "MUSTER_TOKEN")
"""By which this command finds the same Muster again, when kubectl calls it."""

FILE = click.Path(dir_okay=False, path_type=Path)


@click.command(
    epilog=example("muster kubeconfig", "muster kubeconfig --file lab.yaml --namespace nlp")
)
@click.option("--file", type=FILE, help="The file to write; else KUBECONFIG, or ~/.kube/config.")
@click.option("--context", "name", default="muster", help="What the entry is called.")
@click.option("--namespace", help="The namespace that is meant when none is named.")
@click.option("--credential", is_flag=True, help="Print a token, as kubectl asks for it.")
@click.pass_obj
def kubeconfig(
    call: Call, *, file: Path | None, name: str, namespace: str | None, credential: bool
) -> None:
    """Write an entry for kubectl that reaches this Muster as you, and make it the current one.

    Tokens last an hour; kubectl calls this command for another one. Other entries stay.
    """
    entry = call.client.kubernetes_token()
    if credential:
        say(json.dumps(_credential(entry)))
        return
    path = file or _usual_file()
    config = _with_entry(_read(path), name, _parts(entry, namespace))
    _write(path, config)
    note(f"Wrote context {name} to {path}; it is the current one. Try: kubectl get namespaces")


def _credential(entry: KubernetesDocument) -> dict[str, Any]:
    return {
        "apiVersion": EXEC_VERSION,
        "kind": "ExecCredential",
        "status": {"token": entry.token, "expirationTimestamp": entry.expires_at},
    }


def _parts(entry: KubernetesDocument, namespace: str | None) -> dict[str, Any]:
    """Cluster, user and context, without their names."""
    installed = shutil.which("muster")
    command = [sys.executable, "-m", "muster"] if installed is None else [installed]
    env = [{"name": each, "value": os.environ[each]} for each in PASSED_ON if each in os.environ]
    return {
        "cluster": {
            "server": entry.server,
            "certificate-authority-data": base64.b64encode(entry.ca.encode()).decode(),
        },
        "user": {
            "exec": {
                "apiVersion": EXEC_VERSION,
                "command": command[0],
                "args": [*command[1:], "kubeconfig", "--credential"],
                "env": env,
                "interactiveMode": "Never",
                "provideClusterInfo": False,
            }
        },
        "context": {} if namespace is None else {"namespace": namespace},
    }


def _with_entry(config: dict[str, Any], name: str, parts: dict[str, Any]) -> dict[str, Any]:
    """The configuration with this entry in the place of one that had its name."""
    context = {"cluster": name, "user": name, **parts["context"]}
    new = {"clusters": parts["cluster"], "users": parts["user"], "contexts": context}
    made: dict[str, Any] = {"apiVersion": "v1", "kind": "Config", "preferences": {}, **config}
    for key, value in new.items():
        known: list[dict[str, Any]] = made.get(key) or []
        others = [each for each in known if each.get("name") != name]
        made[key] = [*others, {"name": name, key.removesuffix("s"): value}]
    return {**made, "current-context": name}


def _usual_file() -> Path:
    named = os.environ.get("KUBECONFIG", "").split(os.pathsep)[0]
    return Path(named) if named else Path.home() / ".kube" / "config"


def _read(path: Path) -> dict[str, Any]:
    try:
        found: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise click.ClickException(f"{path} cannot be read: {error}") from error
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise click.ClickException(f"{path} is no configuration of kubectl; name another --file.")
    return cast("dict[str, Any]", found)


def _write(path: Path, config: dict[str, Any]) -> None:
    """Whole, or not at all; only its owner reads it."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(descriptor, "w", encoding="utf-8") as out:
        yaml.safe_dump(config, out, sort_keys=False)
    fresh.rename(path)
