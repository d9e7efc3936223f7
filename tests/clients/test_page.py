from clients.page import SLURM


def test_the_page_of_clients_says_what_is_tested() -> None:
    assert SLURM.file.read_text(encoding="utf-8") == SLURM.text()


def test_every_client_on_the_page_has_a_test_and_every_test_a_client() -> None:
    SLURM.demand_complete()
