"""The deterministic checks. A new gate is one class in one file of this package, imported here."""

from service.core.gates.answer import AnswerGate
from service.core.gates.arcade import ArcadeGate
from service.core.gates.arguments import ArgumentsGate
from service.core.gates.bfcl_ast import BfclAstGate
from service.core.gates.decide import DecideGate
from service.core.gates.equivalent import EquivalentGate
from service.core.gates.order import OrderGate
from service.core.gates.quantity import QuantityGate
from service.core.gates.schema import SchemaGate
from service.core.gates.tool_name import ToolNameGate

GATES = (
    AnswerGate,
    ArcadeGate,
    ArgumentsGate,
    BfclAstGate,
    DecideGate,
    EquivalentGate,
    OrderGate,
    QuantityGate,
    SchemaGate,
    ToolNameGate,
)
