"""A deployment in one process and one thread: moto's tables and queues, and the real handlers.

Tables, their indexes and the functions' memory are those of template.yaml. What AWS does between the
handlers is done here and counted: it polls the queue, reads the stream, and invokes one function per message
or new item, the dearest way there is.
"""

import io
import json
import logging
import os
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml
from botocore.session import get_session
from moto import mock_aws

from bench.meter import Meter, Request, Table
from bench.prices import PLATFORM_LOG_BYTES, Invocations
from bench.units import Index, Item
from tests.partiql import teach
from tests.sandbox import load_app

ROOT = Path(__file__).parent.parent
REMAINING_MS = 100_000
TABLES = {
    "DefinitionsTable": "DEFINITIONS_TABLE",
    "InstancesTable": "INSTANCES_TABLE",
    "OutboxTable": "OUTBOX_TABLE",
    "BookmarksTable": "BOOKMARKS_TABLE",
    "TriggersTable": "TRIGGERS_TABLE",
}
QUEUES = ("COMMAND_QUEUE_URL", "COMMAND_DEAD_LETTER_QUEUE_URL", "TICK_QUEUE_URL")


class _TemplateLoader(yaml.SafeLoader):
    """Reads CloudFormation's short forms as what they wrap; nothing here depends on their meaning."""


def _unwrap(loader: yaml.SafeLoader, _: str, node: yaml.Node) -> Any:
    if isinstance(node, yaml.ScalarNode):
        return loader.construct_scalar(node)
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node, deep=True)
    return loader.construct_mapping(node, deep=True)


_TemplateLoader.add_multi_constructor("!", _unwrap)


def read_template() -> dict[str, Any]:
    """Return the template that is deployed."""
    template: dict[str, Any] = yaml.load((ROOT / "template.yaml").read_text(), _TemplateLoader)  # noqa: S506
    return template


class _Context:
    """What the runtime asks of Lambda's context."""

    function_name = memory_limit_in_mb = invoked_function_arn = aws_request_id = "bench"

    def get_remaining_time_in_millis(self) -> int:
        return REMAINING_MS


@dataclass
class Tally:
    """All that was counted between two points."""

    requests: list[Request] = field(default_factory=list)
    invocations: dict[str, Invocations] = field(default_factory=lambda: defaultdict(Invocations))
    api: int = 0
    received: int = 0
    deleted: int = 0
    sent: int = 0


class World:
    """The deployment; `tally` counts since it was last replaced."""

    def __init__(self) -> None:
        self.template = read_template()
        self.tally = Tally()
        self.stream: list[dict[str, Any]] = []
        self.log = io.StringIO()
        self._handlers: dict[str, ModuleType] = {}
        session = get_session()
        # Clients of the world's own: what they do is done by AWS, or by nobody.
        self.dynamodb: Any = session.create_client("dynamodb")
        self.sqs: Any = session.create_client("sqs")
        self.meter = Meter({}, self._read, self._on_insert)

    @property
    def memory_megabytes(self) -> int:
        """The functions' memory."""
        return int(self.template["Parameters"]["MemoryMegabytes"]["Default"])

    def create(self) -> None:
        """Create what the template declares."""
        for name, variable in TABLES.items():
            declared = self.template["Resources"][name]["Properties"]
            wanted = ("AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes", "BillingMode")
            self.dynamodb.create_table(
                TableName=variable, **{key: declared[key] for key in wanted if key in declared}
            )
            os.environ[variable] = variable
            self.meter.tables[variable] = _table_of(declared)
        for variable in QUEUES:
            os.environ[variable] = self.sqs.create_queue(QueueName=variable)["QueueUrl"]

    def watch(self) -> None:
        """Begin to count what the runtime's clients send."""
        from aftercommit import aws  # noqa: PLC0415 - the runtime reads its settings from what create() made

        for service in ("dynamodb", "sqs"):
            self.meter.watch(aws.client(service))
        # moto's own PartiQL knows no condition.
        teach(aws.client("dynamodb"), lambda table: self.meter.tables[table].key, self.dynamodb.update_item)

    def load(self, function: str) -> Any:
        """Return a function's handler."""
        if function not in self._handlers:
            self._handlers[function] = load_app(function)
            self._capture_log()
        return self._handlers[function].handler

    def _capture_log(self) -> None:
        for name in logging.root.manager.loggerDict:
            for handler in logging.getLogger(name).handlers:
                if isinstance(handler, logging.StreamHandler):
                    handler.setStream(self.log)

    def invoke(self, function: str, event: dict[str, Any]) -> Any:
        """Invoke a function as Lambda would."""
        handler = self.load(function)
        self.meter.function = function
        self.meter.requests = []
        self.log.seek(0)
        self.log.truncate()
        answer = handler(event, _Context())
        made = self.meter.requests
        invocations = self.tally.invocations[function]
        invocations.count += 1
        invocations.requests += len(made)
        invocations.log_bytes += len(self.log.getvalue().encode()) + PLATFORM_LOG_BYTES
        self.tally.requests += made
        self.tally.sent += sum(each.operation.startswith("SendMessage") for each in made)
        return answer

    def dispatch(self, workflow: str, inputs: dict[str, Any]) -> str:
        """Start a workflow through the API; returns the instance's id."""
        path = f"/workflows/{workflow}/dispatch"
        self.tally.api += 1
        answer = self.invoke(
            "api",
            {
                "version": "2.0",
                "rawPath": path,
                "headers": {"content-type": "application/json"},
                "requestContext": {"http": {"method": "POST", "path": path}, "stage": "$default"},
                "body": json.dumps({"input": inputs}),
                "isBase64Encoded": False,
            },
        )
        if answer["statusCode"] != 202:  # noqa: PLR2004 - HTTP's own
            raise RuntimeError(f"not dispatched: {answer}")
        instance_id: str = json.loads(answer["body"])["instance_id"]
        return instance_id

    def settle(self) -> None:
        """Deliver stream records and messages until there are none."""
        while self._deliver() or self._run():
            pass

    def _deliver(self) -> bool:
        if not self.stream:
            return False
        self.invoke("deliver", {"Records": [self.stream.pop(0)]})
        return True

    def _run(self) -> bool:
        received = self.sqs.receive_message(
            QueueUrl=os.environ["COMMAND_QUEUE_URL"], MaxNumberOfMessages=1, AttributeNames=["All"]
        ).get("Messages", [])
        for message in received:
            self.tally.received += 1
            record = {
                "messageId": message["MessageId"],
                "receiptHandle": message["ReceiptHandle"],
                "body": message["Body"],
                "attributes": message["Attributes"],
                "messageAttributes": {},
                "eventSource": "aws:sqs",
            }
            answer = self.invoke("run", {"Records": [record]})
            if answer["batchItemFailures"]:
                raise RuntimeError(f"command failed: {self.log.getvalue()}")
            self.sqs.delete_message(
                QueueUrl=os.environ["COMMAND_QUEUE_URL"], ReceiptHandle=message["ReceiptHandle"]
            )
            self.tally.deleted += 1
        return bool(received)

    def _read(self, table: str, key: Item) -> Item | None:
        item: Item | None = self.dynamodb.get_item(TableName=table, Key=key, ConsistentRead=True).get("Item")
        return item

    def _on_insert(self, table: str, key: Item, new: Item) -> None:
        # The mapping's filter: new items that are undone.
        if table == "OUTBOX_TABLE" and new.get("status") == {"S": "undone"}:
            self.stream.append({"eventName": "INSERT", "dynamodb": {"Keys": key, "NewImage": new}})


def _table_of(declared: dict[str, Any]) -> Table:
    key = tuple(each["AttributeName"] for each in declared["KeySchema"])
    indexes = []
    for each in declared.get("GlobalSecondaryIndexes", []):
        if each["Projection"]["ProjectionType"] != "KEYS_ONLY":
            raise NotImplementedError("indexes are counted as KEYS_ONLY")
        index_key = tuple(part["AttributeName"] for part in each["KeySchema"])
        indexes.append(Index(each["IndexName"], index_key, key))
    return Table(key, tuple(indexes))


@contextmanager
def deployed(workflows_module: str) -> Iterator[World]:
    """Deploy everything with the workflows of a module; afterwards, the environment is as it was."""
    before = dict(os.environ)
    os.environ.update(
        AWS_DEFAULT_REGION="us-east-1",
        AWS_ACCESS_KEY_ID="bench",
        AWS_SECRET_ACCESS_KEY="bench",  # noqa: S106 - moto takes any
        WORKFLOWS_MODULE=workflows_module,
        POWERTOOLS_LOG_LEVEL="INFO",
        POWERTOOLS_SERVICE_NAME="bench",
    )
    os.environ.pop("AWS_ENDPOINT_URL", None)
    try:
        with mock_aws():
            from aftercommit import aws, settings  # noqa: PLC0415 - read from the environment set above

            world = World()
            world.create()
            settings.settings.cache_clear()
            aws.forget_clients()
            from aftercommit.publish import publish_workflows  # noqa: PLC0415

            publish_workflows(workflows_module)
            world.watch()
            yield world
            settings.settings.cache_clear()
            aws.forget_clients()
    finally:
        os.environ.clear()
        os.environ.update(before)
        sys.modules.pop(workflows_module, None)
