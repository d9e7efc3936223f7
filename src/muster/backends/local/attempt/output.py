"""Reading what a job wrote, safely: the server may be root, the file is the user's."""

import os
import stat

from muster.backends.base import OutputQuery
from muster.backends.local.isolation.users import (
    LaunchError,
    LocalUser,
    local_user,
    opening_as,
    start_folder,
)
from muster.launch.patterns import output_name
from muster.model.errors import UnknownError
from muster.model.running import Output


def read_output(query: OutputQuery) -> Output:
    """The part that was asked for; UnknownError when there is nothing that may be read."""
    try:
        user = local_user(query.job.spec.user)
    except LaunchError as error:
        raise UnknownError(f"job {query.job.id} has written nothing: {error}") from None
    node = query.nodes[0] if query.nodes else ""
    name = output_name(query.job, query.launch, node, query.task, stderr=query.stderr)
    where = os.path.join(start_folder(query.launch.workdir, user), name)
    opened = opened_own(where, user)
    try:
        size = os.fstat(opened).st_size
        offset = max(0, size + query.offset) if query.offset < 0 else query.offset
        content = os.pread(opened, query.limit, offset)
    finally:
        os.close(opened)
    return Output(content=content, next=offset + len(content), where=where)


def opened_own(where: str, user: LocalUser) -> int:
    """A file of the user's, opened to be read; UnknownError where there is none.

    One answer for all that cannot be shown: another would say what is there.
    """
    with opening_as(user):
        try:
            # A link could lead to another user's file, and opening a pipe would block.
            opened = os.open(where, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY)
        except (OSError, ValueError):
            opened = None
    if opened is not None:
        found = os.fstat(opened)
        if stat.S_ISREG(found.st_mode) and found.st_uid == user.uid:
            return opened
        os.close(opened)
    raise UnknownError(f"there is no file at {where} that is {user.name}'s own and can be shown")
