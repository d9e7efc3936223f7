"""Sends one message to one receiver, which may take a while, or fail."""

import json
import os
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Protocol

import urllib3
from urllib3.util import Timeout

from muster.controller.mail.program import PASSED_ON
from muster.model.alerting import Receiver, ReceiverKind
from muster.model.errors import MusterError
from muster.model.value import Value

PATIENCE: Final = Timeout(connect=5.0, read=10.0)
COMMAND_PATIENCE_S: Final = 30.0
LONGEST_URL: Final = 4_000


class NotDeliveredError(MusterError):
    """The administrator: the receiver refused, or did not answer. It never names its URL."""

    def __init__(self, text: str, *, again: bool = True) -> None:
        super().__init__(text)
        self.again = again


class Message(Value):
    """What a receiver is sent. mail_to: for mail alone, with its subject and text."""

    receiver: str
    body: Any = None
    mail_to: str = ""
    subject: str = ""
    text: str = ""


class MailTo(Protocol):
    """Sends a mail: to whom, its subject, and its text."""

    def __call__(self, to: str, subject: str, text: str, /) -> None: ...


Deliver = Callable[[Receiver, Message], None]


class Delivery:
    """All kinds of receivers. mail: None where there is no program for it."""

    def __init__(self, mail: MailTo | None) -> None:
        self._mail = mail
        self._pool = urllib3.PoolManager(timeout=PATIENCE, retries=False, maxsize=4)

    def __call__(self, receiver: Receiver, message: Message) -> None:
        """NotDeliveredError: it was not."""
        match receiver.kind:
            case ReceiverKind.MAIL:
                self._send_mail(message)
            case ReceiverKind.COMMAND:
                _run(receiver.command, message.body)
            case ReceiverKind.ALERTMANAGER:
                self._post(f"{url_of(receiver).rstrip('/')}/api/v2/alerts", message.body)
            case ReceiverKind.WEBHOOK | ReceiverKind.SLACK | ReceiverKind.TEAMS:
                self._post(url_of(receiver), message.body)

    def _send_mail(self, message: Message) -> None:
        if self._mail is None:
            raise NotDeliveredError("there is no program that sends mail", again=False)
        try:
            self._mail(message.mail_to, message.subject, message.text)
        except (MusterError, OSError) as error:
            raise NotDeliveredError(str(error)) from error

    def _post(self, url: str, body: object) -> None:
        try:
            answer = self._pool.request(
                "POST",
                url,
                body=json.dumps(body).encode(),
                headers={"Content-Type": "application/json", "User-Agent": "muster"},
                redirect=False,
                preload_content=False,
            )
            answer.drain_conn()
            answer.release_conn()
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            # Its text would name the URL, which is a secret.
            raise NotDeliveredError(f"it does not answer ({type(error).__name__})") from None
        if not 200 <= answer.status < 300:
            is_busy = answer.status == 429 or answer.status >= 500
            raise NotDeliveredError(f"it answered with status {answer.status}", again=is_busy)


def url_of(receiver: Receiver) -> str:
    """The one line of its file. NotDeliveredError: the file cannot be read, or has no URL."""
    try:
        text = Path(receiver.url_file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise NotDeliveredError(f"{receiver.url_file} cannot be read: {why}") from None
    if not text.startswith(("http://", "https://")) or len(text) > LONGEST_URL or "\n" in text:
        text = f"{receiver.url_file} must be one line that begins with http:// or https://"
        raise NotDeliveredError(text)
    return text


def _run(command: tuple[str, ...], body: object) -> None:
    """The program gets the JSON on its input, and little of our environment."""
    environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    try:
        process = subprocess.Popen(  # noqa: S603 the administrator named it
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=environment,
            cwd="/",
            start_new_session=True,
        )
    except OSError as error:
        raise NotDeliveredError(f"{command[0]} cannot be run: {error.strerror}") from None
    with process:
        try:
            _, said = process.communicate(json.dumps(body).encode(), COMMAND_PATIENCE_S)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            text = f"{command[0]} did not end within {COMMAND_PATIENCE_S:g} s and was killed"
            raise NotDeliveredError(text) from None
    if process.returncode:
        told = said[:1_000].decode(errors="replace").strip() or "it said nothing"
        raise NotDeliveredError(f"{command[0]} ended with {process.returncode}: {told}")
