import ast

from shape.source import Function, definitions, modules, unexempted

# Advice, not a law: beyond these lengths a reader wants a reason, and it is given here.
# A tuple of unrelated things, or a helper with one caller and no name of its own, is worse
# than a longer function.
MOST_LINES_IN_A_FUNCTION = 60
MOST_LINES_IN_A_FILE = 600

# dotted name: the reason why this one is better long
LONG_FUNCTIONS: dict[str, str] = {}
LONG_FILES: dict[str, str] = {
    "muster.api.requests": "one table, in which a field is a row",
}


def test_a_long_function_has_a_reason() -> None:
    lengths = {
        each.name: length(each.node)
        for module in modules()
        for each in definitions(module)
        if not isinstance(each.node, ast.ClassDef)
    }

    long = {name: lines for name, lines in lengths.items() if lines > MOST_LINES_IN_A_FUNCTION}

    assert unexempted(long, LONG_FUNCTIONS) == {}


def test_a_long_file_has_a_reason() -> None:
    lengths = {module.name: len(module.text.splitlines()) for module in modules()}

    long = {name: lines for name, lines in lengths.items() if lines > MOST_LINES_IN_A_FILE}

    assert unexempted(long, LONG_FILES) == {}


def test_a_docstring_does_not_count_as_length() -> None:
    tree = ast.parse('def f(\n    a,\n):\n    """One.\n\n    Two.\n    """\n    return a\n')
    function = tree.body[0]
    assert isinstance(function, ast.FunctionDef)

    assert length(function) == 4


def length(function: Function) -> int:
    """Lines from `def` to the end, without the docstring."""
    whole = (function.end_lineno or function.lineno) - function.lineno + 1
    if ast.get_docstring(function) is None:
        return whole
    docstring = function.body[0]
    return whole - ((docstring.end_lineno or docstring.lineno) - docstring.lineno + 1)
