"""A store that is closed hears nothing any more, whatever becomes of its session meanwhile."""

import asyncio

import pytest

from contracts.stores.places import PostgresPlace
from muster.stores.pg_sessions import Ear, Server, Session

PATIENCE_S = 5.0


class WatchedServer(Server):
    """A server whose last session can be ended from outside."""

    last: Session | None = None

    async def session(self, *, patience_s: float = PATIENCE_S) -> Session:
        self.last = await super().session(patience_s=patience_s)
        return self.last


async def closed(ear: Ear, server: WatchedServer, turns: int) -> bool:
    """Is it closed, so many turns of the loop after its session ended?"""
    await ear.open()
    assert server.last is not None
    server.last.terminate()
    for _ in range(turns):
        await asyncio.sleep(0)
    closing = asyncio.create_task(ear.close())
    done, _ = await asyncio.wait({closing}, timeout=PATIENCE_S)
    closing.cancel()
    return bool(done)


@pytest.mark.parametrize("turns", range(8))
def test_an_ear_closes_even_as_its_session_ends(pg: PostgresPlace, turns: int) -> None:
    server = WatchedServer(pg.url)
    try:
        assert server.run(closed(Ear(server, lambda: None), server, turns))
    finally:
        server.close()
