"""`muster wait`: until jobs are over."""

import click

from muster.doors.cli.jobs.endings import end_text, exit_code
from muster.doors.cli.jobs.named import job_numbers
from muster.doors.cli.options import example, jobs_argument
from muster.doors.cli.screen.printing import note
from muster.doors.cli.surroundings import Call


@click.command(epilog=example("muster wait 17", "muster wait 12_* && ./collect.sh"))
@jobs_argument
@click.option("-q", "--quiet", is_flag=True, help="Say nothing; the exit code tells.")
@click.pass_obj
def wait(call: Call, jobs: tuple[str, ...], *, quiet: bool) -> int:
    """Wait until these jobs are over; exit with the largest of their exit codes."""
    if not jobs:
        raise click.UsageError("Name at least one job.")
    code = 0
    for number in job_numbers(call.client, jobs):
        ended = call.client.wait(number)
        code = max(code, exit_code(ended))
        if not quiet:
            note(end_text(ended))
    return code
