"""What an evaluation may know of time and chance, so that a replay of it gives the same answer."""


class Draws:
    """The instant `at` (seconds since the epoch), and numbers that follow from `seed`."""

    __slots__ = ("at", "drawn", "seed")

    def __init__(self, at: float, seed: str) -> None:
        self.at = at
        self.seed = seed
        self.drawn = 0
