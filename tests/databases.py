"""A real PostgreSQL for tests: started by them, reached by its socket alone, ended by its pid."""

import asyncio
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, cast

import asyncpg  # pyright: ignore[reportMissingTypeStubs] - it has none

ROLE = "muster"
DEADLINE_S = 60.0


class Postgres:
    """One server in a folder of its own. `why_not` says what is missing, if something is."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="muster-pg-"))
        self._owner = _owner()
        self._numbers = count(1)
        self._process: subprocess.Popen[bytes] | None = None
        if self._owner is not None:
            shutil.chown(self._folder, self._owner)

    @staticmethod
    def why_not() -> str | None:
        if _programs() is None:
            return "PostgreSQL's initdb and postgres are not installed (Debian: postgresql)"
        if os.geteuid() == 0 and _owner() is None:
            return "PostgreSQL does not run as root, and there is no user called postgres"
        return None

    def start(self) -> None:
        if not (self._folder / "base").exists():
            self._run("initdb", "-A", "trust", "-U", ROLE, "-E", "UTF8", "--no-sync", "--no-locale")
        log = (self._folder.with_name(self._folder.name + ".log")).open("ab")
        with log:
            self._process = subprocess.Popen(  # noqa: S603 - a program that we looked up
                [
                    *(self._program("postgres"), "-D", str(self._folder)),
                    *("-k", str(self._folder), "-c", "listen_addresses="),
                    *("-c", "fsync=off", "-c", "max_connections=60"),
                ],
                user=self._owner,
                cwd=self._folder,
                stdout=log,
                stderr=log,
            )
        self._wait_until_it_answers()

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT ends sessions and writes all; SIGQUIT is a crash."""
        if self._process is None:
            return
        self._process.send_signal(how)
        self._process.wait(timeout=DEADLINE_S)
        self._process = None

    def remove(self) -> None:
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self._folder)
        self._folder.with_name(self._folder.name + ".log").unlink()

    def new_address(self) -> str:
        """An address with nothing there: a schema, because a database takes half a second."""
        name = f"test{next(self._numbers)}"
        self.say(f"CREATE SCHEMA {name}")
        return f"{self.address}&search_path={name}"

    @property
    def address(self) -> str:
        return f"postgresql://{ROLE}@/postgres?host={self._folder}"

    @property
    def socket(self) -> str:
        return str(self._folder / ".s.PGSQL.5432")

    def say(self, *statements: str) -> Any:
        """Run statements one after the other; the value that the last one gives."""
        return asyncio.run(_said(self.address, statements))

    @contextmanager
    def holding(self, statement: str) -> Generator[None]:
        """Meanwhile a session of somebody else keeps what this statement locks."""
        loop = asyncio.new_event_loop()
        session = loop.run_until_complete(_connected(self.address))
        loop.run_until_complete(session.execute("BEGIN"))
        loop.run_until_complete(session.execute(statement))
        try:
            yield
        finally:
            loop.run_until_complete(session.close())
            loop.close()

    def _program(self, name: str) -> str:
        programs = _programs()
        assert programs is not None
        return str(programs / name)

    def _run(self, name: str, *arguments: str) -> None:
        subprocess.run(  # noqa: S603 - a program that we looked up
            [self._program(name), "-D", str(self._folder), *arguments],
            user=self._owner,
            cwd=self._folder,
            check=True,
            stdout=subprocess.DEVNULL,
        )

    def _wait_until_it_answers(self) -> None:
        until = time.monotonic() + DEADLINE_S
        while True:
            try:
                self.say("SELECT 1")
            except (OSError, asyncpg.PostgresError):
                assert time.monotonic() < until, "PostgreSQL does not answer"
                time.sleep(0.05)
            else:
                return


def _programs() -> Path | None:
    """The folder with the server's programs: Debian keeps them off the PATH."""
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=_version, reverse=True)
    on_path = [Path(found).resolve().parent for found in [shutil.which("initdb")] if found]
    for folder in (*debian, *on_path):
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    return None


def _version(folder: Path) -> int:
    return int(folder.parent.name)


def _owner() -> str | None:
    """Root must become somebody else for it."""
    if os.geteuid() != 0:
        return None
    names = {each.pw_name for each in pwd.getpwall()}
    return "postgres" if "postgres" in names else None


async def _said(address: str, statements: tuple[str, ...]) -> Any:
    connection = await _connected(address)
    try:
        value = None
        for statement in statements:
            value = await connection.fetchval(statement)
        return value
    finally:
        await connection.close()


async def _connected(address: str) -> Any:
    return cast("Any", await asyncpg.connect(address))  # pyright: ignore[reportUnknownMemberType] - untyped
