import json
import logging

from muster.app.log import JsonLine, LogToSinks, TextLine
from muster.telemetry.sinks.lines import Line


def test_a_line_of_the_log_is_one_json_object() -> None:
    try:
        raise ValueError("two\nlines")
    except ValueError as error:
        failed = (type(error), error, error.__traceback__)
    record = logging.LogRecord("muster.x", logging.ERROR, "f", 1, 'said "%s"\n', ("ü",), failed)
    record.created, record.msecs = 1_796_083_200.25, 250.0

    text = JsonLine().format(record)

    line = json.loads(text)
    assert "\n" not in text
    assert (line["ts"], line["level"], line["logger"], line["msg"]) == (
        *("2026-12-01T00:00:00.250Z", "error", "muster.x", 'said "ü"\n'),
    )
    assert line["error"].endswith("ValueError: two\nlines")


def idle() -> logging.LogRecord:
    fields = {"job": "17", "minutes": 30, "why": ("a", 1), "msg_id": None}
    return logging.getLogger("muster.x").makeRecord(
        "muster.x", logging.INFO, "f", 1, "job_idle", (), None, extra=fields
    )


def test_what_is_said_beside_the_message_is_in_the_line() -> None:
    line = json.loads(JsonLine().format(idle()))

    assert set(line) == {"ts", "level", "logger", "msg", "job", "minutes", "why", "msg_id"}
    assert (line["msg"], line["job"], line["minutes"], line["why"]) == (
        *("job_idle", "17", 30, "('a', 1)"),
    )
    assert TextLine().format(idle()).endswith("job_idle job=17 minutes=30 why=('a', 1) msg_id=None")


def test_what_is_said_beside_the_message_goes_to_sinks() -> None:
    told: list[Line] = []

    LogToSinks(told.append).emit(idle())

    assert dict(told[0].fields).items() >= {"job": "17", "minutes": "30"}.items()
