"""The deterministic checks. A new gate is one class in one file of this package, listed here."""

from service.core.gates.answer import AnswerGate, SaidGate
from service.core.gates.apple import AppleTrajectoryGate
from service.core.gates.arcade import ArcadeGate
from service.core.gates.arguments import ArgumentsGate
from service.core.gates.bfcl_ast import BfclAstGate
from service.core.gates.count import CountGate
from service.core.gates.decide import DecideGate
from service.core.gates.disallowed import DisallowedGate
from service.core.gates.equivalent import EquivalentGate
from service.core.gates.future_agi import FutureAgiGate
from service.core.gates.narration import NarrationGate
from service.core.gates.order import OrderGate
from service.core.gates.provenance import ProvenanceGate
from service.core.gates.quantity import QuantityGate
from service.core.gates.recovery import RecoveryGate
from service.core.gates.results import ResultsGate
from service.core.gates.schema import SchemaGate
from service.core.gates.state import StateGate
from service.core.gates.tau import TauRewardGate
from service.core.gates.tool_name import ToolNameGate
from service.core.gates.trajectory import TrajectoryGate
from service.core.gates.uipath import UipathArgsGate, UipathCountGate, UipathOrderGate, UipathOutputGate

GATES = (
    AnswerGate,
    AppleTrajectoryGate,
    ArcadeGate,
    ArgumentsGate,
    BfclAstGate,
    CountGate,
    DecideGate,
    DisallowedGate,
    EquivalentGate,
    FutureAgiGate,
    NarrationGate,
    OrderGate,
    ProvenanceGate,
    QuantityGate,
    RecoveryGate,
    ResultsGate,
    SaidGate,
    SchemaGate,
    StateGate,
    TauRewardGate,
    ToolNameGate,
    TrajectoryGate,
    UipathArgsGate,
    UipathCountGate,
    UipathOrderGate,
    UipathOutputGate,
)
