"""What the demo and the load run do meanwhile: a thread of its own, as long as a context is open."""

import threading
from typing import Self


class Background:
    """Does its work in a thread; `check`, and the end of the context, raise what went wrong there."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        if kind is None:
            self.check()

    def work(self) -> None:
        """Work until the end, or until `is_stopped`."""
        raise NotImplementedError

    def is_stopped(self, after_seconds: float = 0.0) -> bool:
        """Tell whether the context closes, waiting that long for it at most."""
        return self._stop.wait(after_seconds)

    def check(self) -> None:
        """Raise what ended the work, if something did."""
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            self.work()
        except Exception as error:  # noqa: BLE001 - raised again where it is seen
            self._error = error
