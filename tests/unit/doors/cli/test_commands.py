"""The commands as a whole: all there, all documented, none imported before it is used."""

import subprocess
import sys
from pathlib import Path

import click
import pytest

from muster.doors.cli.catalogue import COMMANDS
from muster.doors.cli.main import muster
from muster.doors.cli.reference import page

ROOT = Path(__file__).parents[4]


def every_command() -> list[tuple[str, click.Command]]:
    """Leaves and groups, with the words that call them."""
    context = click.Context(muster, info_name="muster")
    found: list[tuple[str, click.Command]] = []
    for name in COMMANDS:
        command = muster.get_command(context, name)
        assert command is not None
        found.append((name, command))
        if isinstance(command, click.Group):
            found += [(f"{name} {each}", inner) for each, inner in command.commands.items()]
    return found


@pytest.mark.parametrize(("name", "command"), every_command(), ids=str)
def test_every_command_has_help_and_an_example(name: str, command: click.Command) -> None:
    assert command.help
    if not isinstance(command, click.Group):
        assert command.epilog
        assert f"muster {name}" in command.epilog or name in command.epilog
    options = [each for each in command.params if isinstance(each, click.Option)]
    assert [each.name for each in options if not each.help] == []


@pytest.mark.parametrize(("name", "command"), every_command(), ids=str)
def test_help_fits_a_terminal_of_80_columns(name: str, command: click.Command) -> None:
    settings = muster.context_settings
    context = click.Context(command, info_name=f"muster {name}", terminal_width=80, **settings)

    assert [line for line in command.get_help(context).splitlines() if len(line) > 80] == []


def test_short_help_in_the_catalogue_is_one_sentence() -> None:
    assert [name for name, entry in COMMANDS.items() if not entry.help.endswith(".")] == []
    assert [name for name, entry in COMMANDS.items() if len(entry.help) > 66] == []


def test_the_reference_page_is_up_to_date() -> None:
    written = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")

    # Made again with: python -m muster.doors.cli.reference > docs/reference/cli.md
    assert written == page(muster).rstrip("\n") + "\n"


def test_help_imports_no_command_and_no_client() -> None:
    loaded = modules_of("--help")

    commands = {f"muster.doors.cli.{entry.module}" for entry in COMMANDS.values()}
    assert loaded & commands == set()
    assert not {each for each in loaded if each.startswith(("muster.client", "yaml"))}


def test_ps_imports_only_what_it_needs() -> None:
    loaded = modules_of("ps", "--help")

    heavy = ("yaml", "websockets", "asyncio", "http.client", "ssl", "email", "muster.schedule")
    assert {each for each in loaded if each.startswith(heavy)} == set()


def modules_of(*argv: str) -> set[str]:
    code = (
        "import sys\n"
        "from muster.doors.cli.main import main\n"
        "main(sys.argv[1:], daemon=None)\n"
        "sys.stderr.write('\\n'.join(sys.modules))\n"
    )
    run = subprocess.run(  # noqa: S603  our own code
        [sys.executable, "-c", code, *argv], capture_output=True, text=True, check=True
    )
    return set(run.stderr.split())
