-- stdlib/optim/Optimizer.lua: the base class of optimizers: parameter groups, their options and
-- state.
--
-- A subclass defines `options`, a description for config.check, and `update(group)`, which makes
-- one step with the parameters of a group that have gradients. State is kept per parameter and
-- saved under the parameter's path.

local c = require "ltrain.c"
local captured_steps = require "ltrain.core.captured_steps"
local class = require "ltrain.core.class"
local config = require "ltrain.core.config"
local elements = require "ltrain.core.elements"
local errors = require "ltrain.core.errors"
local gradients_of = require "ltrain.core.gradients_of"
local has_shape = require "ltrain.core.has_shape"
local is_float = require "ltrain.core.is_float"
local parts = require "ltrain.core.parts"
local schema = require "ltrain.core.schema"
local external_writes = require "ltrain.optim.external_writes"
local skipped_steps = require "ltrain.optim.skipped_steps"
local tree = require "ltrain.core.tree"

local clear_gradient <const> = require("ltrain.core.zero_grad").clear

local Optimizer = class.extend(nil, "Optimizer")

Optimizer.extend = class.extend

Optimizer.__options = { zero_grad = "set_to_none" }

--- Whether `update` treats each element of a parameter alone, so that a slice of a parameter steps
--- as it would within the whole; strategies that shard the state of optimizers need that.
Optimizer.elementwise = false

--- Rows of a subclass's options for config.check; none by default.
Optimizer.options = {}

local function where(self)
  return "optim." .. getmetatable(self).__name
end

-- Groups.

local function check_parameter(self, value, i, name)
  if c.is_tensor(value) and value.is_leaf and not self._known[value] then return end
  local place = ("parameter %d ('%s')"):format(i, name)
  if not c.is_tensor(value) then
    errors.blame("%s: %s must be a tensor: got %s", where(self), place, errors.show(value))
  elseif not value.is_leaf then
    errors.blame("%s: %s is the result of an operation: only leaves can be optimized", where(self),
      place)
  else
    errors.blame("%s: %s is in it twice, as '%s' too", where(self), place, self._known[value])
  end
end

local function group_of(self, params, options)
  if c.is_tensor(params) then params = { params } end
  if type(params) ~= "table" or getmetatable(params) ~= nil then
    errors.blame("%s: params must be a list of tensors, like net:parameters(): got %s",
      where(self), errors.show(params))
  end
  local group = config.check(options, self.options, where(self))
  group.params, group.names = {}, {}
  for i, value in elements.each(params) do
    local name = params.names and params.names[i] or tostring(self._count)
    check_parameter(self, value, i, name)
    self._known[value] = name
    self._count = self._count + 1
    group.params[i], group.names[i] = value, name
  end
  return group
end

-- The same name in two groups, as two modules give it, gets the group's number before it.
local function make_names_differ(self)
  local seen = {}
  for g, group in ipairs(self.param_groups) do
    for i, name in ipairs(group.names) do
      if seen[name] then name = ("%d.%s"):format(g - 1, name) end
      while seen[name] do name = name .. "_" end
      seen[name] = true
      group.names[i] = name
    end
  end
end

--- Adds a group: { params = head:parameters(), lr = 1e-4, name = "head" }; options that are
--- not set are those of the optimizer. LearningRateMonitor logs a group under its name.
function Optimizer:add_param_group(group)
  if type(group) ~= "table" or group.params == nil then
    errors.blame("%s: a group needs params: got %s%s", where(self), errors.show(group),
      class.has_method(group, "parameters") and ": write {params = layer:parameters()}" or "")
  end
  local options = {}
  for name, value in tree.pairs(self.defaults) do options[name] = value end
  for name, value in tree.pairs(group) do
    if name ~= "params" and name ~= "name" then options[name] = value end
  end
  local new = group_of(self, group.params, options)
  if group.name ~= nil then
    new.name = config.argument(group.name, "string", where(self), "the name of a group")
  end
  table.insert(self.param_groups, new)
  if self._names_of then self:use_names_of(self._names_of) else make_names_differ(self) end
  external_writes.forget(self)
end

--- `params`: net:parameters(), a list of tensors, or a list of groups. The options are those of the
--- subclass.
function Optimizer:init(params, options)
  self.defaults = config.check(options, self.options, where(self))
  self.param_groups, self.state = {}, {}
  self._deferred = skipped_steps.new()
  self._known, self._count = {}, 0
  if type(params) ~= "table" or getmetatable(params) ~= nil then
    errors.blame("%s: the first argument must be net:parameters(), a list of tensors or a list "
      .. "of groups: got %s", where(self), errors.show(params))
  elseif #params == 0 then
    errors.blame("%s: there are no parameters to optimize", where(self))
  end
  if type(params[1]) == "table" then
    for _, group in elements.each(params) do self:add_param_group(group) end
  else
    self:add_param_group { params = params }
  end
end

--- Names the parameters by their paths in `module`, also those of groups that are added later, so
--- that saved state can be assigned to them. The Trainer does this with the module that configured
--- the optimizer.
function Optimizer:use_names_of(module)
  local paths = {}
  self._names_of = module
  for name, tensor in module:named_parameters() do paths[tensor] = name end
  for _, group in ipairs(self.param_groups) do
    for i, parameter in ipairs(group.params) do
      group.names[i] = paths[parameter] or group.names[i]
    end
  end
  make_names_differ(self)
end

-- Stepping.

--- Returns the parameters of a group that have gradients, these gradients, and their states: three
--- lists. A parameter without a state gets `fresh(parameter)`, if that is given.
function Optimizer:active(group, fresh)
  local params, grads, states = {}, {}, {}
  for _, parameter in ipairs(group.params) do
    local grad = parameter.grad
    if grad ~= nil then
      local n = #params + 1
      local state = self.state[parameter]
      if not state and fresh then
        state = fresh(parameter)
        self.state[parameter] = state
      end
      params[n], grads[n], states[n] = parameter, grad, state
    end
  end
  return params, grads, states
end

--- Returns the dtype of the state of a parameter: f32 for f16 and bf16.
function Optimizer.state_dtype(parameter)
  return parameter.dtype == "f64" and "f64" or "f32"
end

--- Concatenates lists, as the operations of optimizers take them.
function Optimizer.join(first, ...)
  for _, list in ipairs { ... } do table.move(list, 1, #list, #first + 1, first) end
  return first
end

--- The `update` of a class that hands `checked` what it gives to the operation; nil of others. (A
--- subclass with an update of its own inherits a field that is another one.)
Optimizer.checked_update = nil

--- The next step changes nothing where `found`, one number on the parameters' device, is not 0.
function Optimizer:check_by(found) self._found = found end

--- The same, and `settle` takes back what the host has counted of it: optim/skipped_steps.lua.
function Optimizer:check_later(found, hear) skipped_steps.begin(self._deferred, found, hear) end

--- What these two were given comes where the step is computed, on another device than gradients.
function Optimizer:place_checks(device)
  local deferred = self._deferred
  if self._found then self._found = self._found:to(device) end
  if deferred.found then deferred.found = deferred.found:to(device) end
end

--- `update` is about to set state[slot], which is not a tensor that the operation writes.
function Optimizer:remember(state, slot) skipped_steps.remember(self._deferred, state, slot) end

--- Whether some of the last steps, of those checked later, were left out: waits for that, and takes
--- back what the host has counted. Called before the state is saved.
function Optimizer:settle() return skipped_steps.settle(self._deferred) end

--- The same of those that some others have followed.
function Optimizer:hear() skipped_steps.poll(self._deferred) end

--- Returns the tensor that makes the device skip the current step (gradients with inf or NaN); nil:
--- none.
function Optimizer:found_inf() return self._deferred.found_inf or self._found end

--- Adds it, if there is one, to the list of tensors that a step takes.
function Optimizer:checked(list, arguments)
  local found = self:found_inf()
  if found then list[#list + 1], arguments.checked = found, true end
  return list
end

--- To be overridden: makes a step with the parameters of `group`.
function Optimizer:update(group)
  errors.blame("%s: update is not defined", where(self))
end

local function update_groups(self)
  for _, group in ipairs(self.param_groups) do self:update(group) end
end

local function update_all(self)
  local deferred = self._deferred
  if deferred.step then return skipped_steps.run(deferred, update_groups, self) end
  skipped_steps.settle(deferred)
  update_groups(self)
end

--- Sets the strategy that provides the gradients and wraps each step (nil: none). The Trainer calls
--- it for a fit.
function Optimizer:use_strategy(strategy)
  self._strategy = strategy
  self._update = strategy and function() update_all(self) end
end

--- Updates the parameters by their gradients. A closure, if given, is called first to compute loss
--- and gradients, and its result is returned; if its second result is false, nothing is updated.
--- Outside of the Trainer this also ends the batch: the next one gets other random numbers, and
--- unused memory is freed.
function Optimizer:step(closure)
  local loss, proceed
  if closure ~= nil then
    if not class.is_callable(closure) then
      errors.blame("optim: step: the closure must be a function: got %s", errors.show(closure))
    end
    loss, proceed = closure()
  end
  if proceed ~= false then
    if captured_steps.list then captured_steps.add(self) end
    external_writes.look(self)
    local _ <close> = c.allow_update()
    local strategy = self._strategy
    if strategy then strategy:optimizer_step(self, self._update) else update_all(self) end
    self._found = nil
  end
  c.runtime.batch_done()
  return loss
end

local ZERO_GRAD <const> = { set_to_none = { type = "boolean", default = true } }

--- Sets all gradients to nil; with set_to_none = false, the option, to zero.
function Optimizer:zero_grad(options)
  local to_zero = options and not config.check(options, ZERO_GRAD, "zero_grad").set_to_none
  for _, group in ipairs(self.param_groups) do
    for _, parameter in ipairs(group.params) do
      clear_gradient(parameter, to_zero)
    end
  end
end

-- The gradients that this process steps with.
local function own_gradients(self)
  local strategy = self._strategy
  return gradients_of(strategy and strategy:param_groups(self) or self.param_groups)
end

--- The norm of all gradients together, a tensor without dims. p: by default 2.
function Optimizer:grad_norm(p)
  if self._strategy then return self._strategy:grad_norm(self, p or 2.0) end
  return c.grads_norm(own_gradients(self), p or 2.0)
end

--- Multiplies all gradients by `factor`, one number on their device.
function Optimizer:scale_gradients(factor)
  local gradients = own_gradients(self)
  c.grads_scale(table.move(gradients, 1, #gradients, 2, { factor }))
end

-- Scales gradients, whose norm together is `norm`, so that it is at most `most`, without reading
-- it; those whose norm is not finite stay as they are.
local function limit_norm(gradients, norm, most)
  local _ <close> = c.no_grad()
  local factor = (most / (norm + 1e-6)):clamp { max = 1.0 }
  factor = c.where(norm:isfinite(), factor, c.ones_like(factor))
  c.grads_scale(table.move(gradients, 1, #gradients, 2, { factor }))
end

--- Clips the gradients of all parameters in place: so that their total norm is at most `value`
--- ("norm", the default), or each element is in -value..value ("value"). With "norm" it returns the
--- norm before clipping; gradients whose norm is not finite are not changed.
function Optimizer:clip_gradients(value, algorithm)
  config.argument(value, "number", "clip_gradients", "gradient_clip_val", { min = 0 })
  algorithm = algorithm or "norm"
  if algorithm == "norm" then
    local norm = self:grad_norm(2.0)
    limit_norm(own_gradients(self), norm, value)
    self._norm_before = norm
    return norm
  elseif algorithm == "value" then
    return c.clip_grad_value(own_gradients(self), value)
  end
  errors.blame("clip_gradients: gradient_clip_algorithm must be 'norm' or 'value': got %s",
    errors.show(algorithm))
end

-- Saving.

-- Keeps nothing of what the caller lets go.
local copy
function copy(value)
  if c.is_tensor(value) then
    local own <close> = value:detach()
    return own:clone()
  end
  return type(value) == "table" and tree.map(value, copy) or value
end

-- Tables of the caller, with the optimizer's tensors.
local view
function view(value)
  if c.is_tensor(value) then return value:detach() end
  return type(value) == "table" and tree.map(value, view) or value
end

--- Returns { class = name, state = { [path] = { slot = tensor or number } },
--- param_groups = { { lr =, params = {paths} } } }
---@param own_tensors boolean|nil its own tensors, which the next step changes, without a copy
function Optimizer:state_dict(own_tensors)
  local of <const> = own_tensors and view or copy
  self:settle()
  local saved = { class = getmetatable(self).__name, state = {}, param_groups = {} }
  for g, group in ipairs(self.param_groups) do
    local options = { params = table.move(group.names, 1, #group.names, 1, {}) }
    for name, value in tree.pairs(group) do
      if name ~= "params" and name ~= "names" then options[name] = value end
    end
    saved.param_groups[g] = options
    for i, parameter in ipairs(group.params) do
      local slots = self.state[parameter]
      if slots then
        local kept = {}
        for slot, value in tree.pairs(slots) do kept[slot] = of(value) end
        saved.state[group.names[i]] = kept
      end
    end
  end
  return saved
end

local function sorted(names)
  local list = table.move(names, 1, #names, 1, {})
  table.sort(list)
  return table.concat(list, ", ")
end

-- A group that was added after the optimizer was made is made again, of the parameters that have
-- its paths in the module.
local function add_groups(self, saved)
  if not self._names_of then return end
  local by_path = {}
  for name, tensor in self._names_of:named_parameters() do by_path[name] = tensor end
  for g = #self.param_groups + 1, #saved.param_groups do
    local group = { params = {} }
    for name, value in tree.pairs(saved.param_groups[g]) do
      if name ~= "params" then group[name] = value end
    end
    for i, path in ipairs(saved.param_groups[g].params) do
      if not by_path[path] then
        errors.blame("%s: load_state_dict: group %d has the parameter '%s', which is not there",
          where(self), g, path)
      end
      group.params[i] = by_path[path]
    end
    self:add_param_group(group)
  end
end

-- Both have the same groups with the same names; raises otherwise.
local function check_groups(self, saved)
  if #saved.param_groups ~= #self.param_groups then
    errors.blame("%s: load_state_dict: the state has %d groups, the optimizer %d", where(self),
      #saved.param_groups, #self.param_groups)
  end
  for g, group in ipairs(self.param_groups) do
    local theirs, ours = sorted(saved.param_groups[g].params), sorted(group.names)
    if theirs ~= ours then
      errors.blame("%s: load_state_dict: group %d has other parameters\n  state: %s\n"
        .. "  optimizer: %s", where(self), g, theirs, ours)
    end
  end
end

-- A saved tensor where the parameter is; one with an element for each of the parameter's in the
-- dtype of its state: the file may be of a run in another precision. One that is read from a file
-- here is the optimizer's already: a copy of it would take its memory twice.
local function placed(self, leaf, parameter)
  local value = parts.whole(leaf)
  if not c.is_tensor(value) then return value end
  local own = (rawequal(value, leaf) and copy(value) or value):to(parameter.device)
  if not self.slots or not is_float(value.dtype) or not has_shape(value, parameter) then
    return own
  end
  return own:to(self.state_dtype(parameter))
end

-- A tensor of a class that declares its `slots` has an element for each of the parameter's, or no
-- dims; what other classes keep may have any shape.
local function load_slots(self, parameter, name, slots)
  local wrong = self.slots and schema.wrong(slots, { fields = self.slots }, name)
  if wrong then errors.blame("%s: load_state_dict: state: %s", where(self), wrong) end
  local state = {}
  for slot, value in tree.pairs(slots) do
    if self.slots and parts.is_tensor(value) and value.ndim > 0
      and not has_shape(value, parameter) then
      errors.blame("%s: load_state_dict: %s of '%s' is %s, the parameter is %s", where(self), slot,
        name, errors.show_shape(value), errors.show_shape(parameter))
    end
    state[slot] = tree.map(value, function(leaf) return placed(self, leaf, parameter) end)
  end
  return state
end

-- What groups have besides the options of the class.
local OF_GROUPS <const> = { initial_lr = { type = "number" }, name = { type = "string" } }

-- An option of a group that was saved, as the constructor would take it.
local function saved_option(self, name, value)
  local row = self.options[name] or OF_GROUPS[name]
  return row and config.value(value, row, where(self) .. ": load_state_dict", name) or value
end

local STATE <const> = {
  param_groups = { list = { fields = { params = { list = "string" } } } },
  state = { map = { map = "any" } },
}

--- Restores the options of the groups, and the state of the parameters by path. Groups that were
--- added later are added again, by the paths of their parameters, after use_names_of.
function Optimizer:load_state_dict(saved)
  if type(saved) ~= "table" or type(saved.param_groups) ~= "table"
    or type(saved.state) ~= "table" then
    errors.blame("%s: load_state_dict: not the state of an optimizer: %s", where(self),
      errors.show(saved))
  end
  schema.check(saved, STATE, where(self))
  class.check_saved(self, saved.class, where(self))
  add_groups(self, saved)
  check_groups(self, saved)
  local state = {}
  for g, group in ipairs(self.param_groups) do
    for i, parameter in ipairs(group.params) do
      local slots = saved.state[group.names[i]]
      if slots then state[parameter] = load_slots(self, parameter, group.names[i], slots) end
    end
    for name, value in tree.pairs(saved.param_groups[g]) do
      if name ~= "params" then group[name] = saved_option(self, name, value) end
    end
  end
  self.state, self._deferred = state, skipped_steps.new()
end

return Optimizer
