from kubernetes_clients.page import KUBERNETES


def test_the_page_of_clients_says_what_is_tested() -> None:
    assert KUBERNETES.file.read_text(encoding="utf-8") == KUBERNETES.text()


def test_every_client_on_the_page_has_a_test_and_every_test_a_client() -> None:
    KUBERNETES.demand_complete()
