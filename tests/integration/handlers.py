"""The functions' handlers, loaded as Lambda does, the events they get, and what they answer."""

import copy
import json
import logging
from pathlib import Path

from aftercommit.log import logger
from tests.described import check_answer
from tests.sandbox import load_app

ROOT = Path(__file__).parents[2]
EVENTS = ROOT / "events"

# Inputs of the example workflows.
ORDER = {
    "order_id": "o-1",
    "customer": "Zoë",
    "amount": 5,
    "address": "1 Street",
    "items": [{"sku": "mug", "quantity": 2}],
}
RECEIPT = {"order_id": "o-1", "customer": "Zoë", "amount": 5}


class Context:
    """What Lambda tells an invocation about itself."""

    function_name = "function"
    function_version = "1"
    memory_limit_in_mb = 512
    invoked_function_arn = "arn:aws:lambda:us-east-1:123456789012:function:function"
    aws_request_id = "request-1"

    def __init__(self, seconds=120):
        self.seconds = seconds

    def get_remaining_time_in_millis(self):
        return self.seconds * 1000


def load_handler(name):
    return load_app(name).handler


def sample(name):
    return json.loads((EVENTS / f"{name}.json").read_text(encoding="utf-8"))


def command_event(*bodies):
    """Return an event of the command queue with these messages, numbered from message-0."""
    event = sample("run-command")
    [record] = event["Records"]
    event["Records"] = [
        {**copy.deepcopy(record), "messageId": f"message-{number}", "body": body}
        for number, body in enumerate(bodies)
    ]
    return event


def stream_event(*keys):
    event = sample("deliver-new-item")
    [record] = event["Records"]
    records = []
    for owner_key, item_id in keys:
        each = copy.deepcopy(record)
        each["dynamodb"]["Keys"] = {"owner_key": {"S": owner_key}, "item_id": {"S": item_id}}
        records.append(each)
    event["Records"] = records
    return event


class Api:
    """Calls the api function as API Gateway does; each answer must be one that the description tells of."""

    def __init__(self):
        self.handler = load_handler("api")
        self.texts = []

    def call(self, method, path, body=None, **more):
        answer = self.raw(method, path, body, **more)
        return answer["statusCode"], json.loads(answer["body"])

    def raw(self, method, path, body=None, *, query=None, headers=None, base64_encoded=False, claims=None):
        """Return the answer as Lambda gives it to API Gateway; `claims` are those of the caller's token."""
        event = sample("api-dispatch")
        event["rawPath"] = event["requestContext"]["http"]["path"] = path
        event["requestContext"]["http"]["method"] = method
        event["headers"] = {"host": "example", **(headers or {})}
        event["queryStringParameters"] = query
        if claims is not None:
            event["requestContext"]["authorizer"] = {"jwt": {"claims": claims, "scopes": None}}
        event.pop("pathParameters")
        event["isBase64Encoded"] = base64_encoded
        event["body"] = body if body is None or isinstance(body, str) else json.dumps(body)
        answer = self.handler(event, Context())
        json.dumps(answer).encode()  # what Lambda does with it
        check_answer(method, path, answer)
        self.texts.append(answer["body"])
        return answer

    def get(self, path, **more):
        return self.call("GET", path, **more)

    def post(self, path, body=None, **more):
        return self.call("POST", path, body, **more)


class Lines(logging.Handler):
    """Takes down what the runtime logs, as it is written."""

    def __init__(self):
        super().__init__()
        self.setFormatter(logger.registered_formatter)
        self.lines = []

    def emit(self, record):
        self.lines.append(self.format(record))


def error_of(answer, status, code, field=None):
    """Return the message of an answer, which has to be this error."""
    assert answer[0] == status
    error = answer[1]["error"]
    assert (error["code"], error.get("field")) == (code, field)
    assert error["message"]
    return error["message"]
