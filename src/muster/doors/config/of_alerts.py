"""The keys of alerts: who is told of them."""

from muster.doors.config.kinds import (
    NAME,
    QUEUE_PATH,
    SPAN_ABOVE_ZERO,
    TEXT,
    TRUTH,
    USER,
    choice,
)
from muster.doors.config.shapes import Key, Many, NamedMapping, Section, ValueList
from muster.model.alerting import (
    Alerting,
    JobNews,
    JobRoute,
    Receiver,
    ReceiverKind,
    Route,
    Severity,
)

RECEIVER = Section(
    title="A receiver of alerts: `alerts.receivers.*`",
    noun="receiver",
    makes=(Receiver,),
    blank=Receiver(name="", kind=ReceiverKind.WEBHOOK),
    named="name",
    keys=(
        Key(
            name="kind",
            shape=choice(ReceiverKind),
            required=True,
            meaning="what it understands",
            example="slack",
        ),
        Key(
            name="url_file",
            shape=TEXT,
            meaning="a file whose one line is its URL: a secret, which is never shown; for all "
            "kinds but `mail` and `command`",
            example="/etc/muster/slack-url",
        ),
        Key(
            name="to",
            shape=TEXT,
            meaning="for `mail`: to whom it goes",
            example="gpu-admins@example.org",
        ),
        Key(
            name="command",
            shape=Many(each=TEXT),
            meaning="for `command`: a program with its arguments, which is given the JSON of a "
            "webhook on its input",
            example="[/usr/local/bin/page, --team, gpu]",
        ),
    ),
)

ROUTE = Section(
    title="Routes of alerts: `alerts.routes[]`",
    noun="route",
    makes=(Route,),
    blank=Route(),
    keys=(
        Key(
            name="receivers",
            shape=Many(each=NAME),
            meaning="who is told; an alert goes to the receivers of all routes that it fits",
            example="[ops]",
        ),
        Key(
            name="severities",
            shape=Many(each=choice(Severity)),
            meaning="only alerts of these severities; if empty, all",
            example="[critical]",
        ),
        Key(
            name="alerts",
            shape=Many(each=NAME),
            meaning="only alerts of these names; if empty, all",
            example="[GpuBroken]",
        ),
        Key(
            name="queue",
            shape=QUEUE_PATH,
            optional=True,
            meaning="only alerts of this queue and its child queues",
            example="acme/nlp",
        ),
        Key(
            name="owner",
            shape=TRUTH,
            meaning="mail alerts of a job to its user as well",
            example="true",
        ),
    ),
)

JOB_ROUTE = Section(
    title="Routes of what happens to jobs: `alerts.jobs[]`",
    noun="route",
    makes=(JobRoute,),
    blank=JobRoute(),
    keys=(
        Key(
            name="receivers",
            shape=Many(each=NAME),
            meaning="who is told; the receivers of all routes that a job fits",
            example="[ops]",
        ),
        Key(
            name="on",
            shape=Many(each=choice(JobNews)),
            meaning="what is told; `waits_long`: that it has waited for as long as `waits` says",
            example="[failed, preempted]",
        ),
        Key(
            name="queue",
            shape=QUEUE_PATH,
            optional=True,
            meaning="only jobs of this queue and its child queues",
            example="acme/nlp",
        ),
        Key(
            name="users",
            shape=Many(each=USER),
            meaning="only jobs of these users; if empty, of all",
            example="[ada]",
        ),
        Key(
            name="owner",
            shape=TRUTH,
            meaning="mail it to the user of the job as well",
            example="true",
        ),
        Key(
            name="waits",
            shape=SPAN_ABOVE_ZERO,
            meaning="after how long a job counts as one that waits too long",
            example="2h",
        ),
    ),
)

ALERTS = Section(
    title="Alerts: `alerts`",
    noun="alerts",
    makes=(Alerting,),
    blank=Alerting(),
    keys=(
        Key(
            name="receivers",
            shape=NamedMapping(section=RECEIVER),
            meaning="who can be told",
        ),
        Key(
            name="routes",
            shape=ValueList(section=ROUTE),
            meaning="which alerts go to whom",
        ),
        Key(
            name="jobs",
            shape=ValueList(section=JOB_ROUTE),
            meaning="what happens to which jobs is told to whom",
        ),
        Key(
            name="wait",
            shape=SPAN_ABOVE_ZERO,
            meaning="how long a new group of alerts, or of jobs, waits for others like it",
            example="1m",
        ),
        Key(
            name="changes",
            shape=SPAN_ABOVE_ZERO,
            meaning="how soon a group is told of again after it changed",
            example="10m",
        ),
        Key(
            name="repeat",
            shape=SPAN_ABOVE_ZERO,
            meaning="how soon it is told of again although nothing changed",
            example="12h",
        ),
        Key(
            name="rules",
            shape=TRUTH,
            meaning="judge the rules that come with Muster; `false` where a Prometheus does",
            example="false",
        ),
        Key(
            name="pretend",
            shape=TRUTH,
            meaning="tell of pretend devices too",
            example="true",
        ),
    ),
)
