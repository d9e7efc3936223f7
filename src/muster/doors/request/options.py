"""The table of requests as options of a command line, and what was given there."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import click
from click.core import ParameterSource

from muster.api.requests import JobFile
from muster.doors.request.table import Field, FieldType, fields_of, is_pairs

Completer = Callable[[click.Context, click.Parameter, str], Any]

_TYPES = {FieldType.INTEGER: click.INT, FieldType.NUMBER: click.FLOAT}


class RequestOption(click.Option):
    """An option that is a row of the table. Its value is that of the field."""

    def __init__(self, field: Field, complete: Completer | None = None) -> None:
        self.field = field
        super().__init__(
            (*field.options, field.name),
            type=_type(field),
            # With False, click would take a value that begins with a dash for an option.
            is_flag=True if field.type is FieldType.FLAG else None,
            multiple=field.type in {FieldType.TEXTS, FieldType.PAIRS},
            help=field.row.help,
            metavar=field.row.metavar,
            callback=_value,
            shell_complete=complete,
        )


def request_options(complete: Mapping[str, Completer] | None = None) -> list[click.Option]:
    """Every row that has an option. complete: what shells may offer, by the names of fields."""
    offers = complete or {}
    return [
        RequestOption(field, offers.get(field.name))
        for field in fields_of(JobFile).values()
        if field.options
    ]


def given_in(context: click.Context) -> dict[str, Any]:
    """The fields that were said, and no others: what is not said is not here."""
    return {
        option.field.name: context.params[option.field.name]
        for option in context.command.params
        if isinstance(option, RequestOption)
        and context.get_parameter_source(option.field.name) is ParameterSource.COMMANDLINE
    }


def layered(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Later layers win; names with values (variables, labels) come together from all of them."""
    found: dict[str, Any] = {}
    for layer in layers:
        for name, value in layer.items():
            known = found.get(name)
            found[name] = {**known, **value} if is_pairs(known) and is_pairs(value) else value
    return found


def written(given: Mapping[str, Any]) -> list[str]:
    """Fields as options again: what `given_in` finds in these words is the same."""
    fields = fields_of(JobFile)
    return [word for name, value in given.items() for word in _written(fields[name], value)]


def words(texts: Iterable[str]) -> tuple[str, ...]:
    """Given several times, or separated by commas."""
    return tuple(word.strip() for text in texts for word in text.split(",") if word.strip())


def _written(field: Field, value: Any) -> list[str]:
    option = field.options[-1]
    match field.type:
        case FieldType.FLAG:
            return [option]
        case FieldType.TEXTS:
            return [f"{option}={','.join(value)}"]
        case FieldType.PAIRS:
            pairs: Mapping[str, str | None] = value
            texts = [name if each is None else f"{name}={each}" for name, each in pairs.items()]
            return [f"{option}={text}" for text in texts]
        case FieldType.INTEGER | FieldType.NUMBER | FieldType.TEXT | FieldType.GROUPS:
            return [f"{option}={value:o}" if field.row.reads == "octal" else f"{option}={value}"]


def _type(field: Field) -> Any:
    if field.row.choices:
        return click.Choice(field.row.choices)
    return click.STRING if field.row.reads == "octal" else _TYPES.get(field.type)


def _value(context: click.Context, option: click.Parameter, value: Any) -> Any:
    """The field's value; its default where nothing was said."""
    if not isinstance(option, RequestOption):
        return value
    field = option.field
    source = context.get_parameter_source(field.name)
    if source is not ParameterSource.COMMANDLINE:
        return field.default
    if field.row.reads == "octal":
        return _octal(value, option)
    match field.type:
        case FieldType.FLAG:
            return not field.default
        case FieldType.TEXTS:
            return words(value)
        case FieldType.PAIRS:
            return dict(_pair(text, option) for text in value)
        case FieldType.INTEGER | FieldType.NUMBER | FieldType.TEXT | FieldType.GROUPS:
            return value


def _pair(text: str, option: RequestOption) -> tuple[str, str | None]:
    name, equals, value = text.partition("=")
    alone = "[=" in (option.metavar or "")
    if not name or not (equals or alone):
        form = "NAME=VALUE, or NAME alone" if alone else "NAME=VALUE"
        raise click.BadParameter(f"{text!r}: write {form}.", param=option)
    return name, value if equals else None


def _octal(text: str, option: RequestOption) -> int:
    try:
        return int(text, 8)
    except ValueError:
        raise click.BadParameter(
            f"{text!r}: write octal digits, such as 027.", param=option
        ) from None
