"""More than a row can hold, deployed: from caller to parent, to child, and back."""

from tests.e2e.conftest import await_that

TEXT = "payload " * 40_000  # 320 KB; doubled, it is more than any row of DynamoDB has room for


def objects(stack):
    found = stack.client("s3").list_objects_v2(Bucket=stack.outputs["PayloadBucket"]).get("Contents", [])
    return [each["Key"] for each in found]


def test_large_inputs_and_outputs_come_back_whole_and_stand_in_no_row(api, stack, effects):
    instance_id = api.dispatch("heavy", order_id="heavy-1", text=TEXT)
    shown = api.await_end(instance_id)
    assert (shown["status"], shown["output"] == TEXT * 2) == ("completed", True)
    assert [name for name, _ in effects("heavy-1")] == ["repeat", "repeat"]
    [dispatch] = shown["dispatches"]
    child = dispatch["instance_id"]
    tenants = {tuple(key.split("/")[:2]) for key in objects(stack)}
    assert {("default", instance_id), ("default", child)} <= tenants
    for each in (instance_id, child):
        rows = stack.client("dynamodb").query(
            TableName=stack.outputs["InstancesTable"],
            KeyConditionExpression="instance_key = :key",
            ExpressionAttributeValues={":key": {"S": f"default#{each}"}},
        )["Items"]
        announced = [row for row in rows if row["row"]["S"].startswith("payloads#")]
        assert announced
        assert not [row for row in announced if "due_at" in row], "each belongs to its commit"
        assert max(len(str(row)) for row in rows) < 64 * 1024


def test_only_one_snapshot_of_an_instance_is_kept(api, stack):
    instance_id = api.dispatch("heavy", order_id="heavy-2", text=TEXT)
    api.await_end(instance_id)
    kept = [key for key in objects(stack) if f"/{instance_id}/" in key and key.endswith("/snapshot")]
    assert len(kept) == 1


def test_an_execution_over_the_api_keeps_one_snapshot_too(api, stack):
    answer = api.post("/workflows/heavy/execute", {"input": {"order_id": "heavy-4", "text": TEXT}})
    assert answer.status == 200, answer.body
    shown = api.await_end(answer.json()["instance_id"])
    assert (shown["status"], shown["output"] == TEXT * 2) == ("completed", True)
    kept = [key for key in objects(stack) if f"/{shown['instance_id']}/" in key and key.endswith("/snapshot")]
    assert len(kept) == 1


def test_objects_whose_commit_never_came_are_removed_by_the_sweep(stack):
    key = {"instance_key": {"S": "default#never-born"}, "row": {"S": "payloads#lost"}}
    overdue = {"due_shard": {"N": "2000"}, "due_at": {"S": "2026-01-01T00:00:00.000Z"}}
    name = "default/never-born/lost/snapshot"
    stack.client("s3").put_object(Bucket=stack.outputs["PayloadBucket"], Key=name, Body=b"{}")
    table = stack.outputs["InstancesTable"]
    stack.client("dynamodb").put_item(TableName=table, Item={**key, **overdue})
    await_that(lambda: name not in objects(stack))
    row = stack.client("dynamodb").get_item(TableName=table, Key=key, ConsistentRead=True)["Item"]
    assert row["doomed"] == {"BOOL": True}


def test_an_input_that_is_too_large_even_so_is_refused_by_field(api):
    answer = api.post(
        "/workflows/heavy/dispatch", {"input": {"order_id": "heavy-3", "text": "x" * 2_200_000}}
    )
    assert (answer.status, answer.json()["error"]["field"]) == (413, "input")
