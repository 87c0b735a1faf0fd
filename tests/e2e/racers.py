"""Processes that do one thing at the same moment, as workers of the runtime, on tables of their own."""

import multiprocessing
import os
import sys
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from aftercommit import aws, client, clock, commands, outbox, paging, views
from aftercommit import cancel as cancellation
from aftercommit import deliver as delivery
from aftercommit import sweep as sweeping
from aftercommit.burst import Worker
from aftercommit.client import StartRequest
from aftercommit.errors import ActivationRefusedError
from aftercommit.instances import find_head
from aftercommit.publish import load_workflows, publish_workflows
from aftercommit.queue import Message
from aftercommit.statuses import instance_status
from aftercommit.tables import ActivationRow, ItemRow, key_of
from tests.integration.template import queues, tables

RACERS = 8
HERE = Path(__file__).parent
_START_SECONDS_MAX = 120
_barrier = None


def _prepare(environment, barrier):
    """Make a process a worker: once per process, as in a sandbox."""
    global _barrier  # noqa: PLW0603 - a process has one
    _barrier = barrier
    os.environ.update(environment)
    sys.path.insert(0, environment.get("WORKFLOWS_PATH", str(HERE)))
    load_workflows(os.environ["WORKFLOWS_MODULE"])


def _take_part(action, arguments):
    return action(_wait, *arguments)


def _wait():
    _barrier.wait(_START_SECONDS_MAX)


class Racers:
    """Worker processes, eight if not told otherwise, with the workflows that the folder WORKFLOWS_PATH holds.

    `all_at_once` has each of them do the same; `one` has any of them do it.
    """

    def __init__(self, environment: Mapping[str, str], racers: int = RACERS) -> None:
        context = multiprocessing.get_context("spawn")
        self._racers = racers
        self._pool = ProcessPoolExecutor(
            racers, context, _prepare, (dict(environment), context.Barrier(racers))
        )

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)

    def all_at_once(self, action, *arguments):
        """Run an action in all processes, each starting when the last is ready; returns the results."""
        started = [self._pool.submit(_take_part, action, arguments) for _ in range(self._racers)]
        return [each.result() for each in started]

    def one(self, action, *arguments):
        return self._pool.submit(action, _go, *arguments).result()


def _go():
    pass


def tables_and_queues(stack, name: str) -> dict[str, str]:
    """Make tables and queues that nobody else works on, and return what leads workers to them."""
    names = {variable: f"{name}-{variable.lower()}" for variable in (*tables(), *queues())}
    for variable, arguments in tables().items():
        stack.client("dynamodb").create_table(**{**arguments, "TableName": names[variable]})
    for variable in queues():
        names[variable] = stack.client("sqs").create_queue(QueueName=names[variable])["QueueUrl"]
    return {
        **stack.environment,
        **names,
        "EAGER_DELIVERY": "false",  # so that all items are due at once
        "LEDGER_TABLE": stack.outputs["LedgerTable"],
        "POWERTOOLS_LOG_LEVEL": "CRITICAL",
        "POWERTOOLS_METRICS_DISABLED": "true",
        "WORKFLOWS_MODULE": "e2e_workflows",
    }


# --- actions: each first calls `ready`, which returns when all are ---


def publish(ready):
    ready()
    return publish_workflows(os.environ["WORKFLOWS_MODULE"])


def dispatch(ready, workflow, values, key=None):
    ready()
    return client.dispatch(StartRequest("default", workflow, values, idempotency_key=key))


def execute(ready, workflow, values, instance_id):
    ready()
    request = StartRequest("default", workflow, values, instance_id=instance_id)
    return client.execute(request, deadline=clock.now() + 30)


def dispatch_one(ready, workflow, values, correlation_id):
    """Start what is limited to one; returns (its id, None), or (None, the holder's id)."""
    ready()
    try:
        return client.dispatch(StartRequest("default", workflow, values, correlation_id)), None
    except ActivationRefusedError as error:
        return None, error.holder


def cancel_leaving_its_row(ready, instance_id):
    """End an instance as if its worker had died before it released what the instance held."""
    ready()
    key = find_head("default", instance_id).activation_key
    cancellation.cancel("default", instance_id, "enough")
    ActivationRow(key, "activation", holder=instance_id).save()


def claim(ready, owner_id, item_id):

    item = outbox.find_item("default", owner_id, item_id)
    ready()
    return outbox.claim(item, clock.now())


def deliver(ready, owner_id, item_id):
    ready()
    return delivery.deliver([(key_of("default", owner_id), item_id)])


def sweep(ready):
    ready()
    return sweeping.sweep(seconds_left=60)


def handle(ready, parts):
    """Serve a command message, as `run` does."""

    text = Message("default", **parts).to_text()
    ready()
    commands.handle(text, Worker(clock.now() + 30))


def show(ready, instance_id):
    ready()
    shown = views.show_instance("default", instance_id)
    return {**shown, "journal": views.show_journal("default", instance_id, paging.Page(100))["revisions"]}


def show_items(ready, owner_id):
    ready()
    return [views.show_item(row) for row in ItemRow.query(key_of("default", owner_id), consistent_read=True)]


def drain(ready, limit=1000):
    """Serve what is in the command queue, as late deliveries; returns how many there were."""
    ready()
    url, served = os.environ["COMMAND_QUEUE_URL"], 0
    while served < limit:
        found = aws.client("sqs").receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", [])
        if not found:
            break
        for message in found:
            commands.handle(message["Body"], Worker(clock.now() + 30))
            aws.client("sqs").delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
            served += 1
    return served


def serve_until_ended(ready, instance_ids, seconds):
    """Sweep and serve, beside others who do the same, until all these have ended; tells whether they have."""
    ready()
    live, until = list(instance_ids), clock.now() + seconds
    while live and clock.now() < until:
        sweeping.sweep(seconds_left=60)
        drain(_go, limit=1)
        live = [each for each in live if not instance_status(find_head("default", each).status).ended]
    return not live
