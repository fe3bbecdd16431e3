"""All topics as one class."""

from penstock.testing.store_suite.claims import ClaimTests
from penstock.testing.store_suite.fairness import FairnessTests
from penstock.testing.store_suite.groups import GroupTests
from penstock.testing.store_suite.intake import IntakeTests
from penstock.testing.store_suite.keys import KeyTests
from penstock.testing.store_suite.lanes import LaneTests


class StoreSuite(LaneTests, IntakeTests, KeyTests, ClaimTests, FairnessTests, GroupTests):
    """Subclass it as `Test…` and give it a fixture `store`: fresh, migrated."""
