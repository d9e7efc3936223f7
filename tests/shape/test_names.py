import ast
import re

from shape.source import definitions, modules, unexempted

EMPTY_FILE_NAMES = frozenset(
    "common core handler handlers helper helpers manager managers misc stuff util utils".split()
)
EMPTY_CLASS_WORDS = frozenset(
    "Base Common Context Data Handler Helper Helpers Impl Info Manager Misc Util Utils".split()
)
EMPTY_FUNCTION_NAMES = re.compile(r"_*(process|handle|do)(_|$)")

# dotted name: the reason why no better word exists
EXEMPT: dict[str, str] = {
    "muster.doors.kubernetes.objects.managing.Manager": "Kubernetes' word: see managedFields",
    "muster.doors.rest.peers.PeerHttp.handle_websocket_upgrade": "the name that uvicorn calls",
    "muster.doors.rest.peers.PeerWebSocket.handle_connect": "the name that uvicorn calls",
    "muster.doors.rest.peers.PeerWebSocket.handle_cont": "the name that uvicorn calls",
}


def test_names_say_something() -> None:
    found = {
        module.name: "file name"
        for module in modules()
        if EMPTY_FILE_NAMES & set(module.name.rpartition(".")[2].strip("_").split("_"))
    } | {
        each.name: "class or function name"
        for module in modules()
        for each in definitions(module)
        if is_empty(each.node)
    }

    assert unexempted(found, EXEMPT) == {}


def test_empty_words_are_recognised() -> None:
    source = "class JobManager: ...\nclass Database: ...\ndef handle_job(): ...\ndef doors(): ..."

    found = [is_empty(node) for node in ast.parse(source).body]

    assert found == [True, False, True, False]


def is_empty(node: ast.AST) -> bool:
    match node:
        case ast.ClassDef(name=name):
            return not EMPTY_CLASS_WORDS.isdisjoint(re.findall(r"[A-Z][a-z0-9]*", name))
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            # `do` alone is the one verb of a backend; `do_something` says too little.
            return EMPTY_FUNCTION_NAMES.match(name) is not None and name != "do"
        case _:
            return False
