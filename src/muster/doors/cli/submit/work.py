"""From the words of a command line to what is submitted: a command, a script, or a job file."""

import os
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from muster.api.requests import JobFile, SubmitDocument
from muster.api.site import Problem
from muster.client.sending import Origin, sent
from muster.doors.cli.submit.options import DASHES
from muster.doors.cli.surroundings import Surroundings
from muster.doors.foreign.meaning import ForeignError, Meaning
from muster.doors.foreign.scripts import meaning_of
from muster.doors.request.lines import directives
from muster.doors.request.options import given_in, layered, written
from muster.doors.slurm.submit.directives import is_batch
from muster.model.value import Value, replace

if TYPE_CHECKING:
    from muster.doors.request.job_file import ReadFile

ENDINGS = (".yaml", ".yml")
"""Of job files."""

STDIN = "-"
_OPTION = re.compile(r"--[a-z][a-z-]+")
BESIDE_SBATCH = "its #SBATCH lines are read; those of other batch systems are not"


class Work(Value):
    """What is to be submitted. cautions: for the user to read. file: the job file it is from."""

    document: SubmitDocument
    cautions: tuple[str, ...] = ()
    file: "ReadFile | None" = None

    def place(self, problem: Problem) -> str | None:
        """`job.yaml:3`, `train.sh:2`: where the line stands that the server finds wrong."""
        if self.file is not None and problem.where is not None:
            return self.file.place(problem.where)
        if self.document.sbatch is None or problem.kind != "bad_request":
            return None
        option = _OPTION.search(problem.text)
        lines = (self.document.script or "").splitlines()
        for number, line in enumerate(lines, 1) if option else ():
            if line.startswith("#SBATCH") and option and option[0] in line:
                return f"{self.source}:{number}"
        return None

    @property
    def source(self) -> str:
        """The script, as sbatch would be given it."""
        words = (word for word in self.document.sbatch or () if not word.startswith("--"))
        return next(words, "")


def work_of(context: click.Context) -> Work:
    """What the words after the options mean: a command after `--`, else a script or a job file.

    The command line wins over what the file says.
    """
    words: tuple[str, ...] = context.params["words"]
    if not words:
        text = "Nothing to run: name a script, a job file, or a command after `--`."
        raise click.UsageError(text, context)
    if context.meta[DASHES]:
        return Work(document=command_document(context, words))
    if words[0].endswith(ENDINGS):
        return _of_job_file(context, words)
    return _of_script(context, words)


def command_document(context: click.Context, words: tuple[str, ...]) -> SubmitDocument:
    """A command, with the options of the command line."""
    fields: dict[str, Any] = {"name": Path(words[0]).name, **given_in(context), "command": words}
    return sent(JobFile(**fields), origin_of(context.obj.around))


def origin_of(around: Surroundings) -> Origin:
    """Where the command is used."""
    return Origin(
        workdir=around.workdir,
        environ=around.environ,
        umask=_umask(),
        zone=around.now().tzinfo,
    )


def _of_job_file(context: click.Context, words: tuple[str, ...]) -> Work:
    """What follows the file are more arguments of its command."""
    from muster.doors.request.job_file import job_file_from  # noqa: PLC0415  YAML takes long to load

    file = job_file_from(_read(words, context), words[0])
    job = file.job
    said = {name: getattr(job, name) for name in job.__struct_fields__}
    fields = layered(said, given_in(context))
    fields["command"] = (*job.command, *words[1:])
    fields["name"] = fields["name"] or Path(words[0]).stem
    return Work(document=sent(JobFile(**fields), origin_of(context.obj.around)), file=file)


def _of_script(context: click.Context, words: tuple[str, ...]) -> Work:
    script = sys.stdin.read() if words[0] == STDIN else _read(words, context)
    name = "stdin" if words[0] == STDIN else Path(words[0]).name
    around: Surroundings = context.obj.around
    if is_batch(script):
        return _of_batch_script(context, words, script)
    asked = _foreign(script, words[0], name, around.workdir)
    if asked is not None and not script.startswith("#!"):
        script = f"#!{asked.shell}\n{script}"
    if not script.startswith("#!"):
        raise click.UsageError(
            f"{words[0]} is not a script: its first line does not begin with `#!`. "
            f"To run a command, put `--` before it: muster submit -- {shlex.join(words)}",
            context,
        )
    own = directives(script, "stdin" if words[0] == STDIN else words[0])
    fields = layered({"name": name}, _from_elsewhere(asked), own, given_in(context))
    fields |= {"command": words[1:], "script": script}
    job = JobFile(**fields)
    cautions = () if asked is None else tuple(asked.cautions)
    return Work(document=sent(job, origin_of(around)), cautions=cautions)


def _of_batch_script(context: click.Context, words: tuple[str, ...], script: str) -> Work:
    """As sbatch would take it: the server reads its lines, and our options over them."""
    given = given_in(context)
    env_only: tuple[str, ...] | None = given.pop("env_only", None)
    document = sent(JobFile(script=script, env_only=env_only), origin_of(context.obj.around))
    name = "stdin" if words[0] == STDIN else words[0]
    ours = (f"--muster={word.removeprefix('--')}" for word in written(given))
    document = replace(document, sbatch=(*ours, name, *words[1:]))
    others = _speaks_otherwise(script)
    return Work(document=document, cautions=(BESIDE_SBATCH,) if others else ())


def _speaks_otherwise(script: str) -> bool:
    return any(line.startswith(("#PBS ", "#BSUB ")) for line in script.splitlines())


def _foreign(script: str, source: str, name: str, workdir: str) -> Meaning | None:
    try:
        return meaning_of(script, name, workdir)
    except ForeignError as wrong:
        raise click.UsageError(f"{source}:{wrong}") from wrong


def _from_elsewhere(asked: Meaning | None) -> dict[str, Any]:
    """The fields that lines of another batch system come to."""
    return {} if asked is None else layered({"env": asked.env}, asked.options)


def _read(words: tuple[str, ...], context: click.Context) -> str:
    advice = f"To run a command, put `--` before it: muster submit -- {shlex.join(words)}"
    if words[0].endswith(ENDINGS):
        advice = "Name a job file that is there."
    try:
        return Path(words[0]).read_text(encoding="utf-8")
    except UnicodeDecodeError as wrong:
        raise click.UsageError(f"{words[0]} is not a text file. {advice}", context) from wrong
    except OSError as wrong:
        text = f"{words[0]} cannot be read ({wrong.strerror}). {advice}"
        raise click.UsageError(text, context) from wrong


def _umask() -> int:
    """It can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
