import inspect
import subprocess
import sys

import pytest

from muster import Client
from muster.api.requests import JobFile
from muster.client.submitting import asked_for

HEAVY = ("msgspec", "click", "yaml", "muster.client", "muster.api", "muster.model")


def test_a_list_is_a_command_and_a_text_a_script() -> None:
    assert asked_for(["python", "train.py"], {"gpus": 4}) == JobFile(
        command=("python", "train.py"), gpus=4
    )
    assert asked_for("#!/bin/bash\ntrue\n", {}).script == "#!/bin/bash\ntrue\n"
    assert asked_for("true && false", {}).script == "#!/bin/sh\ntrue && false\n"


def test_keywords_win_over_a_job_file() -> None:
    file = JobFile(command=("x",), gpus=1, time="1h")

    assert asked_for(file, {"time": "2h"}) == JobFile(command=("x",), gpus=1, time="2h")


def test_what_runs_is_said_once() -> None:
    with pytest.raises(TypeError, match="say once what to run"):
        asked_for(["x"], {"command": ("y",)})


def test_every_field_is_a_keyword_that_help_shows() -> None:
    keywords = inspect.signature(Client.submit).parameters

    assert set(JobFile.__struct_fields__) <= set(keywords)
    assert keywords["gpus"].default == 0


@pytest.mark.parametrize("module", ["muster", "muster.checkpoint"])
def test_importing_muster_imports_nothing_else(module: str) -> None:
    code = f"import sys, {module}; print(*sorted(sys.modules))"

    done = subprocess.run(  # noqa: S603 our own interpreter
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    loaded = done.stdout.split()
    assert [name for name in loaded if name.startswith(HEAVY)] == []


def test_the_package_names_what_it_offers() -> None:
    import muster  # noqa: PLC0415  the package is what is looked at

    assert all(getattr(muster, name) is not None for name in muster.__all__)
    assert set(muster.__all__) <= set(dir(muster))
    with pytest.raises(AttributeError, match="nothing_such"):
        _ = muster.nothing_such
