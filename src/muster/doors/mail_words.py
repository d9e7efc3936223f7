"""When mail is sent about a job, as people write it: `begin`, `FAIL`, `all`. Pure."""

from collections.abc import Iterable

from muster.model.mail import Mail, Occasion

NONE = "none"
ARRAY_TASKS = "array_tasks"
"""About each part of an array."""

ALL = (
    Occasion.INVALID_DEPEND,
    Occasion.BEGIN,
    Occasion.END,
    Occasion.FAIL,
    Occasion.REQUEUE,
    Occasion.STAGE_OUT,
)

KNOWN = (NONE, "all", *(each.value for each in Occasion), ARRAY_TASKS)


def mail_of(words: Iterable[str], to: str | None = None) -> Mail:
    """What these words ask for together; `none` asks for nothing, whatever stands beside it."""
    chosen = {word.strip().lower() for word in words}
    if NONE in chosen:
        return Mail(to=to)
    wanted = frozenset(ALL if "all" in chosen else ())
    return Mail(
        on=tuple(each for each in Occasion if each in wanted or each.value in chosen),
        to=to,
        each_part=ARRAY_TASKS in chosen,
    )


def words_of(mail: Mail) -> tuple[str, ...]:
    """The words that ask for this, in Slurm's order."""
    parts = (ARRAY_TASKS,) if mail.each_part else ()
    return (*parts, *(each.value for each in mail.on))
