"""Every bound of the runtime, with its source. Sizes are bytes of UTF-8."""

# DynamoDB: at most 100 actions and 4 MB per transaction, 400 KB per item (names and keys included).
TRANSACTION_ACTIONS_MAX = 100
TRANSACTION_BYTES_MAX = 4 * 1024 * 1024
ITEM_BYTES_MAX = 400 * 1024

# One commit of a large fan-out stays well inside a transaction: the rest of it is the owner's own rows.
COMMIT_INTENTIONS_MAX = 90
COMMIT_BYTES_MAX = 3 * 1024 * 1024
# Publishing puts those of one version and removes those of another in one transaction.
START_POINTS_MAX = 40
COMMIT_JOURNAL_LINES_MAX = 400

# What a caller may hand in, an activity may return and an instance may hold. The state shares its item
# with executions and bookmarks, so it stays below the item's own limit.
INPUT_BYTES_MAX = 256 * 1024
RESULT_BYTES_MAX = 256 * 1024
BODY_BYTES_MAX = 1024 * 1024
STATE_BYTES_MAX = 340 * 1024

# With LARGE_PAYLOADS, for instances born since: values, and all that one holds. An answer of Lambda has 6 MB,
# and a request as much; JSON inside JSON grows by its quotes.
LARGE_VALUE_BYTES_MAX = 2 * 1024 * 1024
LARGE_STATE_BYTES_MAX = 4 * 1024 * 1024
LARGE_BODY_BYTES_MAX = 3 * 1024 * 1024


def value_bytes_max(large: bool) -> int:  # noqa: FBT001 - its one word
    """Return how large one input or result may be, of an instance that may be large or not."""
    return LARGE_VALUE_BYTES_MAX if large else INPUT_BYTES_MAX


_RAISED = {INPUT_BYTES_MAX: "2 MB", BODY_BYTES_MAX: "3 MB", STATE_BYTES_MAX: "4 MB"}


def told_bytes(most: int) -> str:
    """Return one of these bounds as a message tells it: with what would raise it, if that is off."""
    return f"{most} bytes" + (f" (LargePayloads=true allows {_RAISED[most]})" if most in _RAISED else "")


# Texts from this size on go there: a row of 64 KB costs 64 write units, an object with its announcement 16.
PAYLOAD_BYTES_MIN = 64 * 1024
# Those of other instances stay in their rows, unless they have no room there: a large child's output.
ROW_TEXT_BYTES_MAX = 360 * 1024
# A commit that has not come this long after its objects were announced never comes: no worker lives so long.
PAYLOAD_COMMIT_SECONDS = 3600
PAYLOAD_DOOMED_SECONDS = 7 * 86_400  # and for so long it is remembered that it was given up
# An answer of Lambda has 6 MB, with what it takes to write JSON as a text inside JSON.
ANSWER_BYTES_MAX = 5_500_000

# Above this a snapshot gets a row of its own, so that taking a lease does not rewrite it.
INLINE_SNAPSHOT_BYTES_MAX = 4 * 1024

# A burst with commit="burst" still commits when what it has decided nears this size.
BURST_COMMANDS_BYTES_MAX = 64 * 1024

# The library parses an expression in a time that grows with the square of its length: so the sum of these
# squares is bounded for a definition (a few seconds). That is 6 of the longest, or 2,500 of 200 characters.
EXPRESSIONS_WORK_MAX = 100_000_000

# What is told of a faulty definition (an answer of Lambda has 6 MB); and how long an activity's path may be:
# each of its journal lines names it.
FAULTS_MAX = 200
PATH_CHARACTERS_MAX = 2_000

# Moves of the engine within one command: an endless loop without a wait ends as a fault.
MOVES_MAX = 20_000

# Children of one bulk dispatch; the rows in which their endings are tallied, and how many of them share one
# at least: two that end at the same moment contend for the same row.
BULK_CHILDREN_MAX = 10_000
TALLY_ROWS_MAX = 200
TALLY_CHILDREN = 5
# What an ending leaves of the child's output with its dispatch; what its parent is told of all of them
# together, and of one batch.
CHILD_OUTPUT_BYTES_MAX = 4 * 1024
BULK_OUTPUTS_BYTES_MAX = 128 * 1024
BATCH_BYTES_MAX = 64 * 1024
# Children that one batch speaks of, that a dispatch names which does not wait, and failures that a result
# lists.
BATCH_CHILDREN_MAX = 100
NAMED_CHILDREN_MAX = 100
FAILURES_NAMED_MAX = 10
# Children of one bulk dispatch that go on with its trace: X-Ray shows a trace with 100 links to others.
TRACED_CHILDREN_MAX = 50
# While children of a bulk dispatch run, its join is looked at again after this long at most.
JOIN_LOOK_SECONDS_MAX = 300

# Levels of lists and objects in JSON that is taken in, evaluated or built.
NESTING_MAX = 200

# The longest wait: ten years.
DELAY_SECONDS_MAX = 10 * 365 * 86_400

# Error texts in rows and answers.
MESSAGE_CHARACTERS_MAX = 1_000

# An event fits into each kind of sink, envelope included: SQS and EventBridge take 256 KB a request at least.
EVENT_BYTES_MAX = 250 * 1024
EVENT_CHARACTERS_MAX = 255  # of its id, its name and its version
EVENT_SESSIONS_MAX = 5
# Events have shards of the due index to themselves, above all that DUE_SHARDS can name: stacks that write
# them know no settings, and events that nobody takes stand in nobody's way.
EVENT_SHARDS = range(1000, 1004)

# What is to be removed has shards of its own, too, ended instances and payloads of commits that never came:
# however many come due at once, they stand before nothing that has to move.
REMOVAL_SHARDS = range(2000, 2004)
ENDED_DAYS_MAX = 3_650  # ten years

# DynamoDB: statements of one batch, and rows of one batch read, or written.
STATEMENTS_MAX = 25
READ_BATCH_MAX = 100
BATCH_WRITES_MAX = 25

# SQS: a message's delay, and entries per batch request.
QUEUE_DELAY_SECONDS_MAX = 900
QUEUE_BATCH_MAX = 10

# A message that finds the lease taken comes again after this long, doubling.
POSTPONE_SECONDS_FIRST = 1
POSTPONE_SECONDS_MAX = 30

# A lease outlives the invocation that holds it by this much, for clocks that differ.
LEASE_MARGIN_SECONDS = 5

# An Idempotency-Key of a stimulus is remembered for longer than any message lives (SQS: 14 days).
REQUEST_DAYS = 15

# Names: ids of instances and definitions given from outside.
NAME_CHARACTERS_MAX = 200
IDEMPOTENCY_KEY_CHARACTERS_MAX = 255
VERSION_MAX = 10**15 - 1  # of a definition; a date and time in digits is less
# DynamoDB: a sort key has 1,024 bytes at most (a partition key, which holds a tenant besides, 2,048), and it
# refuses to look for a longer one. No name, token or part of a cursor that was given out is longer than this.
KEY_BYTES_MAX = 1_000
CURSOR_CHARACTERS_MAX = 3_000
# What lists tell at once, far below an answer of Lambda (6 MB), which escapes what it holds once more.
PAGE_BYTES_MAX = 2 * 1024 * 1024
TOKEN_DAYS = 365  # for which a callback token is good, unless the deployment says otherwise
TOKEN_CHARACTERS_MAX = 1_000  # a callback token names an instance, a bookmark and its proof
DEFINITION_BYTES_MAX = 350 * 1024
PAGE_MAX = 100
# Starts in one call: each takes a few requests to the database, and a call has 29 seconds.
BULK_REQUESTS_MAX = 100
