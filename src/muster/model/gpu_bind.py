"""Which of a step's GPUs on a node each of its tasks sees, as `srun --gpu-bind` has it. Pure.

GPUs are numbered from 0 among those that the step has on the node: jobs share nodes here, so that a
number on the machine would name another job's GPU.
"""

import re
from collections.abc import Sequence

FORM = re.compile(
    r"(?:(?:quiet|q|verbose|v),)*(none|closest|(?:single|per_task):[1-9]\d{0,3}"
    r"|map_gpu:\d{1,3}(?:\*\d{1,3})?(?:,\d{1,3}(?:\*\d{1,3})?)*"
    r"|mask_gpu:(?:0x)?[0-9a-f]{1,32}(?:\*\d{1,3})?(?:,(?:0x)?[0-9a-f]{1,32}(?:\*\d{1,3})?)*)"
)


def bound(bind: str, gpus: Sequence[int], seat: int) -> tuple[int, ...]:
    """Those of the task that sits at this place on the node; none of them where none is left.

    Nothing is known of which GPU is near to which CPU, so that to `closest` all are.
    """
    kind, _, text = _plain(bind).partition(":")
    if kind == "single":
        at = seat // int(text)
        # Tasks that come after the last GPU begin again with the first.
        return (gpus[at % len(gpus)],) if gpus else ()
    if kind == "per_task":
        first = seat * int(text)
        return tuple(gpus[first : first + int(text)])
    if kind == "map_gpu":
        return tuple(gpus[at] for at in (_turn(text, seat, 10),) if at < len(gpus))
    if kind == "mask_gpu":
        mask = _turn(text, seat, 16)
        return tuple(gpu for at, gpu in enumerate(gpus) if mask >> at & 1)
    return tuple(gpus)


def _plain(bind: str) -> str:
    """Without the words that set how much is printed."""
    found = FORM.fullmatch(bind)
    return found[1] if found else ""


def _turn(text: str, seat: int, base: int) -> int:
    """The number for one seat in a list such as `0*4,1*4`, which begins again at its end."""
    pairs = [word.partition("*") for word in text.split(",")]
    turns = [number for number, _, times in pairs for _ in range(int(times or 1))]
    return int(turns[seat % len(turns)], base) if turns else 0
