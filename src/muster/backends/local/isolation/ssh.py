"""Who logs in to this node lands in their own job here, or is refused.

pam_exec runs `python -m muster.backends.local.isolation.ssh HOME` as root for every login, as part
of the account stack: the process that called it is the one of sshd that the session comes from, and
it is moved into the control groups of the user's newest job. So the session has that job's GPUs,
memory and processes, and ends with it. See docs/howto/ssh.md.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from muster.backends.local.attempt import processes, spool
from muster.backends.local.isolation import cgroup

ALLOWED, REFUSED = 0, 1


def main(argv: list[str], environ: Mapping[str, str]) -> int:
    """0 lets the user in; everything else is a refusal, and its reason is shown to the user."""
    if len(argv) < 2:
        sys.stderr.write("usage: python -m muster.backends.local.isolation.ssh HOME [USER...]\n")
        return REFUSED
    user, always = environ.get("PAM_USER", ""), {"root", *argv[2:]}
    if user in always:
        return ALLOWED
    try:
        is_adopted = adopt(Path(argv[1]), user, os.getppid())
    except OSError as error:
        sys.stdout.write(f"Muster cannot move you into your job here: {error.strerror}\n")
        return REFUSED
    if not is_adopted:
        sys.stdout.write("You have no job that runs on this node; start one first.\n")
        return REFUSED
    return ALLOWED


def adopt(home: Path, user: str, pid: int) -> bool:
    """Move a process into the newest attempt of this user; False where none runs."""
    folder = home / "spool"
    roots = cgroup.found_roots(f"muster-{(folder / spool.TOKEN).read_text(encoding='ascii')[:12]}")
    for key in _running(folder, user):
        groups = cgroup.existing(roots, key)
        if groups:
            cgroup.move(pid, groups)
            return True
    return False


def _running(folder: Path, user: str) -> Iterator[str]:
    """The attempts of this user that run, the newest first."""
    keys = {parts: name for name in os.listdir(folder) if (parts := spool.parts_of(name))}
    for _, key in sorted(keys.items(), reverse=True):
        launch: spool.LaunchFile | None = spool.read(folder / key / spool.LAUNCH)
        begun = spool.begun(folder / key)
        if launch is None or begun is None or launch["user"] != user:
            continue
        is_alive = processes.born(begun["pid"]) == begun["born"]
        if is_alive and not (folder / key / spool.END).exists():
            yield key


if __name__ == "__main__":
    sys.exit(main(sys.argv, os.environ))
