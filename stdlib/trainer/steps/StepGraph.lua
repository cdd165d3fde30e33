--- stdlib/trainer/steps/StepGraph.lua: training_step and backward of a fit as a CUDA graph
--- (Trainer{cuda_graph = true}).
--
-- The first batches of a shape run as they are, the third is captured: training_step as one segment
-- of a graph, backward as another. Later ones launch these; all between and after them, hooks, the
-- optimizer's step, clipping, schedulers, runs as always. What self:log was given is logged again
-- with the values of the launch. What a launch would not do as the script would, is not captured:
-- such a fit, or batch, runs as without the option, and a warning says why.
local Precision = require "ltrain.core.Precision"
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local errors = require "ltrain.core.errors"
local graph_arguments = require "ltrain.core.graph_arguments"
local hook_calls = require "ltrain.trainer.hook_calls"
local loop = require "ltrain.trainer.loop"
local object = require "ltrain.trainer.object"
local walk = require "ltrain.core.walk"

local copied <const>, map <const> = graph_arguments.copied, graph_arguments.map

local WARM <const> = 2 -- batches of a shape before one is captured
local MOST <const> = 8 -- graphs of a fit

local StepGraph = {}

-- Why a fit runs without graphs; nil: it has them.
local function obstacle(state)
  local options = state.trainer.options
  if not state.strategy.root_device:find "^cuda" then
    return "the fit runs on " .. state.strategy.root_device
  elseif state.ranks.many or state.ranks.slices or state.ranks.parts > 1
    or state.strategy.splits_batches or state.strategy.run_microbatches then
    return "it is for one GPU and one rank"
  elseif not state.automatic then
    return "in manual optimization training_step steps itself: see lt.cuda.graph"
  elseif hook_calls.overrides(state.precision, "after_step", Precision) then
    return ("precision = '%s' measures what training_step computes"):format(state.precision.name)
  elseif options.detect_anomaly then
    return "detect_anomaly looks at each operation"
  end
end

--- That of the fit `state`; false without the option, or where it has no effect.
function StepGraph.new(state)
  if not state.trainer.options.cuda_graph then return false end
  local why = obstacle(state)
  if why then
    state.trainer:warn("cuda_graph: has no effect: " .. why)
    return false
  end
  return object(StepGraph, {
    _state = state,
    _kinds = {}, -- by shapes of the batch: { batch = (its copy), calls =, graphs = {} }
    _count = 0, -- graphs
    _refused = false, -- whether training_step cannot be captured
    _step = nil, -- of the running batch: { graph =, ... }
    _is_captured = false, -- whether that was captured now, and backward is to be
    _logs = nil, -- what is logged while training_step is captured
  })
end

local function refuse(self, why)
  self._refused = true
  self._state.trainer:warn("cuda_graph: training_step runs as without it: " .. why)
end

-- ---- batches ----

local function is_on_gpu(batch)
  local all = true
  map(batch, function(tensor)
    all = all and tensor.is_cuda and not tensor.requires_grad
    return tensor
  end, "batch")
  return all
end

-- What was seen of batches like this one; nil: there can be no graph.
local function kind_of(self, batch)
  for _, kind in ipairs(self._kinds) do
    if graph_arguments.is_like(kind.batch, batch) then return kind end
  end
  if #self._kinds == MOST then return nil end
  if not is_on_gpu(batch) then
    refuse(self, "a tensor of the batch is not on the GPU")
    return nil
  end
  local kind = { batch = map(batch, copied, "batch"), calls = 0, graphs = {} }
  table.insert(self._kinds, kind)
  return kind
end

-- ---- what decides whether a graph is what the script would do ----

-- Modes of modules, and which parameters are trained: hooks change them.
local function modes_of(module)
  local modes = {}
  for _, entry in ipairs(walk.modules(module)) do
    modes[#modes + 1] = { of = entry.module, name = "training", value = entry.module.training }
  end
  for _, item in ipairs((walk.tensors(module))) do
    modes[#modes + 1] = { of = item.value, name = "requires_grad",
                          value = item.value.requires_grad }
  end
  return modes
end

local function are_same(modes)
  for _, mode in ipairs(modes) do
    if mode.of[mode.name] ~= mode.value then return false end
  end
  return true
end

local function scale_of(state) return state.scaler and state.scaler:scale_tensor() or nil end

-- The graph of such a batch at this place of its window.
local function find(self, kind, alone)
  local state = self._state
  local first = not state.window:is_cleared()
  for _, step in ipairs(kind.graphs) do
    if step.first == first and step.alone == alone and rawequal(step.scale, scale_of(state))
      and (first or step.graph:suits(2)) and are_same(step.modes) then
      return step
    end
  end
end

-- ---- what training_step changes on the host ----

-- Fields of a table and of those in it that have no metatable, into `into`: table -> its fields.
local function keep_fields(into, of)
  if into[of] then return end
  local fields = {}
  into[of] = fields
  for key, value in next, of do
    fields[key] = value
    if type(value) == "table" and getmetatable(value) == nil then keep_fields(into, value) end
  end
end

-- Those of the modules and the metrics in them.
local function fields_of(module)
  local into = {}
  for _, entry in ipairs(walk.modules(module)) do
    keep_fields(into, entry.module)
    for _, item in ipairs(entry.objects) do
      if class.of(item.value) then keep_fields(into, item.value) end
    end
  end
  return into
end

-- The name of a field that differs; nil: none.
local function changed_field(kept)
  for of, fields in next, kept do
    for key, value in next, fields do
      if not rawequal(of[key], value) then return tostring(key) end
    end
    for key in next, of do
      if fields[key] == nil then return tostring(key) end
    end
  end
end

local function put_back(kept)
  for of, fields in next, kept do
    for key in next, of do
      if fields[key] == nil then rawset(of, key, nil) end
    end
    for key, value in next, fields do rawset(of, key, value) end
  end
end

-- Why what was captured would not do, when it is launched, what training_step does; nil: it would.
local function difference(kept, logs, outputs)
  local field = changed_field(kept)
  if field then return ("training_step changes self.%s"):format(field) end
  for _, entry in ipairs(logs) do
    if not c.is_tensor(entry.value) then
      return ("self:log of '%s': a launch logs tensors, not %s"):format(tostring(entry.name),
        type(entry.value) == "number" and "numbers" or "metrics")
    end
  end
  local loss = type(outputs) == "table" and outputs.loss or outputs
  if not c.is_tensor(loss) then return "training_step returned no loss" end
  local weighs = type(outputs) == "table" and outputs.weight ~= nil
  return weighs and "training_step returns weights" or nil
end

-- ---- training_step ----

--- Whether self:log is to come after the capture.
function StepGraph:takes_log(name, value, options)
  local logs = self._logs
  if not logs then return false end
  logs[#logs + 1] = { name = name, value = value, options = options }
  return true
end

local function log_again(state, logs)
  for _, entry in ipairs(logs) do
    state.trainer:_log(entry.name, copied(entry.value), entry.options)
  end
end

-- Runs training_step on the copy of the batch, which a graph captures: its results, why it cannot
-- be one (else nil), and what it logs.
local function run_captured(self, kind, graph, run)
  local state = self._state
  local whole, kept, draws = state.loop.batch, fields_of(state.module), c.runtime.rng_get {}
  graph:begin(state.strategy.root_device)
  self._logs = {}
  loop.set_batch(state, kind.batch)
  local results = table.pack(pcall(run, state))
  loop.set_batch(state, whole)
  local logs = self._logs
  self._logs = nil
  local failed = not results[1]
  local why = failed and tostring(results[2]) or nil
  if not failed then why = difference(kept, logs, results[3]) end
  graph:finish(why == nil)
  if failed and not why:find("captured CUDA graph", 1, true) then error(results[2], 0) end
  if not why then return results, nil, logs end
  put_back(kept)
  c.runtime.rng_set(draws)
  return nil, why
end

local function capture(self, kind, run, alone)
  local state, graph = self._state, c.runtime.graph()
  graph_arguments.fill(kind.batch, state.loop.batch)
  collectgarbage()
  local results, why, logs = run_captured(self, kind, graph, run)
  if why then
    refuse(self, why)
    return run(state)
  end
  self._count = self._count + 1
  self._is_captured = true
  self._step = { graph = graph, kind = kind, logs = logs, outputs = results[3], alone = alone,
    count = results[2], first = not state.window:is_cleared(), modes = modes_of(state.module),
    scale = scale_of(state) }
  hook_calls.through(state, "training_step", log_again, state, logs)
  return results[2], results[3]
end

local function launch_forward(state, kind, step)
  graph_arguments.fill(kind.batch, state.loop.batch)
  step.graph:launch(1)
  log_again(state, step.logs)
end

--- training_step of the running batch, which run(state) calls; `alone`: its window has no other.
--- Returns how many values it returned, and the first.
function StepGraph:forward(run, alone)
  local state = self._state
  self._step, self._is_captured = nil, false
  local kind = not self._refused and kind_of(self, state.loop.batch)
  if not kind then return run(state) end
  kind.calls = kind.calls + 1
  local step = find(self, kind, alone)
  if step then
    self._step = step
    hook_calls.through(state, "training_step", launch_forward, state, kind, step)
    return step.count, map(step.outputs, copied, "outputs")
  elseif kind.calls <= WARM or self._count >= MOST then
    return run(state)
  end
  return capture(self, kind, run, alone)
end

-- ---- backward ----

local function capture_backward(self, run, loss, weight)
  local state, step = self._state, self._step
  step.graph:begin(state.strategy.root_device)
  local ok, why = pcall(run, state, loss, weight)
  step.graph:finish(ok)
  if not ok then error(why, 0) end
  step.weight = weight
  if step.first and step.graph:adds(2) then
    refuse(self, "gradients of the last step are set to zero, not to nil")
  else
    table.insert(step.kind.graphs, step)
  end
  return map(step.outputs, copied, "outputs")
end

--- backward of the running batch, which run(state, loss, weight) calls. Returns outputs of
--- training_step that later batches leave alone; nil: they do.
function StepGraph:backward(run, loss, weight)
  local state, step = self._state, self._step
  if not step then return run(state, loss, weight) end
  if self._is_captured then return capture_backward(self, run, loss, weight) end
  if step.weight ~= weight or not step.graph:suits(2) then
    errors.blame("backward: gradients are not those that were captured: write cuda_graph = false")
  end
  hook_calls.through(state, "backward", step.graph.launch, step.graph, 2)
end

return StepGraph
