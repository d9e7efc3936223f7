"""Reads what pods write of themselves under Slurm: the files are the user's, we may be root."""

import os

from muster.backends.attempts import Look
from muster.backends.base import OutputQuery
from muster.backends.local.attempt.output import opened_own
from muster.backends.local.isolation.users import LaunchError, local_user
from muster.backends.notes import Note
from muster.backends.slurm.listing import Key
from muster.backends.slurm.pods import (
    FOLDER,
    Tale,
    end_of,
    folder_of,
    log_lines,
    status_of,
    tale_of,
)
from muster.model.errors import UnknownError
from muster.model.event import PodSeen
from muster.model.pod import PodStatus
from muster.model.running import Output
from muster.model.value import Instant, UserName

_MOST_LINES = 1 << 20
"""More than a container that fails all the time writes in two months."""
_MOST_LOG = 16 << 20
"""So much of the log of one run is shown."""


class PodFiles:
    """What is known of the pods of one attempt, and was told of them."""

    def __init__(self, site: str) -> None:
        self._site = site
        self._told: dict[int, PodStatus] = {}

    def end_of_leader(self, note: Note, seen: Look) -> Look:
        """The same look, with the end of the gang's leader where it has one."""
        return seen if note.leader is None else end_of(self._tale(note, note.leader), seen)

    def is_led_out(self, note: Note) -> bool:
        """Is its leader done, so that the others end too?"""
        return note.leader is not None and self._tale(note, note.leader).over

    def news(self, note: Note, seen: Look, now: Instant) -> tuple[PodSeen, ...]:
        """Of each pod that is not as it was told."""
        found: list[PodSeen] = []
        for task, pod in enumerate(note.pods):
            status = status_of(pod, self._tale(note, task), seen, now)
            if status is None or self._told.get(task) == status:
                continue
            self._told[task] = status
            found.append(
                PodSeen(at=now, job=note.job, attempt=note.attempt, status=status, task=task)
            )
        return tuple(found)

    def _tale(self, note: Note, task: int) -> Tale:
        key = Key(site=self._site, job=note.job, attempt=note.attempt)
        try:
            return tale_of(_read(note.user, _name(key, task, "runs"), _MOST_LINES))
        except UnknownError:
            return Tale()


def pod_output(site: str, query: OutputQuery) -> Output:
    """A part of what a run of a pod's container wrote; UnknownError when there is nothing."""
    user, task = query.job.spec.user, query.task
    key = Key(site=site, job=query.job.id, attempt=query.attempt)
    tale = tale_of(_read(user, _name(key, task, "runs"), _MOST_LINES))
    run = len(tale.runs) - 1 - query.previous
    if run < 0:
        raise UnknownError(f"pod {task} of job {key.job} has written nothing")
    raw = _read(user, _name(key, task, f"{run}.log"), _MOST_LOG)
    is_whole = query.previous or not tale.goes_on
    lines = log_lines(raw, Instant(tale.runs[run].began_at), is_whole=is_whole)
    offset = max(0, len(lines) + query.offset) if query.offset < 0 else query.offset
    content = lines[offset : offset + query.limit]
    return Output(content=content, next=offset + len(content))


def _name(key: Key, task: int, what: str) -> str:
    return f"{FOLDER}/{folder_of(key)}/{task}.{what}"


def _read(user: UserName, name: str, most: int) -> bytes:
    try:
        whose = local_user(user)
    except LaunchError as error:
        raise UnknownError(f"{name} cannot be read: {error}") from None
    opened = opened_own(os.path.join(whose.home, name), whose)
    with os.fdopen(opened, "rb") as file:
        return file.read(most)
