"""Whether a real Slurm is installed here, and how it comes onto a Debian machine."""

import os
import subprocess
import sys
from pathlib import Path

PROGRAMS = (
    "munged",
    "mariadbd",
    "mariadb",
    "mariadb-install-db",
    "slurmctld",
    "slurmd",
    "slurmdbd",
    "slurmrestd",
    "sbatch",
    "squeue",
)

PACKAGES = (
    "slurmctld",
    "slurmd",
    "slurmdbd",
    "slurm-client",
    "slurmrestd",
    "munge",
    "mariadb-server",
    "slurm-wlm-basic-plugins",
    # slurmdbd cannot reach its database without this one, and does not depend on it.
    "slurm-wlm-mysql-plugin",
    # So that slurmrestd can believe tokens.
    "slurm-wlm-jwt-plugin",
)

PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


TOKENS = "*/slurm-wlm/auth_jwt.so"
"""What believes tokens, below /usr/lib."""


class NoSlurmError(Exception):
    """There is no Slurm to measure against, and the text says what to do."""


def missing(path: str = PATH) -> tuple[str, ...]:
    """The programs that a laboratory needs and that are nowhere on the path."""
    folders = [Path(each) for each in path.split(os.pathsep) if each]
    return tuple(
        name for name in PROGRAMS if not any((folder / name).is_file() for folder in folders)
    )


def lacks_tokens() -> bool:
    """Is the plugin away by which slurmrestd believes tokens?"""
    return not any(Path("/usr/lib").glob(TOKENS))


def ensure_installed() -> None:
    """Install what is missing where that is possible, saying so; NoSlurmError where it is not."""
    lacking = (*missing(), *(["slurm-wlm-jwt-plugin"] if lacks_tokens() else []))
    if not lacking:
        return
    if os.geteuid() != 0 or not Path("/etc/debian_version").exists():
        raise NoSlurmError(
            f"{', '.join(lacking)} not found. On Debian, as root: "
            f"apt-get install --no-install-recommends {' '.join(PACKAGES)}"
        )
    print(f"missing: {', '.join(lacking)}; installing {' '.join(PACKAGES)}", flush=True)
    # RUNLEVEL=1 keeps the packages from starting daemons of their own.
    quiet = {"DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1", "PATH": PATH}
    for command in (
        ["apt-get", "update", "-qq"],
        ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *PACKAGES],
    ):
        done = subprocess.run(  # noqa: S603 -- the two commands above
            command, env=os.environ | quiet, capture_output=True, check=False
        )
        if done.returncode != 0:
            raise NoSlurmError(f"{' '.join(command)}: {done.stderr.decode(errors='replace')}")


def main() -> None:
    """Install what is missing, or say why there will be no Slurm."""
    try:
        ensure_installed()
    except NoSlurmError as error:
        print(f"no real Slurm here: {error}", file=sys.stderr)


if __name__ == "__main__":
    main()
