"""When a waiting job starts, in words."""

from collections.abc import Mapping

from muster.api.jobs import JobDocument, StartDocument
from muster.doors.cli.screen.text import counted, jobs_text
from muster.doors.cli.screen.times import Moment


def starts_text(job: JobDocument, moment: Moment) -> str:
    """When it starts; nothing for a job that does not wait, or of which that is not known."""
    if job.start is not None:
        return range_text(job.start, moment)
    return about(job.expected_start, moment) if job.expected_start else ""


def range_text(start: StartDocument, moment: Moment) -> str:
    """`14:10 to 15:30 (8 of 10), about 14:40:12 UTC (in 25m)`."""
    span = moment.between(start.early, start.late)
    return f"{span} ({start.of_ten} of 10), {about(start.middle, moment)}"


def about(text: str, moment: Moment) -> str:
    """`about 14:40:12 UTC (in 25m)`; what has not started yet does not start in the past."""
    return "any moment now" if moment.since(text) > 0 else f"about {moment.relative(text)}"


def why_then(start: StartDocument, labels: Mapping[int, str]) -> str:
    """Who must end first, and who may come before."""
    ended = jobs_text([labels.get(each, str(each)) for each in start.after])
    parts = [f"{ended} must end first"] if ended else []
    if start.passing:
        passing = jobs_text([labels.get(each, str(each)) for each in start.passing])
        parts.append(f"{passing} came later and may start before it")
    if start.newcomers:
        parts.append(f"{counted(start.newcomers, 'job')} not submitted yet may start before it")
    return "; ".join(parts)
