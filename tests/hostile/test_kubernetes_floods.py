"""What one client of the Kubernetes API can do to others: watches, and slow questions."""

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from hostile.teams import ANN, BEN, Kube, kube
from muster.controller.messages import Caller
from muster.doors.kubernetes.serve.access import Identity
from muster.doors.kubernetes.serve.app import STREAMS_OF_ONE_USER
from muster.doors.kubernetes.serve.call import Query, Target
from muster.doors.kubernetes.serve.forwarding import TUNNELLED
from muster.doors.kubernetes.serve.pod_visits import PodVisits, Visitor
from muster.model.running import VisitStream
from muster.model.site import Role
from muster.model.value import JobId, UserName

WATCH = "/api/v1/namespaces/team-a/configmaps"
FUTURE = "resourceVersion=999999999999999"
"""A version that never comes is waited for, three seconds long."""


@pytest.fixture
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kube]:
    with kube(tmp_path_factory.mktemp("home")) as made:
        yield made


class Client:
    """One request, as the server sees it."""

    def __init__(self, api: Kube, token: str, path: str, query: str = "") -> None:
        self._api = api
        self.codes: list[int] = []
        self.body = b""
        self.has_read = False
        self._gone = asyncio.Event()
        self.scope: dict[str, Any] = {
            "type": "http",
            "method": "GET",
            "path": path,
            "query_string": query.encode(),
            "headers": [(b"authorization", f"Bearer {token}".encode())],
        }

    async def run(self) -> None:
        await self._api.app(self.scope, self._receive, self._send)

    def leave(self) -> None:
        self._gone.set()

    async def _receive(self) -> dict[str, Any]:
        if not self.has_read:
            self.has_read = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.codes.append(message["status"])
        else:
            self.body += message["body"]


async def until(is_so: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not is_so():
            await asyncio.sleep(0.01)


def test_what_comes_with_a_bad_token_is_not_read(api: Kube) -> None:
    client = Client(api, "no-such-token", WATCH)
    asyncio.run(client.run())

    assert client.codes == [401]
    assert not client.has_read


def test_slow_questions_of_one_user_leave_room_for_others(api: Kube) -> None:
    async def flood() -> None:
        slow = [Client(api, api.token(ANN), WATCH, FUTURE) for _ in range(100)]
        tasks = [asyncio.create_task(each.run()) for each in slow]
        await asyncio.sleep(0.1)
        other = Client(api, api.token(BEN), "/api/v1/namespaces/team-b/configmaps")
        await other.run()
        assert other.codes == [200]
        # Three seconds for each dozen: the others have not been answered yet.
        assert sum(not each.codes for each in slow) > 50
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(flood())


def test_one_user_does_not_have_all_watches(api: Kube) -> None:
    async def flood() -> None:
        most = STREAMS_OF_ONE_USER
        held = [Client(api, api.token(ANN), WATCH, "watch=true") for _ in range(most)]
        tasks = [asyncio.create_task(each.run()) for each in held]
        await until(lambda: all(each.codes == [200] for each in held))
        more = Client(api, api.token(ANN), WATCH, "watch=true")
        await more.run()
        other = Client(api, api.token(BEN), WATCH.replace("-a", "-b"), "watch=true")
        task = asyncio.create_task(other.run())
        await until(lambda: other.codes)

        assert more.codes == [429]
        assert other.codes == [200]
        for each in (*held, other):
            each.leave()
        await asyncio.gather(*tasks, task)

    asyncio.run(flood())


class OpenPods(PodVisits):
    """Every pod runs, and is its visitor's."""

    def visitor(self, target: Target, query: Query, identity: Identity) -> Visitor:
        del query
        return Visitor(identity=identity, pod=target.name, job=JobId(1), task=0, wanted=None)

    def begin(self, visitor: Visitor) -> VisitStream | None:
        assert visitor.wanted is None
        return None


class Forwarder(Client):
    """A request for a WebSocket on which ports are forwarded."""

    def __init__(self, api: Kube, token: str) -> None:
        super().__init__(api, token, "/api/v1/namespaces/team-a/pods/p/portforward")
        self.scope |= {"type": "websocket", "subprotocols": [TUNNELLED]}

    async def _receive(self) -> dict[str, Any]:
        if not self.has_read:
            self.has_read = True
            return {"type": "websocket.connect"}
        await super()._receive()
        return {"type": "websocket.disconnect"}

    async def _send(self, message: Any) -> None:
        if message["type"] == "websocket.accept":
            self.codes.append(101)
        elif message["type"] == "websocket.http.response.start":
            self.codes.append(message["status"])


def test_visits_count_as_watches_do(api: Kube) -> None:
    api.app.api = replace(api.app.api, visits=OpenPods(api.muster.service, api.app.api.view))

    async def flood() -> None:
        most, ann = STREAMS_OF_ONE_USER, api.token(ANN)
        held: list[Client] = [Forwarder(api, ann) for _ in range(most - 1)]
        held.append(Client(api, ann, WATCH, "watch=true"))
        tasks = [asyncio.create_task(each.run()) for each in held]
        await until(lambda: all(each.codes for each in held))
        more = Forwarder(api, ann)
        await more.run()
        held[0].leave()
        await tasks[0]
        again = Forwarder(api, ann)
        task = asyncio.create_task(again.run())
        await until(lambda: again.codes)

        assert [each.codes for each in held] == [[101]] * (most - 1) + [[200]]
        assert (more.codes, again.codes) == ([429], [101])
        for each in (*held, again):
            each.leave()
        await asyncio.gather(*tasks, task)

    asyncio.run(flood())


def test_a_watch_ends_with_the_token_that_opened_it(api: Kube) -> None:
    secret = api.limited_token(ANN, Role.VIEWER, "team-a")
    service = api.muster.service
    token = service.queries.people.caller_of(secret, "test").token
    assert token is not None

    async def watched() -> None:
        client = Client(api, secret, WATCH, "watch=true&sendInitialEvents=false")
        task = asyncio.create_task(client.run())
        await until(lambda: client.codes)
        assert not task.done()
        caller = Caller(user=UserName(ANN), door="test")
        await asyncio.wrap_future(service.revoke(caller, token.id))
        async with asyncio.timeout(60):
            await task

    asyncio.run(watched())


def test_messages_of_refusals_are_objects_of_the_api(api: Kube) -> None:
    client = Client(api, "x", WATCH)
    asyncio.run(client.run())

    assert json.loads(client.body)["kind"] == "Status"


pytestmark = pytest.mark.slow
