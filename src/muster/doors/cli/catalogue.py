"""Every command: its theme, one line of help, and the module that has it.

`muster --help` reads only this table; a command's module is imported when the command is used.
"""

from collections.abc import Mapping

from muster.model.value import Value


class Entry(Value):
    """A command. module: below `muster.doors.cli`; function: the command's name unless given."""

    module: str
    help: str
    function: str = ""


THEMES: Mapping[str, Mapping[str, Entry]] = {
    "Run jobs": {
        "submit": Entry(module="submit.command", help="Hand in a job and return at once."),
        "run": Entry(module="submit.run", help="Run a command as a job and see it through."),
        "attach": Entry(module="submit.run", help="Sit down at a running job's terminal again."),
        "wait": Entry(module="jobs.wait", help="Wait until jobs are over."),
    },
    "Look at jobs": {
        "ps": Entry(module="jobs.ps", help="List jobs that wait or run."),
        "show": Entry(module="jobs.show", help="Show everything about a job."),
        "explain": Entry(module="jobs.explain", help="Say why a job waits and what would help."),
        "why": Entry(module="jobs.explain", help="Say in one line why a job is where it is."),
        "diagnose": Entry(
            module="jobs.diagnose", help="Say why a job is slow, and what to change."
        ),
        "report": Entry(
            module="jobs.report", help="Show what jobs did with GPUs, and what that cost."
        ),
        "logs": Entry(module="jobs.logs", help="Print what a job wrote."),
        "top": Entry(module="cluster.top", help="Watch the cluster, live."),
        "history": Entry(module="jobs.history", help="List jobs that are over and what they used."),
        "events": Entry(module="jobs.events", help="List what happened, or watch it happen."),
    },
    "Steer jobs": {
        "cancel": Entry(module="jobs.acting", help="End jobs, or send them a signal."),
        "hold": Entry(module="jobs.acting", help="Keep waiting jobs from starting."),
        "release": Entry(module="jobs.acting", help="Let held jobs start."),
        "suspend": Entry(module="jobs.acting", help="Stop running jobs in place."),
        "resume": Entry(
            module="jobs.acting", help="Let suspended jobs go on, or nodes take work again."
        ),
        "requeue": Entry(
            module="jobs.acting", help="End an attempt and put the job back in its queue."
        ),
        "update": Entry(module="jobs.update", help="Change what a job asked for."),
    },
    "The cluster": {
        "status": Entry(module="cluster.status", help="Show the installation at a glance."),
        "nodes": Entry(module="cluster.nodes", help="List nodes, and their GPUs."),
        "drain": Entry(
            module="cluster.nodes", help="Let a node finish its jobs and take no new ones."
        ),
        "queues": Entry(
            module="cluster.queues", help="Show the tree of queues and what each uses."
        ),
        "quota": Entry(
            module="rules.quota", help="Change what a queue is guaranteed and limited to."
        ),
        "alerts": Entry(module="cluster.alerts", help="List what is wrong, and what to do."),
        "silence": Entry(
            module="cluster.alerts", help="Have nobody told of some alerts for a while."
        ),
        "classes": Entry(module="cluster.classes", help="List job classes."),
        "whatif": Entry(
            module="rehearse.whatif", help="Rehearse a submission or a change; nothing is done."
        ),
    },
    "Rehearse": {
        "simulate": Entry(
            module="rehearse.simulate", help="Run a trace through these rules in pretend time."
        ),
        "compare": Entry(module="rehearse.compare", help="Put several sets of rules side by side."),
    },
    "Administration": {
        "up": Entry(module="daemon.commands", help="Start Muster on this machine."),
        "down": Entry(module="daemon.commands", help="Stop Muster; jobs run on."),
        "cluster": Entry(
            module="daemon.clusters", help="Run jobs on a Slurm cluster as well as here."
        ),
        "backup": Entry(module="daemon.backup", help="Copy the database while Muster runs."),
        "restore": Entry(module="daemon.backup", help="Put a backup in the database's place."),
        "install-service": Entry(
            module="daemon.service",
            help="Have systemd start and watch Muster.",
            function="install_service",
        ),
        "uninstall-service": Entry(
            module="daemon.service",
            help="Have systemd start it no more.",
            function="uninstall_service",
        ),
        "serve": Entry(module="daemon.commands", help="Answer at the doors for a shared store."),
        "apply": Entry(module="rules.apply", help="Put a configuration file into force."),
        "site": Entry(module="rules.apply", help="Print the configuration in force."),
        "telemetry": Entry(
            module="rules.telemetry", help="Print configuration for Prometheus, Grafana and others."
        ),
        "users": Entry(module="rules.users", help="List users and what they may do."),
        "tokens": Entry(module="rules.tokens", help="List, make and revoke keys for remote use."),
        "audit": Entry(module="rules.audit", help="List who changed what."),
        "import": Entry(
            module="rules.exchange",
            help="Make a configuration file of another system's.",
            function="import_files",
        ),
        "export": Entry(
            module="rules.exchange", help="Write the configuration for another system."
        ),
        "kubeconfig": Entry(
            module="daemon.kubeconfig", help="Point kubectl at this Muster, as yourself."
        ),
        "extender": Entry(
            module="daemon.extender", help="Answer kube-scheduler which nodes suit a pod best."
        ),
        "slurm": Entry(module="daemon.slurm", help="Put Slurm's commands on your PATH."),
        "doctor": Entry(module="daemon.doctor", help="Look for what is wrong, and say what to do."),
        "completion": Entry(module="completion", help="Print the completion script of a shell."),
        "version": Entry(module="version", help="Print the version."),
    },
}

COMMANDS: Mapping[str, Entry] = {
    name: entry for entries in THEMES.values() for name, entry in entries.items()
}
