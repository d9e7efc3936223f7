"""What is told, as the message that its receiver understands."""

from muster.controller.alerting.delivery import Message
from muster.model.alerting import OWNER, Alerting, Receiver, ReceiverKind
from muster.model.value import Duration
from muster.telemetry.alerting.bodies import (
    alertmanager_bodies,
    mail_text,
    slack_body,
    teams_body,
    webhook_body,
)
from muster.telemetry.alerting.routing import Notification


def message_of(told: Notification, alerting: Alerting) -> Message:
    """For the receiver that it is addressed to."""
    address = told.key.address
    if address.receiver == OWNER:
        return _mail(told, address.user)
    receiver = alerting.receivers[address.receiver]
    match receiver.kind:
        case ReceiverKind.MAIL:
            return _mail(told, receiver.to)
        case ReceiverKind.SLACK:
            return Message(receiver=receiver.name, body=slack_body(told))
        case ReceiverKind.TEAMS:
            return Message(receiver=receiver.name, body=teams_body(told))
        case ReceiverKind.WEBHOOK | ReceiverKind.COMMAND:
            return Message(receiver=receiver.name, body=webhook_body(told))
        case ReceiverKind.ALERTMANAGER:
            # What happened says itself when it is over.
            (body,) = alertmanager_bodies(told.alerts, told.at, Duration(0))
            return Message(receiver=receiver.name, body=body)


def receivers_of(alerting: Alerting) -> tuple[Receiver, ...]:
    """Those of the file, and the owners of jobs where a route names them."""
    owner = Receiver(name=OWNER, kind=ReceiverKind.MAIL)
    is_named = any(route.owner for route in (*alerting.routes, *alerting.jobs))
    return (*alerting.receivers.values(), *((owner,) if is_named else ()))


def _mail(told: Notification, to: str) -> Message:
    text = mail_text(told)
    receiver = told.key.address.receiver
    return Message(receiver=receiver, mail_to=to, subject=text.subject, text=text.body)
