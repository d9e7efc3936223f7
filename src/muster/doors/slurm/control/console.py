"""Interactive mode: lines are asked for and obeyed until `exit`, `quit` or the end of the input."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from muster.doors.slurm.call import Again, Call, Door, Prompt, Reply, WriteFile
from muster.doors.slurm.submit.directives import words
from muster.doors.slurm.words.errors import SlurmError
from muster.doors.slurm.words.options import Parsed
from muster.model.value import replace

Obey = Callable[[tuple[str, ...], Parsed, Call, Door], Reply]

KEPT = ("console", "last", "code")


class Talk(NamedTuple):
    """Whose interactive mode: its prompt, who obeys, and the words that set an option for good."""

    prompt: str
    obey: Obey
    switches: frozenset[str]


def answered(line: Parsed, call: Call, door: Door, talk: Talk) -> Reply:
    """One step of the conversation. What was said before is in the memo.

    asked: the command asked something itself, and what was typed is the answer to that.
    """
    memo = call.memo
    state = {name: memo[name] for name in KEPT if name in memo}
    if "console" not in memo:
        return _ask({"console": " ".join(name for name, _ in line.given)}, talk)
    if "asked" in memo:
        return _obeyed(tuple(words(memo["last"])), state, (call, door), talk)
    if "typed" not in memo:
        return Reply(code=int(memo.get("code", "0")))
    typed = memo.get("last", "") if memo["typed"].strip() == "!!" else memo["typed"]
    said = tuple(words(typed))
    if not said:
        return _ask(state, talk)
    state["last"] = typed
    name = said[0].lower()
    if name in {"exit", "quit"}:
        return Reply(code=int(memo.get("code", "0")))
    if name in talk.switches:
        return _ask(state | {"console": _switched(memo["console"], name)}, talk)
    return _obeyed(said, state, (call, door), talk)


def _switched(flags: str, name: str) -> str:
    if name == "hide":
        return " ".join(flag for flag in flags.split() if flag != "all")
    return f"{flags} {name}"


def _obeyed(
    said: tuple[str, ...], state: dict[str, str], whom: tuple[Call, Door], talk: Talk
) -> Reply:
    given = tuple((flag, None) for flag in state["console"].split())
    call, door = whom
    try:
        reply = talk.obey(said, Parsed(given=given, rest=said), call, door)
    except SlurmError as error:
        quiet = "quiet" in state["console"].split()
        reply = Reply(err="" if quiet else error.text, code=error.code)
    if isinstance(reply.then, Again | WriteFile):
        # The same words again, when that is done.
        memo = {**reply.then.memo, **state, "typed": state["last"]}
        return replace(reply, then=replace(reply.then, memo=memo))
    if isinstance(reply.then, Prompt):
        return replace(reply, then=replace(reply.then, memo={**reply.then.memo, **state}))
    if reply.code:
        state["code"] = str(reply.code)
    return replace(reply, code=0, then=Prompt(text=talk.prompt, memo=state))


def _ask(state: Mapping[str, str], talk: Talk) -> Reply:
    return Reply(then=Prompt(text=talk.prompt, memo=state))
