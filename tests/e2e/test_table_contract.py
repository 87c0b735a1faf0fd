"""The emulator's tables must do as DynamoDB does, as far as the runtime relies on it."""

from typing import ClassVar

import pytest

from tests.simulation.table_contract import CREATE, TABLE, TableContract


class TestEmulator(TableContract):
    differs: ClassVar = {"test_overlapping_paths_are_refused"}

    @pytest.fixture
    def dynamodb(self, stack):
        client = stack.client("dynamodb")
        client.create_table(**CREATE)
        client.get_waiter("table_exists").wait(TableName=TABLE, WaiterConfig={"Delay": 1})
        yield client
        client.delete_table(TableName=TABLE)
