"""The logger: structured lines with ids, never with inputs."""

from aws_lambda_powertools import Logger

logger = Logger(service="aftercommit")
