"""From the options of `submit` to the document that the server is sent."""

import os
from collections.abc import Iterable, Mapping
from typing import Any

import click

from muster.api.jobs import GroupDocument, SubmitDocument
from muster.doors.cli.screen.times import zoned
from muster.doors.cli.surroundings import Surroundings
from muster.model.value import Value

# The key to the server is nothing that a job should find, or that should be kept with it.
SECRETS = frozenset({"MUSTER_TOKEN"})

PASSED_ON = (
    "name queue job_class stdin stdout stderr append array time spot priority held "
    "cancel_if_hopeless attempts preempt_mode warn checkpoint checkpoint_signal image mail_to"
).split()


class Work(Value):
    """What is to run: a command, or a script with its arguments."""

    command: tuple[str, ...] = ()
    script: str | None = None
    name: str = ""


def wish(options: Mapping[str, Any], work: Work, around: Surroundings) -> SubmitDocument:
    """The whole document. What is not said is the server's to choose."""
    same = {name: options[name] for name in PASSED_ON}
    same["name"] = options["name"] or work.name
    return SubmitDocument(
        **same,
        groups=(_group(options),),
        command=work.command,
        script=work.script,
        env=environment(options["env"], options["env_only"], around.environ),
        workdir=os.path.normpath(os.path.join(around.workdir, options["workdir"] or ".")),
        every_task=not options["first_task_only"],
        umask=_umask(),
        restart_cost=options["restart_cost"] or 0,
        begin=zoned(options["begin"], around.now()),
        deadline=zoned(options["deadline"], around.now()),
        after=_words(options["after"]),
        pools=_words(options["pools"]),
        clusters=_words(options["clusters"]),
        labels=pairs(options["labels"], "--label"),
        mail_on=_words(options["mail_on"]),
        preemptible=not options["not_preemptible"],
        requeue=not options["no_requeue"],
    )


def environment(
    settings: Iterable[str], only: str | None, around: Mapping[str, str]
) -> dict[str, str]:
    """The variables that the job finds: those of this shell, or only some, and those that are set.

    What cannot be written as text is left out.
    """
    names = around if only is None else _words((only,))
    found = {name: around[name] for name in names if name in around and name not in SECRETS}
    for setting in settings:
        name, given, value = setting.partition("=")
        if not name:
            raise click.UsageError(f"--env {setting!r}: write NAME=VALUE, or NAME alone.")
        if given or name in around:
            found[name] = value if given else around[name]
    return {name: value for name, value in found.items() if _is_text(name + value)}


def pairs(texts: Iterable[str], option: str) -> dict[str, str]:
    """`NAME=VALUE` texts as a mapping; what comes last wins."""
    found: dict[str, str] = {}
    for text in texts:
        name, given, value = text.partition("=")
        if not name or not given:
            raise click.UsageError(f"{option} {text!r}: write NAME=VALUE.")
        found[name] = value
    return found


def _group(options: Mapping[str, Any]) -> GroupDocument:
    # A slice means one GPU unless more are asked for.
    sliced = options["slice"] is not None
    return GroupDocument(
        tasks=options["tasks"],
        min_tasks=options["min_tasks"],
        cpus=options["cpus"],
        memory=options["memory"] or 0,
        gpus=options["gpus"] or int(sliced),
        gpu_models=_words(options["gpu_models"]),
        gpu_memory=options["gpu_memory"] or 0,
        slice=options["slice"],
        together=options["together"],
        require=pairs(options["require"], "--require"),
        nodes=_words(options["nodes"]),
        not_nodes=_words(options["not_nodes"]),
        tolerate=_words(options["tolerate"]),
        exclusive=options["exclusive"],
        max_per_node=options["max_per_node"],
    )


def _words(texts: Iterable[str]) -> tuple[str, ...]:
    """Given several times, or separated by commas."""
    return tuple(word.strip() for text in texts for word in text.split(",") if word.strip())


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _umask() -> int:
    """It can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
