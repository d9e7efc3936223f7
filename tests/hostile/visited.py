"""A pod that may be visited, on the machine itself: no tool that runs containers is found."""

import pytest

from local.here import Here, Wanted, run_of
from muster.model.event import JobStarted
from muster.model.job import Exited
from muster.model.launch import Launch
from muster.model.pod import Container, PodLaunch, Restart
from muster.model.value import replace


def begin(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs when this returns, until `end`."""
    nowhere = here.home / "empty"
    nowhere.mkdir()
    monkeypatch.setenv("PATH", str(nowhere))
    waits = f"while ! test -e {here.work}/go; do /bin/sleep 0.1; done"
    main = Container(name="main", image="any:1", entrypoint=("/bin/sh", "-c"), args=(waits,))
    pod = PodLaunch(
        namespace="n",
        name="p",
        uid="u",
        hostname="p",
        containers=(main,),
        restart=Restart.NEVER,
        grace_s=2,
    )
    sent = run_of(Launch(argv=("x",), pod=pod), Wanted(memory_mib=512))
    here.backend.do(replace(sent, images_on_host=True))
    here.sees(JobStarted)


def end(here: Here) -> None:
    """It ends by itself: nothing has ended it before."""
    (here.work / "go").touch()
    assert here.ends().why == Exited(code=0)
