"""What a node knows of the store's clock: a time that it has reached for sure, as near as answers allow."""

from datetime import UTC, datetime, timedelta

from penstock.scheduler.timing import KEEP_S, SET_BACK, StoreTime

START = datetime(2026, 1, 1, tzinfo=UTC)


def after(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def test_the_quickest_answer_counts() -> None:
    time = StoreTime()
    time.learn(after(1.0), asked=0.9, at=1.5)
    time.learn(after(2.0), asked=1.9, at=2.1)
    time.learn(after(3.0), asked=2.9, at=3.3)
    assert time.now(4.0) == after(3.9)


def test_an_answer_that_was_long_on_its_way_says_nothing_of_the_clock() -> None:
    """Jobs of a claim whose answer came three seconds late went three seconds late, an hour after that."""
    time = StoreTime()
    time.learn(after(1.0), asked=1.0, at=1.0)
    time.learn(after(2.0), asked=2.0, at=5.0)
    assert time.now(5.0) == after(5.0)


def test_a_clock_that_was_set_back_shows_by_the_next_answer_however_long_that_takes() -> None:
    time = StoreTime()
    time.learn(after(1000.0), asked=0.0, at=0.0)
    time.learn(after(100.0), asked=1.0, at=4.0)
    assert time.now(4.0) == after(100.0)


def test_a_clock_that_was_set_back_a_little_shows_when_old_answers_are_forgotten() -> None:
    time = StoreTime()
    time.learn(after(0.0), asked=0.0, at=0.0)
    time.learn(after(1.0) - SET_BACK / 2, asked=1.0, at=1.0)
    assert time.now(1.0) == after(1.0)
    time.learn(after(KEEP_S + 1.0) - SET_BACK / 2, asked=KEEP_S + 1.0, at=KEEP_S + 1.0)
    assert time.now(KEEP_S + 1.0) == after(KEEP_S + 1.0) - SET_BACK / 2
