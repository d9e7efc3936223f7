from local.conftest import here, home

__all__ = ["here", "home"]
