"""Answers of other people's servers: never longer, and never later, than we can stand."""

import time
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlencode

import urllib3

from muster.model.value import Value
from muster.telemetry.readers.dcgm_queries import UnreadableAnswerError

_MIB = 1_048_576
FORM = "application/x-www-form-urlencoded"


class Bound(Value, gc=False):
    """How long an answer may take, to its end, and be."""

    answer_s: float
    most_mib: int


def headers_with(token_file: str) -> dict[str, str]:
    """With the token that lies in a file, if there is to be one."""
    if not token_file:
        return {}
    token = Path(token_file).read_text(encoding="utf-8").strip()
    return {"Authorization": f"Bearer {token}"}


def fetched(
    pool: urllib3.PoolManager,
    url: str,
    *,
    headers: Mapping[str, str],
    bound: Bound,
    form: Mapping[str, str] | None = None,
) -> tuple[int, bytes]:
    """The status and the body. UnreadableAnswerError: it is too long, or comes too slowly."""
    ends_at = time.monotonic() + bound.answer_s
    answer = pool.request(
        "GET" if form is None else "POST",
        url,
        body=None if form is None else urlencode(form),
        headers={**headers, **({} if form is None else {"Content-Type": FORM})},
        timeout=bound.answer_s,
        redirect=False,
        preload_content=False,
    )
    try:
        body = _body(answer, bound, ends_at)
    except BaseException:
        # What is left of the answer must not be taken for that to the next question.
        answer.close()
        raise
    answer.release_conn()
    return answer.status, body


def _body(answer: urllib3.BaseHTTPResponse, bound: Bound, ends_at: float) -> bytes:
    """Piece by piece: one that comes by drops keeps every single read short."""
    body = bytearray()
    while piece := answer.read1(_MIB):
        body += piece
        if len(body) > bound.most_mib * _MIB:
            raise UnreadableAnswerError(f"it answered more than {bound.most_mib} MiB")
        if time.monotonic() > ends_at:
            raise UnreadableAnswerError(f"its answer was not whole after {bound.answer_s:g} s")
    return bytes(body)
