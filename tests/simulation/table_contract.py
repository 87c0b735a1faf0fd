"""What every stand-in for DynamoDB must do as DynamoDB does: one suite for the model, moto and the emulator.

A test class that inherits TableContract gives the fixture `dynamodb`: a client with an empty table named
TABLE in it. Expressions are written as PynamoDB writes them. What a stand-in is known to do otherwise (see
each class) is listed in `differs`, and then not asked of it.
"""

from typing import Any, ClassVar

import pytest
from botocore.exceptions import ClientError

TABLE = "contract"
CREATE = {
    "TableName": TABLE,
    "BillingMode": "PAY_PER_REQUEST",
    "AttributeDefinitions": [
        {"AttributeName": "owner", "AttributeType": "S"},
        {"AttributeName": "row", "AttributeType": "S"},
        {"AttributeName": "shard", "AttributeType": "N"},
        {"AttributeName": "due", "AttributeType": "S"},
    ],
    "KeySchema": [
        {"AttributeName": "owner", "KeyType": "HASH"},
        {"AttributeName": "row", "KeyType": "RANGE"},
    ],
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "due",
            "KeySchema": [
                {"AttributeName": "shard", "KeyType": "HASH"},
                {"AttributeName": "due", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        }
    ],
}


def item(owner: str, row: str, **more: Any) -> dict[str, Any]:
    """Return an item in DynamoDB's form, from text and numbers."""
    plain = {"owner": owner, "row": row, **more}
    return {name: {"S": each} if isinstance(each, str) else {"N": str(each)} for name, each in plain.items()}


def key(owner: str, row: str) -> dict[str, Any]:
    """Return a key in DynamoDB's form."""
    return item(owner, row)


def put(owner: str, row: str, condition: str | None = None, names=None, values=None, **more: Any):
    """Return a put's arguments."""
    return _arguments(condition, names, values) | {"TableName": TABLE, "Item": item(owner, row, **more)}


def update(owner: str, row: str, text: str, names, values=None, condition: str | None = None):
    """Return an update's arguments."""
    expressions = {"UpdateExpression": text, "ReturnValues": "ALL_NEW"}
    return _arguments(condition, names, values) | expressions | {"TableName": TABLE, "Key": key(owner, row)}


def delete(owner: str, row: str, condition: str | None = None, names=None, values=None):
    """Return a delete's arguments."""
    return _arguments(condition, names, values) | {"TableName": TABLE, "Key": key(owner, row)}


def _arguments(condition, names, values):
    given = {
        "ConditionExpression": condition,
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": values,
    }
    return {name: each for name, each in given.items() if each}


def code_of(call, **arguments) -> str:
    """Return the error code that a call is refused with."""
    with pytest.raises(ClientError) as refused:
        call(**arguments)
    return refused.value.response["Error"]["Code"]


FAILED = "ConditionalCheckFailedException"
INVALID = "ValidationException"

# (condition, holds for {text: "b", number: 2, words: ["x"]}), in the grammar that PynamoDB writes.
CONDITIONS = [
    ("attribute_exists (#0)", {"#0": "text"}, {}, True),
    ("attribute_exists (#0)", {"#0": "none"}, {}, False),
    ("attribute_not_exists (#0)", {"#0": "none"}, {}, True),
    ("attribute_not_exists (#0)", {"#0": "text"}, {}, False),
    ("#0 = :0", {"#0": "text"}, {":0": {"S": "b"}}, True),
    ("#0 = :0", {"#0": "text"}, {":0": {"S": "c"}}, False),
    ("#0 = :0", {"#0": "none"}, {":0": {"S": "b"}}, False),
    ("#0 = :0", {"#0": "number"}, {":0": {"N": "2.0"}}, True),
    ("#0 = :0", {"#0": "number"}, {":0": {"S": "2"}}, False),
    ("#0 <> :0", {"#0": "text"}, {":0": {"S": "c"}}, True),
    ("#0 <> :0", {"#0": "text"}, {":0": {"S": "b"}}, False),
    ("#0 <> :0", {"#0": "none"}, {":0": {"S": "b"}}, True),
    ("#0 < :0", {"#0": "text"}, {":0": {"S": "c"}}, True),
    ("#0 < :0", {"#0": "text"}, {":0": {"S": "b"}}, False),
    ("#0 < :0", {"#0": "none"}, {":0": {"S": "c"}}, False),
    ("#0 <= :0", {"#0": "number"}, {":0": {"N": "10"}}, True),
    ("#0 > :0", {"#0": "number"}, {":0": {"N": "10"}}, False),
    ("#0 >= :0", {"#0": "text"}, {":0": {"S": "b"}}, True),
    ("#0 BETWEEN :0 AND :1", {"#0": "text"}, {":0": {"S": "a"}, ":1": {"S": "b"}}, True),
    ("#0 BETWEEN :0 AND :1", {"#0": "text"}, {":0": {"S": "c"}, ":1": {"S": "d"}}, False),
    ("#0 IN (:0, :1)", {"#0": "text"}, {":0": {"S": "a"}, ":1": {"S": "b"}}, True),
    ("#0 IN (:0)", {"#0": "none"}, {":0": {"S": "a"}}, False),
    ("(NOT #0 IN (:0))", {"#0": "none"}, {":0": {"S": "a"}}, True),
    ("begins_with (#0, :0)", {"#0": "text"}, {":0": {"S": "b"}}, True),
    ("contains (#0, :0)", {"#0": "words"}, {":0": {"S": "x"}}, True),
    ("contains (#0, :0)", {"#0": "text"}, {":0": {"S": "z"}}, False),
    ("attribute_type (#0, :0)", {"#0": "number"}, {":0": {"S": "N"}}, True),
    ("size (#0) > :0", {"#0": "text"}, {":0": {"N": "0"}}, True),
    (
        "(#0 = :0 AND (attribute_not_exists (#1) OR #2 <= :1))",
        {"#0": "text", "#1": "number", "#2": "number"},
        {":0": {"S": "b"}, ":1": {"N": "2"}},
        True,
    ),
    (
        "(#0 = :0 OR (#1 = :1 AND #0 = :1))",
        {"#0": "text", "#1": "none"},
        {":0": {"S": "a"}, ":1": {"S": "b"}},
        False,
    ),
]


class TableContract:
    """The suite."""

    differs: ClassVar[set[str]] = set()

    @pytest.fixture(autouse=True)
    def _known_differences(self, request):
        if request.node.originalname in self.differs:
            pytest.skip("known to differ from DynamoDB here")

    # --- conditions ---

    @pytest.mark.parametrize(("condition", "names", "values", "holds"), CONDITIONS)
    def test_condition_decides_whether_a_write_happens(self, dynamodb, condition, names, values, holds):
        row = item("a", "1", text="b", number=2) | {"words": {"L": [{"S": "x"}]}}
        dynamodb.put_item(TableName=TABLE, Item=row)
        write = delete("a", "1", condition, names, values)
        if holds:
            dynamodb.delete_item(**write)
        else:
            assert code_of(dynamodb.delete_item, **write) == FAILED
        assert ("Item" in dynamodb.get_item(TableName=TABLE, Key=key("a", "1"))) is not holds

    def test_put_if_absent_has_one_winner(self, dynamodb):
        absent = {"condition": "attribute_not_exists (#0)", "names": {"#0": "owner"}}
        dynamodb.put_item(**put("a", "1", by="first", **absent))
        assert code_of(dynamodb.put_item, **put("a", "1", by="second", **absent)) == FAILED
        read = dynamodb.get_item(TableName=TABLE, Key=key("a", "1"), ConsistentRead=True)
        assert read["Item"] == item("a", "1", by="first")

    def test_put_replaces_the_whole_row(self, dynamodb):
        dynamodb.put_item(**put("a", "1", old="x"))
        dynamodb.put_item(**put("a", "1", new="y"))
        assert dynamodb.get_item(TableName=TABLE, Key=key("a", "1"))["Item"] == item("a", "1", new="y")

    def test_failed_condition_shows_the_row_if_asked(self, dynamodb):
        dynamodb.put_item(**put("a", "1", by="first"))
        write = put("a", "1", "attribute_not_exists (#0)", {"#0": "owner"})
        with pytest.raises(ClientError) as refused:
            dynamodb.put_item(**write, ReturnValuesOnConditionCheckFailure="ALL_OLD")
        assert refused.value.response["Item"] == item("a", "1", by="first")

    # --- updates ---

    def test_update_sets_adds_and_removes(self, dynamodb):
        dynamodb.put_item(**put("a", "1", sends=1, due="x", shard=0))
        names = {"#0": "sends", "#1": "due", "#2": "status"}
        values = {":0": {"N": "2"}, ":1": {"S": "done"}}
        answer = dynamodb.update_item(**update("a", "1", "SET #2 = :1 REMOVE #1 ADD #0 :0", names, values))
        assert answer["Attributes"] == item("a", "1", sends=3, status="done", shard=0)

    def test_update_reads_all_operands_before_it_writes(self, dynamodb):
        dynamodb.put_item(**put("a", "1", x=1, y=2))
        answer = dynamodb.update_item(**update("a", "1", "SET #0 = #1, #1 = #0", {"#0": "x", "#1": "y"}))
        assert answer["Attributes"] == item("a", "1", x=2, y=1)

    def test_if_not_exists_gives_a_default(self, dynamodb):
        text = "SET #0 = if_not_exists (#0, :0) + :1, #1 = if_not_exists (#1, :2)"
        names, values = (
            {"#0": "leases", "#1": "due"},
            {":0": {"N": "0"}, ":1": {"N": "1"}, ":2": {"S": "now"}},
        )
        first = dynamodb.update_item(**update("a", "1", text, names, values))
        assert first["Attributes"] == item("a", "1", leases=1, due="now")
        values[":2"] = {"S": "later"}
        second = dynamodb.update_item(**update("a", "1", text, names, values))
        assert second["Attributes"] == item("a", "1", leases=2, due="now")

    def test_update_creates_the_row_unless_its_condition_fails(self, dynamodb):
        set_x = ("SET #0 = :0", {"#0": "x"}, {":0": {"N": "1"}})
        assert code_of(dynamodb.update_item, **update("a", "1", *set_x, "attribute_exists (#0)")) == FAILED
        assert "Item" not in dynamodb.get_item(TableName=TABLE, Key=key("a", "1"))
        dynamodb.update_item(**update("a", "1", *set_x))
        assert dynamodb.get_item(TableName=TABLE, Key=key("a", "1"))["Item"] == item("a", "1", x=1)

    def test_update_from_a_missing_attribute_is_refused(self, dynamodb):
        dynamodb.put_item(**put("a", "1"))
        write = update("a", "1", "SET #0 = #1", {"#0": "x", "#1": "missing"})
        assert code_of(dynamodb.update_item, **write) == INVALID

    def test_update_of_a_key_is_refused(self, dynamodb):
        write = update("a", "1", "SET #0 = :0", {"#0": "row"}, {":0": {"S": "2"}})
        assert code_of(dynamodb.update_item, **write) == INVALID

    def test_overlapping_paths_are_refused(self, dynamodb):
        write = update("a", "1", "SET #0 = :0, #1 = :0", {"#0": "x", "#1": "x"}, {":0": {"S": "2"}})
        assert code_of(dynamodb.update_item, **write) == INVALID

    def test_values_that_no_expression_uses_are_refused(self, dynamodb):
        write = update("a", "1", "SET #0 = :0", {"#0": "x"}, {":0": {"S": "2"}, ":1": {"S": "3"}})
        assert code_of(dynamodb.update_item, **write) == INVALID

    # --- sizes and keys ---

    def test_row_of_400_kb_is_stored_and_a_larger_one_refused(self, dynamodb):
        size = 400 * 1024 - len("ownera" + "row1" + "text")
        dynamodb.put_item(**put("a", "1", text="x" * size))
        assert code_of(dynamodb.put_item, **put("a", "1", text="x" * (size + 1))) == INVALID

    def test_row_that_an_update_makes_too_large_is_refused(self, dynamodb):
        dynamodb.put_item(**put("a", "1", text="x" * 300_000))
        write = update("a", "1", "SET #0 = :0", {"#0": "more"}, {":0": {"S": "x" * 200_000}})
        assert code_of(dynamodb.update_item, **write) == INVALID

    def test_empty_key_is_refused(self, dynamodb):
        assert code_of(dynamodb.put_item, **put("a", "")) == INVALID

    # --- reads ---

    def test_query_gives_one_partition_in_order(self, dynamodb):
        for row in ("revision#02", "head", "revision#10", "revision#01"):
            dynamodb.put_item(**put("a", row))
        dynamodb.put_item(**put("b", "revision#01"))
        found = dynamodb.query(
            TableName=TABLE,
            KeyConditionExpression="(#0 = :0 AND #1 BETWEEN :1 AND :2)",
            ExpressionAttributeNames={"#0": "owner", "#1": "row"},
            ExpressionAttributeValues={
                ":0": {"S": "a"},
                ":1": {"S": "revision#"},
                ":2": {"S": "revision#09"},
            },
            ConsistentRead=True,
        )
        assert [each["row"]["S"] for each in found["Items"]] == ["revision#01", "revision#02"]

    def test_query_goes_backwards_and_begins_with(self, dynamodb):
        for row in ("x#1", "x#2", "y#1"):
            dynamodb.put_item(**put("a", row))
        found = dynamodb.query(
            TableName=TABLE,
            KeyConditionExpression="(#0 = :0 AND begins_with (#1, :1))",
            ExpressionAttributeNames={"#0": "owner", "#1": "row"},
            ExpressionAttributeValues={":0": {"S": "a"}, ":1": {"S": "x#"}},
            ScanIndexForward=False,
        )
        assert [each["row"]["S"] for each in found["Items"]] == ["x#2", "x#1"]

    def _due(self, dynamodb, until="9", **more):
        return dynamodb.query(
            TableName=TABLE,
            IndexName="due",
            KeyConditionExpression="(#0 = :0 AND #1 <= :1)",
            ExpressionAttributeNames={"#0": "shard", "#1": "due"},
            ExpressionAttributeValues={":0": {"N": "0"}, ":1": {"S": until}},
            **more,
        )

    def test_index_is_sparse_sorted_and_has_keys_only(self, dynamodb):
        dynamodb.put_item(**put("a", "1", shard=0, due="5", text="x"))
        dynamodb.put_item(**put("b", "1", shard=0, due="3"))
        dynamodb.put_item(**put("c", "1", shard=0))
        dynamodb.put_item(**put("d", "1", shard=1, due="1"))
        dynamodb.put_item(**put("e", "1", shard=0, due="8"))
        found = self._due(dynamodb, until="5")["Items"]
        assert found == [item("b", "1", shard=0, due="3"), item("a", "1", shard=0, due="5")]

    def test_row_leaves_the_index_with_its_attribute(self, dynamodb):
        dynamodb.put_item(**put("a", "1", shard=0, due="5"))
        dynamodb.update_item(**update("a", "1", "REMOVE #0", {"#0": "due"}))
        assert self._due(dynamodb)["Items"] == []

    def test_pages_follow_each_other(self, dynamodb):
        for number in range(5):
            dynamodb.put_item(**put(f"owner-{number}", "1", shard=0, due=str(number // 2)))
        found, start = [], {}
        for _ in range(10):
            page = self._due(dynamodb, Limit=2, **start)
            found += [each["owner"]["S"] for each in page["Items"]]
            assert len(page["Items"]) <= 2
            if "LastEvaluatedKey" not in page:
                break
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}
        assert sorted(found) == [f"owner-{number}" for number in range(5)]

    def test_page_that_meets_its_limit_says_where_to_go_on(self, dynamodb):
        dynamodb.put_item(**put("a", "1", shard=0, due="5"))
        page = self._due(dynamodb, Limit=1)
        assert page["LastEvaluatedKey"] == item("a", "1", shard=0, due="5")

    def test_batch_get_leaves_out_what_is_missing(self, dynamodb):
        dynamodb.put_item(**put("a", "1", x=1))
        asked = {TABLE: {"Keys": [key("a", "1"), key("a", "2")], "ConsistentRead": True}}
        found = dynamodb.batch_get_item(RequestItems=asked)
        assert found["Responses"] == {TABLE: [item("a", "1", x=1)]}
        assert found["UnprocessedKeys"] == {}

    def test_scan_filters(self, dynamodb):
        for number in range(3):
            dynamodb.put_item(**put("a", str(number), x=number))
        found = dynamodb.scan(
            TableName=TABLE,
            FilterExpression="#0 > :0",
            ExpressionAttributeNames={"#0": "x"},
            ExpressionAttributeValues={":0": {"N": "0"}},
        )
        assert (found["Count"], found["ScannedCount"]) == (2, 3)

    def test_get_projects(self, dynamodb):
        dynamodb.put_item(**put("a", "1", x=1, y=2))
        found = dynamodb.get_item(
            TableName=TABLE,
            Key=key("a", "1"),
            ProjectionExpression="#0",
            ExpressionAttributeNames={"#0": "y"},
        )
        assert found["Item"] == {"y": {"N": "2"}}

    # --- many updates in one request, each by itself ---

    def _statement(self, row, *, expected=1, owner="a"):
        changes = 'SET "x" = ? SET "status" = ? REMOVE "due"'
        text = f'UPDATE "{TABLE}" {changes} WHERE "owner" = ? AND "row" = ? AND "x" = ?'
        values = [{"N": "2"}, {"S": "done"}, {"S": owner}, {"S": row}, {"N": str(expected)}]
        return {"Statement": text, "Parameters": values}

    def test_statements_of_a_batch_win_and_lose_apart(self, dynamodb):
        for row in ("1", "2", "3"):
            dynamodb.put_item(**put("a", row, x=1, shard=0, due="1"))
        statements = [self._statement("1"), self._statement("2", expected=7), self._statement("3")]
        answer = dynamodb.batch_execute_statement(Statements=statements)
        codes = [each.get("Error", {}).get("Code") for each in answer["Responses"]]
        assert codes == [None, "ConditionalCheckFailed", None]
        found = dynamodb.scan(TableName=TABLE)["Items"]
        assert sorted((each["row"]["S"], each["x"]["N"]) for each in found) == [
            ("1", "2"),
            ("2", "1"),
            ("3", "2"),
        ]
        assert [each["row"]["S"] for each in self._due(dynamodb)["Items"]] == ["2"]

    def test_a_statement_updates_no_row_that_is_not_there_and_makes_none(self, dynamodb):
        answer = dynamodb.batch_execute_statement(Statements=[self._statement("1"), self._statement("2")])
        codes = {each["Error"]["Code"] for each in answer["Responses"]}
        assert codes == {"ConditionalCheckFailed"}
        assert dynamodb.scan(TableName=TABLE)["Items"] == []

    def test_a_statement_without_the_attribute_that_it_expects_loses(self, dynamodb):
        dynamodb.put_item(**put("a", "1"))
        dynamodb.put_item(**put("a", "2", x=1))
        answer = dynamodb.batch_execute_statement(Statements=[self._statement("1"), self._statement("2")])
        assert [("Error" in each) for each in answer["Responses"]] == [True, False]

    def test_a_batch_takes_25_statements(self, dynamodb):
        for row in range(26):
            dynamodb.put_item(**put("a", str(row), x=1))
        statements = [self._statement(str(row)) for row in range(26)]
        assert code_of(dynamodb.batch_execute_statement, Statements=statements) == INVALID
        answer = dynamodb.batch_execute_statement(Statements=statements[:25])
        assert [("Error" in each) for each in answer["Responses"]] == [False] * 25

    # --- transactions ---

    def test_transaction_happens_whole(self, dynamodb):
        dynamodb.put_item(**put("a", "2", x=1))
        dynamodb.put_item(**put("a", "3"))
        change = update("a", "2", "SET #0 = :0", {"#0": "x"}, {":0": {"N": "2"}}, "attribute_exists (#0)")
        del change["ReturnValues"]
        dynamodb.transact_write_items(
            TransactItems=[
                {"ConditionCheck": delete("a", "9", "attribute_not_exists (#0)", {"#0": "owner"})},
                {"Delete": delete("a", "3")},
                {"Put": put("a", "1", "attribute_not_exists (#0)", {"#0": "owner"})},
                {"Update": change},
            ]
        )
        found = dynamodb.scan(TableName=TABLE)["Items"]
        assert sorted(each["row"]["S"] for each in found) == ["1", "2"]
        assert dynamodb.get_item(TableName=TABLE, Key=key("a", "2"))["Item"] == item("a", "2", x=2)

    def test_batch_takes_25_removals(self, dynamodb):
        removals = [{"DeleteRequest": {"Key": key("a", str(number))}} for number in range(26)]
        assert code_of(dynamodb.batch_write_item, RequestItems={TABLE: removals}) == INVALID

    def test_batch_removes_what_is_there(self, dynamodb):
        for number in range(25):
            dynamodb.put_item(**put("a", str(number)))
        removals = [{"DeleteRequest": {"Key": key("a", str(number))}} for number in range(1, 26)]
        answer = dynamodb.batch_write_item(RequestItems={TABLE: removals})
        assert not answer.get("UnprocessedItems")
        assert [each["row"]["S"] for each in dynamodb.scan(TableName=TABLE)["Items"]] == ["0"]

    def test_transaction_happens_not_at_all_and_says_which_condition_failed(self, dynamodb):
        dynamodb.put_item(**put("a", "1", by="first"))
        absent = {"condition": "attribute_not_exists (#0)", "names": {"#0": "owner"}}
        losing = put("a", "1", **absent) | {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
        with pytest.raises(ClientError) as refused:
            dynamodb.transact_write_items(TransactItems=[{"Put": put("a", "2", **absent)}, {"Put": losing}])
        answer = refused.value.response
        assert answer["Error"]["Code"] == "TransactionCanceledException"
        assert [each["Code"] for each in answer["CancellationReasons"]] == ["None", "ConditionalCheckFailed"]
        assert answer["CancellationReasons"][1]["Item"] == item("a", "1", by="first")
        assert "Item" not in dynamodb.get_item(TableName=TABLE, Key=key("a", "2"))

    def test_same_request_token_applies_once(self, dynamodb):
        adding = update("a", "1", "ADD #0 :0", {"#0": "x"}, {":0": {"N": "1"}})
        del adding["ReturnValues"]
        for _ in range(2):
            dynamodb.transact_write_items(TransactItems=[{"Update": adding}], ClientRequestToken="token-1")
        assert dynamodb.get_item(TableName=TABLE, Key=key("a", "1"))["Item"] == item("a", "1", x=1)

    def test_transaction_takes_one_action_per_row(self, dynamodb):
        twice = [{"Put": put("a", "1")}, {"Delete": delete("a", "1")}]
        assert code_of(dynamodb.transact_write_items, TransactItems=twice) == INVALID

    def test_transaction_takes_100_actions(self, dynamodb):
        actions = [{"Put": put("a", str(number))} for number in range(101)]
        assert code_of(dynamodb.transact_write_items, TransactItems=actions) == INVALID
        dynamodb.transact_write_items(TransactItems=actions[:100])

    def test_transaction_takes_4_mb(self, dynamodb):
        actions = [{"Put": put("a", str(number), text="x" * 390_000)} for number in range(11)]
        assert code_of(dynamodb.transact_write_items, TransactItems=actions) == INVALID
