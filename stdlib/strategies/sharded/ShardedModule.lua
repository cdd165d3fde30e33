--- stdlib/strategies/sharded/ShardedModule.lua: a module whose parameters are divided among the
--- ranks, gathered a unit at a time for forward and backward, and whose gradients are reduced to
--- their shards as backward passes.
local Rounds = require "ltrain.strategies.sharded.Rounds"
local Shards = require "ltrain.strategies.sharded.Shards"
local Unit = require "ltrain.strategies.sharded.Unit"
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local errors = require "ltrain.core.errors"
local forward_methods = require "ltrain.nn.forward_methods"
local tree = require "ltrain.core.tree"
local units = require "ltrain.strategies.sharded.units"

local ShardedModule = class.extend(nil, "ShardedModule")

--- ShardedModule(module, {shards =, shards_parameters =, shards_gradients =, units =,
--- reshard_after_forward =, keep_below =}); all ranks call it with the same parameters.
function ShardedModule:init(module, o)
  self.module, self.shards_parameters = module, o.shards_parameters
  self.shards = o.shards
  self.shards.module = module
  self.units, self.handles = {}, {}
  self.all = {} -- shards, in the order of the model
  local unit_of = {}
  for i, found in ipairs(units.find(module, o.units)) do
    local list = {}
    for _, item in ipairs(found.parameters) do
      local shard = self.shards:add(item.value, item.name)
      self.all[#self.all + 1] = shard
      if not shard.is_left then list[#list + 1] = shard end
    end
    local reshards = found.reshard_after_forward
    if reshards == nil then reshards = o.reshard_after_forward end
    local unit = Unit(i == 1 and "of the root" or found.name, list, i == 1 or not reshards)
    unit.module, unit.modules, unit.around = found.module, found.modules, found.around
    unit_of[found] = unit
    unit.outer = found.outer and unit_of[found.outer]
    self.units[i] = unit
  end
  self.root = self.units[1]
  self.rounds = Rounds(self.units, o.shards_gradients, self.shards.replicas.group)
  self.watches = o.shards_gradients or o.shards_parameters
  if o.shards_parameters then self:part(o.keep_below) end
  if self.watches then self:watch() end
end

-- Takes the parameters' memory away, and gathers them where their modules are called.
function ShardedModule:part(keep_below)
  for i, unit in ipairs(self.units) do
    unit:part(function(shard) return shard.parameter:numel() < keep_below end)
    if i > 1 then self:follow_calls(unit, unit.module) end
    for _, module in ipairs(unit.around or {}) do self:follow_outer_calls(module) end
    self:follow_methods(unit)
  end
end

-- Calls.

-- The tensors among n values, and in tables of them, that gradients go through.
local function grad_tensors(values, n)
  local list = {}
  for i = 1, c.is_grad_enabled() and n or 0 do
    tree.each(values[i], function(value)
      if c.is_tensor(value) and value.requires_grad then list[#list + 1] = value end
    end)
  end
  return list
end

-- Before a call: the parameters come. When the gradients of all its arguments have been computed
-- backward has passed it.
local function enter(self, unit, args)
  unit.depth = unit.depth + 1
  self.rounds:request(unit)
  local call, inputs = { part = c.dist.part() }, grad_tensors(args, args.n)
  call.left = #inputs
  if call.left > 0 then unit.calls[call] = true end
  for _, x in ipairs(inputs) do
    x:register_hook(function()
      call.left = call.left - 1
      if call.left > 0 then return end
      unit.calls[call] = nil
      self.rounds:completed(unit)
    end)
  end
end

-- Backward arrives at the results of a call: the parameters come again, for this pass alone. One
-- that is differentiated in turn would need them later.
local function come_back(self, unit)
  if c.is_grad_enabled() and not unit.stays then
    errors.blame("%s: create_graph: gradients of gradients need the parameters of %s after its "
      .. "backward: write reshard_after_forward = false", self.shards.who, unit.label)
  end
  self.rounds:request(unit)
end

-- After it: they go, and come again when backward arrives at its results, a list with `n`.
local function leave(self, unit, results)
  unit.depth = unit.depth - 1
  for _, y in ipairs(grad_tensors(results, results.n)) do
    y:register_hook(function() come_back(self, unit) end)
  end
  local stays = unit.depth > 0 or unit.stays or self.rounds.in_backward
  if not stays then unit:release() end
end

-- What a forward hook gets, as a list with `n`: one value, or such a list of several.
local function results_of(output)
  local is_list = type(output) == "table" and getmetatable(output) == nil
    and math.type(output.n) == "integer"
  for key in next, is_list and output or {} do
    is_list = is_list and (key == "n" or math.type(key) == "integer")
  end
  return is_list and output or { output, n = 1 }
end

function ShardedModule:follow_calls(unit, module)
  local handles = self.handles
  handles[#handles + 1] = module:register_forward_pre_hook(function(_, args)
    enter(self, unit, args)
  end, { prepend = true })
  handles[#handles + 1] = module:register_forward_hook(function(_, _, output)
    leave(self, unit, results_of(output))
  end, { always_call = true })
end

-- Around calls of a module that has units in it, the root's parameters are here: a hook may call it
-- outside of steps.
function ShardedModule:follow_outer_calls(module)
  local handles, rounds = self.handles, self.rounds
  handles[#handles + 1] = module:register_forward_pre_hook(function()
    rounds:request(self.root)
    rounds.scopes = rounds.scopes + 1
  end, { prepend = true })
  handles[#handles + 1] = module:register_forward_hook(function()
    rounds.scopes = rounds.scopes - 1
  end, { always_call = true })
end

-- Calls a registered method of a module in the unit, whose parameters and those of the root are
-- here meanwhile.
local function call_method(self, unit, method, module, ...)
  local _ <close> = self:forward_scope()
  if unit == self.root then return method(module, ...) end
  local args, results = table.pack(...), { n = 0 }
  enter(self, unit, args)
  local _ <close> = setmetatable({}, { __close = function() leave(self, unit, results) end })
  results = table.pack(method(module, ...))
  return table.unpack(results, 1, results.n)
end

function ShardedModule:follow_methods(unit)
  local function call(...) return call_method(self, unit, ...) end
  for _, module in ipairs(unit.modules) do
    forward_methods[module] = call
    table.insert(self.handles, { remove = function() forward_methods[module] = nil end })
  end
end

-- Gradients that are complete are counted.
function ShardedModule:watch()
  for _, unit in ipairs(self.units) do
    for _, shard in ipairs(unit.shards) do
      local parameter = shard.parameter
      if parameter.requires_grad then
        local remove = parameter:register_post_accumulate_grad_hook(function()
          unit.pending = unit.pending - 1
          self.rounds:completed(unit)
        end)
        table.insert(self.handles, { remove = remove })
      end
    end
  end
end

-- What the strategy calls.

--- Parameters that are in no unit are here until the result is closed, which closes `outer`; and
--- then until all ranks are done.
function ShardedModule:forward_scope(outer)
  local rounds = self.rounds
  if not self.shards_parameters then return outer end
  rounds:request(self.root)
  rounds.scopes = rounds.scopes + 1
  return setmetatable({}, { __close = function()
    local _ <close> = outer
    rounds.scopes = rounds.scopes - 1
  end })
end

--- Runs walk(), a backward pass; `what`: that of "inputs" or "weights" alone (see
--- Rounds.begin_backward).
function ShardedModule:backward(walk, what)
  if not self.watches or what == "inputs" and not self.shards_parameters then return walk() end
  self.rounds:begin_backward(what)
  if self.shards_parameters and what ~= "weights" then self.rounds:request(self.root) end
  walk()
  self.rounds:end_backward()
end

--- See Rounds.settle.
function ShardedModule:settle()
  if self.watches then self.rounds:settle() end
end

--- All parameters are whole on this rank until the result is closed; with `writes`, what is then in
--- them replaces that of the shards. All ranks call it, and close it.
function ShardedModule:gather(writes)
  self:settle()
  for _, unit in ipairs(self.units) do
    if unit:is_parted() then unit:gather() end
  end
  return setmetatable({}, { __close = function(_, err)
    for _, unit in ipairs(self.units) do
      if writes and err == nil then unit:write_shards() end
      if not self.rounds.staying[unit] then unit:release() end
    end
  end })
end

--- Parameters have new values. All ranks call it.
function ShardedModule:renew()
  if self.shards_parameters then self.rounds:renew() end
end

--- Makes all parameters whole for good, and forgets the units. All ranks call it.
function ShardedModule:join()
  self:settle()
  self:forget()
  for _, unit in ipairs(self.units) do
    if unit:is_parted() then
      unit:gather()
      unit:join()
    end
  end
end

--- The f32 shards of parameters in 16 bits, a list in the same order on all ranks.
function ShardedModule:wide_shards()
  local list = {}
  for _, shard in ipairs(self.all) do
    if shard.is_wide then list[#list + 1] = shard end
  end
  return list
end

--- The run has failed: the other ranks' parts are gone.
function ShardedModule:lose()
  self:forget()
  for _, unit in ipairs(self.units) do
    for _, shard in ipairs(unit.parted or {}) do Shards.lose(shard) end
  end
end

--- Removes what follows the module's calls and gradients.
function ShardedModule:forget()
  self.shards:forget()
  for _, handle in ipairs(self.handles) do handle:remove() end
  self.handles = {}
end

-- Gradients.

-- On how many ranks parameters have gradients that no reduction has taken, and on how many one has
-- added to their shards: two counts a parameter.
local function count(self, parameters, shards)
  local own, group = {}, self.shards.replicas.group
  self:settle()
  for i, has in ipairs(c.dist.with_gradients(parameters)) do
    own[2 * i - 1], own[2 * i] = has, shards[i].used and 1 or 0
  end
  local counts = c.tensor(own, { dtype = "i64" })
  c.dist.wait(c.dist.collective(group and group._handle, "all_reduce_", counts, "sum"))
  return counts:tolist()
end

-- What was reduced of a parameter's gradient since the last step; nil: nothing.
local function reduced_since(self, parameter)
  local shard = self.shards.of[parameter]
  return shard and not shard.is_spent and shard.tensor.grad or nil, shard
end

--- See Strategy.accumulated_gradient.
function ShardedModule:accumulated_gradient(parameter)
  local reduced, shard = reduced_since(self, parameter)
  if not reduced or not shard.replicas.is_first then return parameter.grad end
  local whole = parameter.grad and parameter.grad:clone()
    or c.zeros(parameter.shape, { dtype = parameter.dtype, device = parameter.device })
  Shards.slice(shard, whole):add_(reduced:to(whole.device))
  return whole
end

--- Whether something of it is this rank's: a parameter that no rank has used was reduced with the
--- others of its unit, and has none.
function ShardedModule:has_accumulated_gradient(parameter)
  local reduced, shard = reduced_since(self, parameter)
  return reduced ~= nil and shard.used
end

--- Replaces the gradients of parameters, and what was reduced of them before, by those of their
--- shards over all ranks, divided by `total`; a parameter that no rank has used has none. Messages
--- have at most `cap` bytes. All ranks call it.
function ShardedModule:reduce_gradients(parameters, total, cap)
  local _ <close> = c.no_grad()
  local shards, fresh, more, scaled = {}, {}, {}, {}
  for i, parameter in ipairs(parameters) do
    shards[i] = self.shards:add(parameter, "a parameter of an optimizer")
  end
  local counts = count(self, parameters, shards)
  for i, shard in ipairs(shards) do
    local is_left, was_reduced = counts[2 * i - 1] > 0, counts[2 * i] > 0
    if not was_reduced then shard.tensor.grad = nil end
    if was_reduced then scaled[#scaled + 1] = shard end
    if is_left then table.insert(was_reduced and more or fresh, shard) end
    shard.steps = is_left or was_reduced
  end
  for _, group in ipairs(Shards.group(more, cap)) do Shards.reduce(group, "gradients", 1) end
  for _, shard in ipairs(scaled) do shard.tensor.grad:mul_(1.0 / total) end
  for _, group in ipairs(Shards.group(fresh, cap)) do
    Shards.reduce(group, "gradients", 1.0 / total)
  end
  local is_automatic = self.shards:is_automatic()
  for _, shard in ipairs(shards) do shard.used, shard.is_spent = false, is_automatic end
end

return ShardedModule
