"""All topics as one class."""

from penstock.testing.store_suite.access import AccessTests
from penstock.testing.store_suite.blocking import BlockingTests
from penstock.testing.store_suite.claims import ClaimTests
from penstock.testing.store_suite.confirming import ConfirmTests
from penstock.testing.store_suite.cursors import CursorTests
from penstock.testing.store_suite.editing import EditTests
from penstock.testing.store_suite.fairness import FairnessTests
from penstock.testing.store_suite.fencing import FencingTests
from penstock.testing.store_suite.filtering import FilterTests
from penstock.testing.store_suite.forgetting import ForgettingTests
from penstock.testing.store_suite.grouplists import GroupListTests
from penstock.testing.store_suite.groups import GroupTests
from penstock.testing.store_suite.intake import IntakeTests
from penstock.testing.store_suite.keys import KeyTests
from penstock.testing.store_suite.lanes import LaneTests
from penstock.testing.store_suite.leader import LeaderTests
from penstock.testing.store_suite.limits import SlotTests, TokenTests
from penstock.testing.store_suite.listing import ListingTests
from penstock.testing.store_suite.operations import OperationTests
from penstock.testing.store_suite.pools import LaneDeletionTests, PauseTests, PoolTests
from penstock.testing.store_suite.queueing import QueueRaceTests, QueueTests
from penstock.testing.store_suite.racing import RaceTests
from penstock.testing.store_suite.racing_groups import GroupRaceTests
from penstock.testing.store_suite.reading import CountTests, GroupStateTests, ReadingTests
from penstock.testing.store_suite.recalls import RecallTests
from penstock.testing.store_suite.records import AuditLogTests, DepthTests
from penstock.testing.store_suite.recovery import LapseTests, TakeoverTests
from penstock.testing.store_suite.replays import ReplayTests
from penstock.testing.store_suite.reports import ReportTests
from penstock.testing.store_suite.retention import ExpiryTests, RetentionTests
from penstock.testing.store_suite.runs import RunTests
from penstock.testing.store_suite.scouting import ScoutTests
from penstock.testing.store_suite.sends import SendTests
from penstock.testing.store_suite.settling import RequestTests, SettlingTests
from penstock.testing.store_suite.shared_keys import SecretTests
from penstock.testing.store_suite.standings import NodeTests, StandingTests
from penstock.testing.store_suite.targets import StorePauseTests, TargetPauseTests, TargetTests
from penstock.testing.store_suite.verbs import VerbTests
from penstock.testing.store_suite.vitals import VitalsTests
from penstock.testing.store_suite.waking import WakingTests


class StoreSuite(
    LaneTests,
    PauseTests,
    LaneDeletionTests,
    PoolTests,
    IntakeTests,
    KeyTests,
    ClaimTests,
    ConfirmTests,
    ScoutTests,
    TokenTests,
    SlotTests,
    TargetTests,
    TargetPauseTests,
    StorePauseTests,
    FairnessTests,
    GroupTests,
    BlockingTests,
    RunTests,
    SettlingTests,
    RequestTests,
    SendTests,
    ForgettingTests,
    TakeoverTests,
    LapseTests,
    ReportTests,
    RecallTests,
    VerbTests,
    ReplayTests,
    EditTests,
    OperationTests,
    ReadingTests,
    ListingTests,
    CursorTests,
    FilterTests,
    GroupStateTests,
    CountTests,
    DepthTests,
    AuditLogTests,
    ExpiryTests,
    RetentionTests,
    LeaderTests,
    FencingTests,
    WakingTests,
    RaceTests,
    GroupRaceTests,
    StandingTests,
    GroupListTests,
    NodeTests,
    QueueTests,
    QueueRaceTests,
    SecretTests,
    VitalsTests,
    AccessTests,
):
    """Subclass it as `Test…` and give it a fixture `store`: fresh, migrated."""
