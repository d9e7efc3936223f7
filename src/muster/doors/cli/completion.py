"""`muster completion`: the scripts that let shells complete."""

import click

from muster.doors.cli.options import example
from muster.doors.cli.screen.printing import say

VARIABLE = "_MUSTER_COMPLETE"


@click.command(
    epilog=example(
        "bash:  echo 'eval \"$(muster completion bash)\"' >> ~/.bashrc",
        "zsh:   echo 'eval \"$(muster completion zsh)\"' >> ~/.zshrc",
        "fish:  muster completion fish > ~/.config/fish/completions/muster.fish",
    )
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    Commands and options are completed, and from the server jobs, queues, nodes and classes.
    """
    from click.shell_completion import get_completion_class  # noqa: PLC0415  only here

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"There is no completion for {shell}.")
    made = kind(context.find_root().command, {}, "muster", VARIABLE)
    say(made.source().rstrip("\n"))
