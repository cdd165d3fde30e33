--- stdlib/core/cuda_graph.lua: lt.cuda.graph: a function whose work on a GPU is captured once and
--- launched again as a whole.
--
-- The first calls run the function as it is: they make what is made once (states of optimizers,
-- plans of libraries). Then it is captured, on copies of the arguments, which later calls fill.
-- Arguments of other shapes, and gradients other than those that the function adds to, are captured
-- apart: what a graph has is what the function would do, or the function runs.
local c = require "ltrain.c"
local captured_steps = require "ltrain.core.captured_steps"
local class = require "ltrain.core.class"
local errors = require "ltrain.core.errors"
local graph_arguments = require "ltrain.core.graph_arguments"

local WARM <const> = 2 -- calls before one is captured
local MOST <const> = 8 -- graphs of one function

local copied <const>, fill <const> = graph_arguments.copied, graph_arguments.fill
local is_like <const>, map <const> = graph_arguments.is_like, graph_arguments.map

local Graph = class.extend(nil, "Graph")

local function check(tensor, name)
  if not tensor.is_cuda then
    errors.blame("cuda.graph: %s is on %s: pass tensors of the GPU", name, tensor.device)
  elseif tensor.requires_grad then
    errors.blame("cuda.graph: %s requires grad: leaves are not passed, and backward is called in "
      .. "the function", name)
  end
  return tensor:clone()
end

-- Arguments of one make: copies of them, and the graphs that were captured with these.
local function kind_of(self, arguments)
  for _, kind in ipairs(self._kinds) do
    if is_like(kind.arguments, arguments) then return kind end
  end
  local kind = { arguments = map(arguments, check, "argument"), calls = 0, graphs = {} }
  table.insert(self._kinds, kind)
  return kind
end

local function detached(tensor) return tensor:detach() end

local function results(packed, fn)
  local copy = map(packed, fn, "result")
  return table.unpack(copy, 1, packed.n)
end

-- Runs the function on the copies; what it issues is captured and then launched.
local function capture(self, kind)
  local graph = c.runtime.graph()
  local steps = {}
  collectgarbage()
  graph:begin(self.device)
  captured_steps.list = steps
  local packed = table.pack(pcall(self._fn, table.unpack(kind.arguments, 1, kind.arguments.n)))
  captured_steps.list = nil
  graph:finish(packed[1])
  if not packed[1] then error(packed[2], 0) end
  self.captured = self.captured + 1
  local made = { graph = graph, steps = steps, results = table.pack(table.unpack(packed, 2,
    packed.n)) }
  table.insert(kind.graphs, made)
  return made
end

-- What optimizers have now goes to the graph, which is launched.
local function launch(self, made)
  if #made.steps > 0 then
    made.graph:feed(1)
    local ok, why = pcall(captured_steps.run, made.steps)
    made.graph:feed_end(ok)
    if not ok then error(why, 0) end
  end
  made.graph:launch(1)
  self.launched = self.launched + 1
end

local function find(kind)
  for _, made in ipairs(kind.graphs) do
    if made.graph:suits(1) then return made end
  end
end

local function count_graphs(self)
  local n = 0
  for _, kind in ipairs(self._kinds) do n = n + #kind.graphs end
  return n
end

function Graph:init(fn, device)
  self._fn, self.device, self._kinds = fn, device, {}
  self.captured, self.launched, self.called = 0, 0, 0
end

function Graph:__call(...)
  local arguments = table.pack(...)
  if c.runtime.captures() then return self._fn(...) end -- it is a part of another's function
  local kind = kind_of(self, arguments)
  kind.calls = kind.calls + 1
  local made = find(kind)
  if not made and (kind.calls <= WARM or count_graphs(self) >= MOST) then
    self.called = self.called + 1
    return results(table.pack(self._fn(...)), detached)
  end
  fill(kind.arguments, arguments)
  if made then launch(self, made) else made = capture(self, kind) end
  return results(made.results, copied)
end

return Graph
