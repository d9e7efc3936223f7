from clients.page import CLIENTS, PAGE, page, sentences


def test_the_page_of_clients_says_what_is_tested() -> None:
    assert PAGE.read_text(encoding="utf-8") == page()


def test_every_client_on_the_page_has_a_test_and_every_test_a_client() -> None:
    said = [name for name in sentences() if not name.startswith(("the_page_", "every_client_"))]

    def of(word: str) -> list[str]:
        return [name for name in said if name.startswith(f"{word}_")]

    assert [word for word in CLIENTS.values() if not of(word)] == []
    assert sorted(name for word in CLIENTS.values() for name in of(word)) == sorted(said)
