"""`muster update`: change what jobs ask for."""

import click

from muster.api.jobs import UpdateDocument
from muster.api.requests import JobFile
from muster.client.sending import zoned
from muster.doors.cli.jobs.named import job_numbers, label_of
from muster.doors.cli.options import example, jobs_argument
from muster.doors.cli.screen.printing import say
from muster.doors.cli.submit.options import COMPLETE
from muster.doors.cli.surroundings import Call
from muster.doors.request.options import RequestOption, given_in
from muster.doors.request.table import fields_of


@click.command(
    epilog=example(
        "muster update 17 --time 4h",
        "muster update 17 --gpus 2 --memory 32G",
        "muster update 17 --queue acme/nlp --priority 5",
    ),
    params=[
        RequestOption(fields_of(JobFile)[name], COMPLETE.get(name))
        for name in UpdateDocument.__struct_fields__
        if name in fields_of(JobFile)
    ],
)
@jobs_argument
@click.pass_context
def update(context: click.Context, jobs: tuple[str, ...], **_: object) -> None:
    """Change what waiting jobs ask for.

    Of a running job, only its name, time limit, labels and mail change. Labels, pools and occasions
    for mail replace all that the job had.
    """
    call: Call = context.obj
    given = given_in(context)
    if not jobs or not given:
        raise click.UsageError("Name a job and at least one thing to change.")
    zone = call.around.now().tzinfo
    for name in given.keys() & {"begin", "deadline"}:
        given[name] = zoned(given[name], zone)
    change = UpdateDocument(**given)
    for number in job_numbers(call.client, jobs):
        say(f"job {label_of(call.client.update(number, change))} updated")
