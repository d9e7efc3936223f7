"""The program that sends mail: called as Slurm calls it, or as a sendmail."""

import os
import signal
import subprocess
import tempfile
from contextlib import suppress
from email.message import EmailMessage
from pathlib import Path
from typing import IO

from muster.controller.mail.sender import Letter
from muster.model.errors import MusterError
from muster.model.mail import is_address

PATIENCE_S = 30.0
"""Other mails wait for this one: a program that takes longer is killed."""

PASSED_ON = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ")
"""All that the program gets of our own environment, in which there may be secrets."""

MOST_OUTPUT = 1_000


class NotSentError(MusterError):
    """The administrator: the mail program failed, or did not end; the mail is not sent again."""


class MailProgram:
    """Sends a letter and waits for it.

    A program whose name is `sendmail` gets the whole message; every other one is given the subject
    after `-s`, the address, and the text of the message.
    """

    def __init__(self, program: str, patience_s: float = PATIENCE_S) -> None:
        self._program = program
        self._patience_s = patience_s
        self._is_sendmail = Path(program).name == "sendmail"

    def send(self, letter: Letter) -> None:
        """NotSentError, OSError: it was not sent."""
        if not is_address(letter.to):
            raise NotSentError(f"{letter.to!r} is no address")
        with tempfile.TemporaryFile() as message, tempfile.TemporaryFile() as output:
            message.write(_message(letter) if self._is_sendmail else letter.body.encode())
            message.seek(0)
            self._run(letter, message, output)

    def _run(self, letter: Letter, message: IO[bytes], output: IO[bytes]) -> None:
        own = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        with subprocess.Popen(  # noqa: S603 the administrator named it
            [self._program, *self._words(letter)],
            stdin=message,
            stdout=output,
            stderr=output,
            env={**own, **letter.env},
            cwd="/",
            start_new_session=True,
        ) as process:
            try:
                code = process.wait(self._patience_s)
            except subprocess.TimeoutExpired:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                text = f"{self._program} did not end within {self._patience_s:g} s and was killed"
                raise NotSentError(text) from None
        if code:
            raise NotSentError(f"{self._program} ended with {code}: {_told(output)}")

    def _words(self, letter: Letter) -> list[str]:
        if self._is_sendmail:
            return ["-i", "--", *letter.to.split(",")]
        return ["-s", letter.subject, letter.to]


def _message(letter: Letter) -> bytes:
    message = EmailMessage()
    message["To"] = letter.to
    message["Subject"] = letter.subject
    message.set_content(letter.body)
    return message.as_bytes()


def _told(output: IO[bytes]) -> str:
    output.seek(0)
    return output.read(MOST_OUTPUT).decode(errors="replace").strip() or "it said nothing"
