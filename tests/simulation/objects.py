"""S3 at the boundary of its client: an in-memory bucket, strongly consistent as S3 is."""

import io
from typing import Any

from tests.simulation.dynamodb import failed


class Objects:
    """The objects of the one bucket. `ever` keeps what was removed since."""

    def __init__(self) -> None:
        self.now: dict[str, bytes] = {}
        self.ever: dict[str, bytes] = {}

    def perform(self, operation: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Answer one call."""
        if operation == "ListObjectsV2":
            # A page of one: whoever lists must go on.
            found = [key for key in sorted(self.now) if key.startswith(arguments["Prefix"])]
            left = [key for key in found if key > arguments.get("ContinuationToken", "")]
            more = {"IsTruncated": True, "NextContinuationToken": left[0]} if len(left) > 1 else {}
            return {"Contents": [{"Key": key} for key in left[:1]], **more}
        key = arguments["Key"]
        if operation == "PutObject":
            self.now[key] = self.ever[key] = arguments["Body"]
            return {}
        if operation == "DeleteObject":
            self.now.pop(key, None)
            return {}
        if operation == "GetObject":
            if key not in self.now:
                raise failed("NoSuchKey", "The specified key does not exist.", operation)
            return {"Body": io.BytesIO(self.now[key])}
        raise NotImplementedError(operation)
