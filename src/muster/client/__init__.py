"""The typed Python client of the REST API: `Client.local().submit(...)`."""

from muster.client.address import Address
from muster.client.calls import Client
from muster.client.errors import ApiError, ClientError, LostAnswerError, UnreachableError

__all__ = [
    "Address",
    "ApiError",
    "Client",
    "ClientError",
    "LostAnswerError",
    "UnreachableError",
]
