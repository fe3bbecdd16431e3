"""Envelopes name their send and the order they must keep."""

from penstock.domain.envelopes import Envelope


def test_the_send_has_a_name() -> None:
    assert Envelope("01JOB", 3, "orders", 1).dedup == "01JOB:3"


def test_a_group_is_an_order_unless_the_mode_is_immediate() -> None:
    envelope = Envelope("01JOB", 3, "orders", 1, group="g")

    assert envelope.ordered_group == "g"
    assert envelope._replace(mode="next_on_error").ordered_group == "g"
    assert envelope._replace(mode="immediate").ordered_group is None
