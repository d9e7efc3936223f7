"""Who listens gets what happens, until they are let go."""

import asyncio

from muster.doors.rest.hub import Listener


async def cancelled_as_something_comes() -> bool:
    """Is who waits for events let go, when an event comes at the same moment?"""
    listener = Listener(asyncio.Event())
    waiting = asyncio.create_task(listener.take(patience_s=60))
    for _ in range(3):
        await asyncio.sleep(0)
    listener.tell(())
    waiting.cancel()
    await asyncio.wait({waiting})
    return waiting.cancelled()


def test_who_is_let_go_as_something_comes_is_let_go() -> None:
    assert asyncio.run(cancelled_as_something_comes())
