"""What can go wrong between a client and the server.

MusterError
└── ClientError
    ├── ApiError           the server said no; `status` and `problem` say why
    ├── UnreachableError   no server answers: start Muster, or correct the address
    └── LostAnswerError    the answer was lost: look whether it was done before doing it again
"""

from muster.api.site import Problem
from muster.model.errors import MusterError


class ClientError(MusterError):
    """Something is wrong between this program and the server."""


class ApiError(ClientError):
    """The server refused; the text of the problem says what to do."""

    def __init__(self, status: int, problem: Problem) -> None:
        super().__init__(problem.text)
        self.status = status
        self.problem = problem


class UnreachableError(ClientError):
    """No server answers at the address."""


class LostAnswerError(ClientError):
    """The connection broke after a request was sent and before its answer came."""
