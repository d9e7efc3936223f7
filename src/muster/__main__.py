"""The `muster` command. What a command does not need is not loaded."""

import os
import sys

from muster.doors.cli.daemon.port import (
    AddClusterOptions,
    AddKubernetesOptions,
    BackupOptions,
    ClustersOptions,
    Daemon,
    DoctorOptions,
    DoctorReport,
    DownOptions,
    ExtenderOptions,
    RemoveClusterOptions,
    RestoreOptions,
    ServeOptions,
    UpOptions,
)
from muster.doors.cli.main import main as run_command


class Here:
    """The installation on this machine."""

    def up(self, options: UpOptions) -> int:
        from muster.app.daemon import up  # noqa: PLC0415

        return up(options)

    def down(self, options: DownOptions) -> int:
        from muster.app.daemon import down  # noqa: PLC0415

        return down(options)

    def serve(self, options: ServeOptions) -> int:
        from muster.app.daemon import serve  # noqa: PLC0415

        return serve(options)

    def backup(self, options: BackupOptions) -> int:
        from muster.app.backup import backup  # noqa: PLC0415

        return backup(options)

    def restore(self, options: RestoreOptions) -> int:
        from muster.app.backup import restore  # noqa: PLC0415

        return restore(options)

    def add_cluster(self, options: AddClusterOptions) -> int:
        from muster.app.clusters import add  # noqa: PLC0415

        return add(options)

    def add_kubernetes(self, options: AddKubernetesOptions) -> int:
        from muster.app.clusters import add_kubernetes  # noqa: PLC0415

        return add_kubernetes(options)

    def remove_cluster(self, options: RemoveClusterOptions) -> int:
        from muster.app.clusters import remove  # noqa: PLC0415

        return remove(options)

    def clusters(self, options: ClustersOptions) -> int:
        from muster.app.clusters import show  # noqa: PLC0415

        return show(options)

    def extender(self, options: ExtenderOptions) -> int:
        from muster.app.extender import serve  # noqa: PLC0415

        return serve(options)

    def doctor_report(self, options: DoctorOptions) -> DoctorReport:
        from muster.app.doctor import doctor_report  # noqa: PLC0415

        return doctor_report(options)


def main() -> None:
    """Run the command that was typed."""
    here: Daemon = Here()
    code = run_command(sys.argv[1:], daemon=here)
    sys.stdout.flush()
    sys.stderr.flush()
    # Nothing is left to tidy up, and after a long list that would take a tenth of the time.
    os._exit(code)


if __name__ == "__main__":
    main()
