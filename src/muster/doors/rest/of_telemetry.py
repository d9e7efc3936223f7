"""Routes about what is measured: metrics for Prometheus, and columns for a page."""

from muster.api.telemetry import DevicesNowDocument, JobSeriesDocument
from muster.controller.queries.telemetry import PageWanted
from muster.doors.request.bad import BadRequestError
from muster.doors.rest.operation import Asked, Content, Operation, Parameter
from muster.doors.rest.show_telemetry import devices_document, series_document
from muster.model.value import MINUTE, Duration, QueuePath
from muster.telemetry.exposition import CLASSIC_MEDIA, OPEN_MEDIA

SIGNALS = ("busy", "sm", "tensor", "dram", "memory", "power", "heat", "cpu", "io", "host_memory")


async def _metrics(asked: Asked) -> Content:
    queue = asked.text("queue")
    wanted = PageWanted(
        queue=None if queue is None else QueuePath(queue),
        is_openmetrics=_accepts(asked, b"accept", "application/openmetrics-text"),
        is_gzip=_accepts(asked, b"accept-encoding", "gzip"),
        is_open=asked.is_open,
    )
    body = await asked.read(asked.queries.telemetry.page, asked.caller, wanted)
    return Content(
        body=body,
        media=OPEN_MEDIA if wanted.is_openmetrics else CLASSIC_MEDIA,
        encoding="gzip" if wanted.is_gzip else None,
    )


def _accepts(asked: Asked, header: bytes, wanted: str) -> bool:
    """Is it named in such a header, and not with a weight of zero?"""
    for each in asked.headers.get(header, b"").decode("latin-1").lower().split(","):
        name, *options = (part.strip() for part in each.split(";"))
        if name == wanted:
            return not any(option in {"q=0", "q=0.0", "q=0.00", "q=0.000"} for option in options)
    return False


async def _devices(asked: Asked) -> DevicesNowDocument:
    def look() -> DevicesNowDocument:
        return devices_document(asked.queries.telemetry.devices(asked.caller))

    return await asked.read(look)


async def _series(asked: Asked) -> JobSeriesDocument:
    signals = asked.texts("signals") or SIGNALS
    for each in signals:
        if each not in SIGNALS:
            text = f"there is no signal `{each}`; there are {', '.join(SIGNALS)}"
            raise BadRequestError("signals", text)
    step = Duration(1_000 * asked.number("step", MINUTE // 1_000, least=5, most=3_600))
    since, job = asked.instant("since"), asked.job

    def look() -> JobSeriesDocument:
        found = asked.queries.telemetry.series(asked.caller, job, since)
        return series_document(found, signals, step)

    return await asked.read(look)


OPERATIONS = (
    Operation(
        method="GET",
        path="/metrics",
        summary="Read metrics as Prometheus does",
        costly=True,
        answer=_metrics,
        media="text/plain",
        open_here=True,
        parameters=(
            Parameter(name="queue", text="only what is about this queue and those below it"),
        ),
    ),
    Operation(
        method="GET",
        path="/v1/devices/now",
        summary="See every GPU as it is, in columns",
        costly=True,
        answer=_devices,
        gives=DevicesNowDocument,
    ),
    Operation(
        method="GET",
        path="/v1/jobs/{id:int}/series",
        summary="See what a job used in the last hour, step by step",
        costly=True,
        answer=_series,
        gives=JobSeriesDocument,
        parameters=(
            Parameter(name="signals", text=f"some of {', '.join(SIGNALS)}", repeated=True),
            Parameter(name="step", text="so many seconds for each value; 60", kind="integer"),
            Parameter(name="since", text="an instant, at which the series begin"),
        ),
    ),
)
