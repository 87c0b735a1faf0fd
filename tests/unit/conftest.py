"""For the tests of the command line: an API that is played, and runs against it."""

import pytest

from tests.cli.played import PlayedApi
from tests.cli.runs import Runs


@pytest.fixture
def played():
    api = PlayedApi()
    yield api
    api.close()


@pytest.fixture
def run(played):
    return Runs(played.url)
