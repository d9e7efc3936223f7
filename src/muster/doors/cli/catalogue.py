"""Every command: its theme, one line of help, and the module that has it.

`muster --help` reads only this table; a command's module is imported when the command is used.
"""

from collections.abc import Mapping

from muster.model.value import Value


class Entry(Value):
    """A command. module: below `muster.doors.cli`; function: the command's name unless told."""

    module: str
    help: str
    function: str = ""


THEMES: Mapping[str, Mapping[str, Entry]] = {
    "Run jobs": {
        "submit": Entry(module="submit", help="Hand in a job and return at once."),
        "run": Entry(module="run", help="Run a command as a job and see it through."),
        "attach": Entry(module="run", help="Sit down at a running job's terminal again."),
        "wait": Entry(module="wait", help="Wait until jobs are over."),
    },
    "Look at jobs": {
        "ps": Entry(module="ps", help="List jobs that wait or run."),
        "show": Entry(module="show", help="Show everything about a job."),
        "explain": Entry(module="explain", help="Say why a job waits and what would help."),
        "why": Entry(module="explain", help="Say in one line why a job is where it is."),
        "logs": Entry(module="logs", help="Print what a job wrote."),
        "top": Entry(module="top", help="Watch the cluster, live."),
        "history": Entry(module="history", help="List jobs that are over and what they used."),
        "events": Entry(module="events", help="List what happened, or watch it happen."),
    },
    "Steer jobs": {
        "cancel": Entry(module="acting", help="End jobs, or send them a signal."),
        "hold": Entry(module="acting", help="Keep waiting jobs from starting."),
        "release": Entry(module="acting", help="Let held jobs start."),
        "suspend": Entry(module="acting", help="Stop running jobs in place."),
        "resume": Entry(
            module="acting", help="Let suspended jobs go on, or nodes take work again."
        ),
        "requeue": Entry(module="acting", help="End an attempt and put the job back in its queue."),
        "update": Entry(module="update", help="Change what a job asked for."),
    },
    "The cluster": {
        "status": Entry(module="status", help="Show the installation at a glance."),
        "nodes": Entry(module="nodes", help="List nodes, and their GPUs."),
        "drain": Entry(module="nodes", help="Let a node finish its jobs and take no new ones."),
        "queues": Entry(module="queues", help="Show the tree of queues and what each uses."),
        "quota": Entry(module="quota", help="Change what a queue is guaranteed and limited to."),
        "classes": Entry(module="classes", help="List job classes."),
        "whatif": Entry(
            module="whatif", help="Rehearse a submission or a change; nothing is done."
        ),
    },
    "Rehearse": {
        "simulate": Entry(
            module="simulate", help="Run a trace through these rules in pretend time."
        ),
        "compare": Entry(module="compare", help="Put several sets of rules side by side."),
    },
    "Administration": {
        "up": Entry(module="daemon_commands", help="Start Muster on this machine."),
        "down": Entry(module="daemon_commands", help="Stop Muster; jobs run on."),
        "serve": Entry(module="daemon_commands", help="Answer at the doors for a shared store."),
        "apply": Entry(module="apply", help="Put a configuration file into force."),
        "site": Entry(module="apply", help="Print the configuration in force."),
        "users": Entry(module="users", help="List users and what they may do."),
        "tokens": Entry(module="tokens", help="List, make and revoke keys for remote use."),
        "audit": Entry(module="audit", help="List who changed what."),
        "import": Entry(
            module="slurm_files",
            help="Make a configuration file of Slurm's files.",
            function="import_files",
        ),
        "export": Entry(module="slurm_files", help="Write the configuration as Slurm's files."),
        "slurm": Entry(module="slurm", help="Put Slurm's commands on your PATH."),
        "doctor": Entry(module="doctor", help="Look for what is wrong, and say what to do."),
        "completion": Entry(module="completion", help="Print the completion script of a shell."),
        "version": Entry(module="version", help="Print the version."),
    },
}

COMMANDS: Mapping[str, Entry] = {
    name: entry for entries in THEMES.values() for name, entry in entries.items()
}
