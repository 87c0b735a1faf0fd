import re

from hypothesis import given
from hypothesis import strategies as st

from aftercommit.ids import (
    derive_execution_id,
    derive_fingerprint,
    derive_fraction,
    derive_id,
    derive_shard,
    new_instance_id,
    new_token,
)

PARTS = st.lists(st.text(st.characters(codec="utf-8"), max_size=5), max_size=4)


@given(PARTS, PARTS)
def test_two_ids_are_equal_exactly_if_their_parts_are(one, other):
    assert (derive_id("kind", *one) == derive_id("kind", *other)) == (one == other)


def test_moving_a_character_between_parts_gives_another_id():
    assert derive_id("k", "ab", "c") != derive_id("k", "a", "bc")
    assert derive_id("ka", "b") != derive_id("k", "ab")


def test_an_id_never_changes_between_releases():
    """Stored identities rest on this: a release that derives others would start children twice."""
    assert derive_id("child", "x", 1) == "7d5c301e7f7d17ccd12427d0501a6e04"
    assert derive_execution_id("i", "root", 0, "") == "266919cce9f44b88963aabe124e58889"


def test_an_id_is_40_hex_digits():
    assert re.fullmatch(r"[0-9a-f]{32}", derive_id("k", "é"))


def test_an_execution_is_told_apart_by_place_iteration_and_scheduler():
    ids = {
        derive_execution_id(instance, place, iteration, scheduler)
        for instance in ("i", "j")
        for place in ("root", "root.then")
        for iteration in (0, 1)
        for scheduler in ("", "s")
    }
    assert len(ids) == 16


def test_r11_shards_are_even_and_within_bounds():
    counts = [0] * 8
    for number in range(4000):
        counts[derive_shard(f"item-{number}", 8)] += 1
    assert min(counts) > 400
    assert max(counts) < 600


@given(PARTS)
def test_a_fraction_is_below_one_and_repeats(parts):
    fraction = derive_fraction(*parts)
    assert 0 <= fraction < 1
    assert derive_fraction(*parts) == fraction


def test_fingerprints_tell_texts_apart():
    assert derive_fingerprint("a") == derive_fingerprint("a") != derive_fingerprint("b")


def test_random_ids_do_not_repeat():
    assert len({new_instance_id() for _ in range(100)} | {new_token() for _ in range(100)}) == 200
