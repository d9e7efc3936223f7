"""A thread that works while this process leads."""

import logging
from collections.abc import Callable
from threading import Condition, Thread

log = logging.getLogger("muster.kubernetes")

REST_AFTER_BUG_S = 1.0


class LeaderThread:
    """Calls `work` whenever this process begins to lead; `work` returns when `goes_on` says so.

    news: held while something is left for the thread, and told about it.
    """

    def __init__(self, name: str, work: Callable[[], None]) -> None:
        self.news = Condition()
        self._work = work
        self._leads = False
        self._is_closing = False
        self._thread = Thread(target=self._run, name=name, daemon=True)

    def begin(self) -> None:
        """This process leads from now on."""
        with self.news:
            if not self._thread.is_alive():
                self._thread.start()
            self._leads = True
            self.news.notify()

    def rest(self) -> None:
        """Another process leads."""
        with self.news:
            self._leads = False
            self.news.notify()

    def close(self) -> None:
        """Finish what is under way, and stop."""
        with self.news:
            self._is_closing = True
            self.news.notify()
        if self._thread.is_alive():
            self._thread.join()

    def goes_on(self, has_news: Callable[[], object], most_s: float) -> bool:
        """Wait for news, but not for longer; False: stop working."""
        with self.news:
            self.news.wait_for(lambda: has_news() or not self._works, most_s)
            return self._works

    @property
    def _works(self) -> bool:
        return self._leads and not self._is_closing

    def _run(self) -> None:
        while self._await_lead():
            try:
                self._work()
            except Exception:
                # Our bug. It begins again with what there is, instead of never doing anything.
                log.exception("%s could not go on", self._thread.name)
                self.goes_on(bool, REST_AFTER_BUG_S)

    def _await_lead(self) -> bool:
        with self.news:
            self.news.wait_for(lambda: self._leads or self._is_closing)
            return not self._is_closing
