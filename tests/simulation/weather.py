"""How the services between the workers behave: how late, how often, how far behind."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Weather:
    """How the services between the workers behave. Shares are between 0 and 1, times in seconds."""

    name: str
    duplicates: float = 0.0  # messages and stream batches that come twice
    lost: float = 0.0  # messages that never come
    delay: float = 0.02  # usual time on the way
    long_delay: float = 0.0  # share of messages that take up to two minutes
    index_lag: float = 0.0  # how far an index may be behind
    failing_reads: float = 0.0  # share of reads that bring no answer


CALM = Weather("calm")
DOUBLED = Weather("doubled", duplicates=1.0)
ROUGH = Weather(
    "rough", duplicates=0.25, lost=0.03, delay=0.5, long_delay=0.05, index_lag=2.0, failing_reads=0.01
)
WEATHERS = {each.name: each for each in (CALM, DOUBLED, ROUGH)}
