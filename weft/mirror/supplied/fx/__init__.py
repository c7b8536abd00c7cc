"""`torch.fx`: Python code as a graph of its calls, which programs read, change and run.

Modules and functions run on proxies (`proxy`, `tracer`); what these are used for becomes the nodes
of a graph (`node`, `graph`), and a module runs it (`graph_module`, `interpreter`).
"""

from weft import exports as _exports
from weft.mirror.supplied.fx.graph import Graph as Graph
from weft.mirror.supplied.fx.graph_module import GraphModule as GraphModule
from weft.mirror.supplied.fx.interpreter import Interpreter as Interpreter
from weft.mirror.supplied.fx.node import Node as Node
from weft.mirror.supplied.fx.node import map_arg as map_arg
from weft.mirror.supplied.fx.proxy import Proxy as Proxy
from weft.mirror.supplied.fx.subgraph_rewriter import replace_pattern as replace_pattern
from weft.mirror.supplied.fx.tracer import Tracer as Tracer
from weft.mirror.supplied.fx.tracer import symbolic_trace as symbolic_trace
from weft.mirror.supplied.fx.tracer import wrap as wrap

_exports.gather(globals())
