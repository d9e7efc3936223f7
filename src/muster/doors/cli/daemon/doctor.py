"""`muster doctor`: what is wrong, and what to do about it."""

from collections.abc import Iterator
from pathlib import Path

import click

from muster import __version__
from muster.api.site import MeDocument, StatusDocument
from muster.client.errors import ApiError, UnreachableError
from muster.doors.cli.cluster.status import gpus_text
from muster.doors.cli.daemon.checks import machine_checks
from muster.doors.cli.daemon.port import Check, DoctorOptions, Level
from muster.doors.cli.options import colour_option, example, output_option
from muster.doors.cli.screen.printing import say_lines, show_data, wrapped
from muster.doors.cli.screen.screen import Screen
from muster.doors.cli.screen.text import clean_lines, counted
from muster.doors.cli.screen.times import Moment, short_span
from muster.doors.cli.surroundings import Call
from muster.model.errors import MusterError

REFUSED = 1


@click.command(epilog=example("muster doctor", "muster doctor -o json"))
@click.option("--home", type=click.Path(path_type=Path), help="The state folder to look at.")
@output_option
@colour_option
@click.pass_obj
def doctor(call: Call, home: Path | None) -> int:
    """Look at this machine and at the server, and say what is wrong and what to do.

    Exits with 1 when something fails; warnings are no failure.
    """
    found = tuple(_checks(call, home))
    if call.look.is_table:
        say_lines(_told(found, call.screen))
    else:
        show_data(call, found)
    return REFUSED if any(each.level is Level.FAIL for each in found) else 0


def _checks(call: Call, home: Path | None) -> Iterator[Check]:
    report = call.daemon.doctor_report(DoctorOptions(home=home))
    yield from machine_checks(report.home, call.around.environ)
    yield from report.checks
    yield from server_checks(call)


def server_checks(call: Call) -> Iterator[Check]:
    """What can be asked of the server itself."""
    try:
        status, me = call.client.status(), call.client.me()
    except UnreachableError as error:
        yield Check(name="server", level=Level.FAIL, text=str(error), advice="muster up")
        return
    except (ApiError, MusterError) as error:
        text = f"it answers, but will not talk: {error}"
        advice = "look at MUSTER_URL and MUSTER_TOKEN, or ask an administrator"
        yield Check(name="server", level=Level.FAIL, text=text, advice=advice)
        return
    yield Check(name="server", level=Level.OK, text=f"answers, {status.version}")
    yield _version(status)
    yield Check(name="store", level=Level.OK, text=status.store)
    yield _leading(status, call.moment)
    yield _gpus(status)
    yield _mapped(me)
    for problem in status.problems:
        yield Check(name="problem", level=Level.WARN, text=problem)


def _version(status: StatusDocument) -> Check:
    if status.version == __version__:
        return Check(name="version", level=Level.OK, text=f"both are {__version__}")
    text = f"this command is {__version__}, the server {status.version}"
    advice = "install the same version on both sides, then muster down and muster up"
    return Check(name="version", level=Level.WARN, text=text, advice=advice)


def _leading(status: StatusDocument, moment: Moment) -> Check:
    if not status.leading:
        text = "no controller leads; jobs run on, and none starts"
        advice = "wait for the standby, or start a controller with muster up"
        return Check(name="controller", level=Level.WARN, text=text, advice=advice)
    ago = moment.since(status.planned_at)
    if ago < -1:
        text = f"this clock is {short_span(-ago)} behind the server's"
        advice = "set both clocks with NTP"
        return Check(name="clock", level=Level.WARN, text=text, advice=advice)
    return Check(name="controller", level=Level.OK, text=f"leads, plans in {status.plan_ms} ms")


def _gpus(status: StatusDocument) -> Check:
    if status.gpus:
        return Check(name="gpus", level=Level.OK, text=gpus_text(status))
    advice = "to try things out: muster down; muster up --nodes 2 --gpus 4xA100-40GB"
    return Check(name="gpus", level=Level.WARN, text="no node has a GPU", advice=advice)


def _mapped(me: MeDocument) -> Check:
    if me.roles:
        text = f"you are {me.user}: {', '.join(me.roles)}"
        return Check(name="user", level=Level.OK, text=text)
    text = f"you are {me.user}, who may do nothing here"
    advice = "ask an administrator to name you under `users` in the configuration"
    return Check(name="user", level=Level.WARN, text=text, advice=advice)


def _told(found: tuple[Check, ...], screen: Screen) -> Iterator[str]:
    width = max(len(each.name) for each in found)
    margin = " " * (width + 8)
    for each in found:
        level = each.level.value.ljust(4)
        text = f"{level}  {each.name.ljust(width)}  {clean_lines(each.text)}"
        first, *others = wrapped(text, screen, indent=margin)
        yield first.replace(level, screen.state(level), 1)
        yield from others
        if each.advice and each.level is not Level.OK:
            advice = f"{margin}-> {clean_lines(each.advice)}"
            yield from wrapped(advice, screen, indent=f"{margin}   ")
    bad = [each for each in found if each.level is not Level.OK]
    yield f"{counted(len(bad), 'thing')} to look at." if bad else "All is well."
