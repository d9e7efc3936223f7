"""Interactive mode: lines are asked for and obeyed until `exit`, `quit` or the end of the input."""

from collections.abc import Callable, Mapping

from muster.doors.slurm.call import Again, Call, Door, Prompt, Reply, WriteFile
from muster.doors.slurm.directives import words
from muster.doors.slurm.options import Parsed
from muster.doors.slurm.trouble import SlurmError
from muster.model.value import replace

Obey = Callable[[tuple[str, ...], Parsed, Call, Door], Reply]

SWITCHES = {
    "all": "all",
    "details": "details",
    "oneliner": "oneliner",
    "quiet": "quiet",
    "verbose": "verbose",
}
PROMPT = "scontrol: "


def answered(line: Parsed, call: Call, door: Door, obey: Obey) -> Reply:
    """One step of the conversation. What was said before is in the memo."""
    memo = call.memo
    state = {name: memo[name] for name in ("console", "last", "code") if name in memo}
    if "console" not in memo:
        return _ask({"console": " ".join(name for name, _ in line.given)})
    if "typed" not in memo:
        return Reply(code=int(memo.get("code", "0")))
    typed = memo.get("last", "") if memo["typed"].strip() == "!!" else memo["typed"]
    said = tuple(words(typed))
    if not said:
        return _ask(state)
    state["last"] = typed
    name = said[0].lower()
    if name in {"exit", "quit"}:
        return Reply(code=int(memo.get("code", "0")))
    if name in SWITCHES or name == "hide":
        return _ask(state | {"console": _switched(memo["console"], name)})
    return _obeyed(said, state, (call, door), obey)


def _switched(flags: str, name: str) -> str:
    if name == "hide":
        return " ".join(flag for flag in flags.split() if flag != "all")
    return f"{flags} {SWITCHES[name]}"


def _obeyed(
    said: tuple[str, ...], state: dict[str, str], whom: tuple[Call, Door], obey: Obey
) -> Reply:
    given = tuple((flag, None) for flag in state["console"].split())
    call, door = whom
    try:
        reply = obey(said, Parsed(given=given, rest=said), call, door)
    except SlurmError as error:
        quiet = "quiet" in state["console"].split()
        reply = Reply(err="" if quiet else error.text, code=error.code)
    if isinstance(reply.then, Again | WriteFile):
        # The same words again, when that is done.
        memo = {**reply.then.memo, **state, "typed": state["last"]}
        return replace(reply, then=replace(reply.then, memo=memo))
    if reply.code:
        state["code"] = str(reply.code)
    return replace(reply, code=0, then=Prompt(text=PROMPT, memo=state))


def _ask(state: Mapping[str, str]) -> Reply:
    return Reply(then=Prompt(text=PROMPT, memo=state))
