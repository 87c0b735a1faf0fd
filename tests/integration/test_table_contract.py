"""The simulation's table model and moto must both do as DynamoDB does; tests/e2e asks the emulator."""

from typing import ClassVar

import pytest
from moto import mock_aws

from aftercommit import aws
from tests.partiql import teach
from tests.simulation.dynamodb import DynamoDB, Index, Table
from tests.simulation.table_contract import CREATE, TABLE, TableContract


class TestModel(TableContract):
    @pytest.fixture
    def dynamodb(self):
        table = Table(TABLE, "owner", "row", {"due": Index("shard", "due")})
        return DynamoDB([table], now=lambda: 1000.0)


@pytest.fixture(scope="module")
def moto():
    # A client takes long to make, so all tests share one; each has a table of its own.
    with pytest.MonkeyPatch.context() as environment, mock_aws():
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            environment.setenv(name, "testing")
        environment.setenv("AWS_DEFAULT_REGION", "us-east-1")
        environment.delenv("AWS_ENDPOINT_URL", raising=False)
        aws.forget_clients()
        client = aws.client("dynamodb")
        teach(client, lambda _: ("owner", "row"))  # its own PartiQL knows no condition
        yield client
        aws.forget_clients()


class TestMoto(TableContract):
    differs: ClassVar = {
        "test_batch_takes_25_removals",
        "test_row_of_400_kb_is_stored_and_a_larger_one_refused",  # it refuses a little earlier
        "test_same_request_token_applies_once",
        "test_transaction_takes_4_mb",
        "test_page_that_meets_its_limit_says_where_to_go_on",
    }

    @pytest.fixture
    def dynamodb(self, moto):
        moto.create_table(**CREATE)
        yield moto
        moto.delete_table(TableName=TABLE)
