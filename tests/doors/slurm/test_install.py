import os
import subprocess
import sys
from pathlib import Path

import pytest

from muster.doors.slurm.answering import NAMES
from muster.doors.slurm.client.compiling import (
    CommandSettings,
    NotCompiledError,
    compiled,
    compiler,
    with_settings,
)
from muster.doors.slurm.client.install import (
    HOLDING,
    MARK,
    WouldShadowError,
    install,
    is_for_all,
    is_ours,
    quickest_python,
)


@pytest.fixture
def a_compiler() -> str:
    try:
        return compiler()
    except NotCompiledError as error:
        pytest.skip(str(error))


@pytest.fixture
def real_slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "real"
    folder.mkdir()
    (folder / "sbatch").write_text("#!/bin/sh\necho real\n")
    (folder / "sbatch").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'ours'}:{folder}:{os.environ['PATH']}")
    return folder


def test_commands_are_written_once_for_each_name(tmp_path: Path) -> None:
    made = install(tmp_path / "bin")

    assert sorted(path.name for path in (tmp_path / "bin").iterdir()) == sorted(NAMES)
    assert all(os.access(tmp_path / "bin" / name, os.X_OK) for name in made.names)
    assert install(tmp_path / "bin").names == NAMES


def test_a_real_slurm_is_never_replaced_unasked(real_slurm: Path) -> None:
    with pytest.raises(WouldShadowError, match="is not Muster's"):
        install(real_slurm)

    assert not is_ours(real_slurm / "sbatch")
    assert is_ours(Path(install(real_slurm, force=True).folder) / "sbatch")


def test_a_real_slurm_is_never_shadowed_unasked(real_slurm: Path) -> None:
    with pytest.raises(WouldShadowError, match="is a real Slurm's"):
        install(real_slurm.parent / "ours")

    notes = install(real_slurm.parent / "ours", force=True).notes

    assert not any("PATH" in note for note in notes)


def test_beside_a_real_slurm_the_user_is_warned(real_slurm: Path) -> None:
    notes = install(real_slurm.parent / "elsewhere").notes

    assert any("real Slurm" in note for note in notes)


def test_with_a_compiler_most_commands_are_compiled(tmp_path: Path, a_compiler: str) -> None:
    made = install(tmp_path)

    files = {name: (tmp_path / name).read_bytes() for name in NAMES}
    assert f"compiled by {a_compiler}" in made.made
    assert {name for name in NAMES if not files[name].startswith(b"\x7fELF")} == HOLDING
    assert all(is_ours(tmp_path / name) for name in NAMES)
    assert len({files[name] for name in NAMES}) == len(NAMES)


def test_without_a_compiler_they_are_scripts_and_their_user_is_warned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")

    made = install(tmp_path)

    assert "Python scripts" in made.made
    assert "there is no C compiler" in made.made
    assert all((tmp_path / name).read_bytes().startswith(b"#!") for name in NAMES)


def test_a_compiler_that_fails_is_reported_and_does_no_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cc").write_text("#!/bin/sh\necho 'fatal error: stdio.h is missing' >&2; exit 1\n")
    (tmp_path / "cc").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    made = install(tmp_path / "bin")

    assert "stdio.h is missing" in made.made
    assert all((tmp_path / "bin" / name).read_bytes().startswith(b"#!") for name in NAMES)


def test_installing_again_replaces_a_command_while_it_runs(tmp_path: Path) -> None:
    install(tmp_path)
    with (tmp_path / "squeue").open("rb") as old:
        before = old.read()
        install(tmp_path)

        old.seek(0)
        assert old.read() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(NAMES)


def test_settings_that_are_too_long_are_refused(a_compiler: str) -> None:
    long = CommandSettings(command="squeue", home="x" * 20_000, python="", code="", wanted=())

    with pytest.raises(NotCompiledError, match="too long"):
        with_settings(compiled(a_compiler), long)


def test_the_thin_command_imports_nothing_that_takes_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    install(tmp_path)
    script = (tmp_path / "squeue").read_text()
    assert MARK in script
    ends = "import muster_thin\nprint(*sorted(sys.modules))"

    imported = subprocess.run(  # noqa: S603  our own program
        [sys.executable, "-IS", "-c", script.partition("import muster_thin")[0] + ends],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()

    slow = {"json", "re", "socket", "typing", "subprocess", "muster", "enum", "msgspec", "time_"}
    assert not slow & set(imported)


def test_the_commands_run_with_a_python_that_has_the_same_compiled_modules() -> None:
    tag = "import sys; print(sys.implementation.cache_tag)"

    chosen = subprocess.run(  # noqa: S603  one of two
        [quickest_python(), "-IS", "-c", tag], capture_output=True, text=True, check=True
    ).stdout

    assert chosen.strip() == sys.implementation.cache_tag


def test_what_lies_in_a_private_folder_is_not_for_all(tmp_path: Path) -> None:
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    (private / "python").symlink_to("/bin/sh")
    (private / "bin").mkdir()
    link = tmp_path / "link"
    link.symlink_to(private / "bin")

    assert is_for_all(Path("/bin/sh"))
    assert not is_for_all(private / "python")
    assert not is_for_all(link)
