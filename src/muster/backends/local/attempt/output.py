"""Reading what a job wrote, safely: the server may be root, the file is the user's."""

import os
import pwd
import stat

from muster.backends.base import Output, OutputAsked
from muster.backends.local.attempt.translate import output_name
from muster.backends.local.isolation.users import LaunchError, local_user, start_folder
from muster.model.errors import UnknownError


def read_output(asked: OutputAsked) -> Output:
    """The part that was asked for; UnknownError when there is nothing that may be read."""
    where = _where(asked)
    opened = _opened(where, _uid(asked.job.spec.user))
    try:
        size = os.fstat(opened).st_size
        offset = max(0, size + asked.offset) if asked.offset < 0 else asked.offset
        content = os.pread(opened, asked.limit, offset)
    finally:
        os.close(opened)
    return Output(content=content, next=offset + len(content), where=where)


def _where(asked: OutputAsked) -> str:
    try:
        user = local_user(asked.job.spec.user)
    except LaunchError as error:
        raise UnknownError(f"job {asked.job.id} has written nothing: {error}") from None
    return os.path.join(start_folder(asked.launch.workdir, user), output_name(asked))


def _uid(user: str) -> int:
    return pwd.getpwnam(user).pw_uid


def _opened(where: str, uid: int) -> int:
    try:
        # Neither a link to somebody else's file nor a pipe may lead or hold us anywhere.
        opened = os.open(where, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError as error:
        raise UnknownError(f"cannot read {where}: {error.strerror}") from None
    found = os.fstat(opened)
    if stat.S_ISREG(found.st_mode) and found.st_uid == uid:
        return opened
    os.close(opened)
    raise UnknownError(f"{where} is not a file of the job's user, so it is not shown")
