"""The tables and queues as template.yaml declares them, so that tests and deployment cannot drift apart."""

from pathlib import Path
from typing import Any

import yaml

TEMPLATE = Path(__file__).parents[2] / "template.yaml"
# What create_table takes; the rest of a table's properties is set by calls of its own.
_CREATE = {"AttributeDefinitions", "BillingMode", "GlobalSecondaryIndexes", "KeySchema"}


class _Loader(yaml.SafeLoader):
    """Reads CloudFormation's short forms (!Ref, !GetAtt, ...) as what stands behind them."""


def _short_form(loader, _, node):
    if isinstance(node, yaml.ScalarNode):
        return loader.construct_scalar(node)
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node, deep=True)
    return loader.construct_mapping(node, deep=True)


_Loader.add_multi_constructor("!", _short_form)


def load_template() -> dict[str, Any]:
    loader = _Loader(TEMPLATE.read_text(encoding="utf-8"))
    try:
        return loader.get_single_data()
    finally:
        loader.dispose()


def tables() -> dict[str, dict[str, Any]]:
    """Return the arguments of create_table by the environment variable that bears the table's name."""
    template = load_template()
    variables = template["Globals"]["Function"]["Environment"]["Variables"]
    found = {}
    for variable, reference in variables.items():
        resource = template["Resources"].get(reference, {}) if isinstance(reference, str) else {}
        if resource.get("Type") == "AWS::DynamoDB::Table":
            properties = {key: value for key, value in resource["Properties"].items() if key in _CREATE}
            found[variable] = {"TableName": reference, **properties}
    return found


def queues() -> dict[str, str]:
    """Return the queues' names by the environment variable that bears the queue's address."""
    template = load_template()
    variables = template["Globals"]["Function"]["Environment"]["Variables"]
    return {
        variable: reference
        for variable, reference in variables.items()
        if isinstance(reference, str)
        and template["Resources"].get(reference, {}).get("Type") == "AWS::SQS::Queue"
    }
