-- stdlib/nn/module_state.lua: a module's state_dict and load_state_dict, its hyperparameters and
-- exports.

local c = require "ltrain.c"
local class = require "ltrain.core.class"
local config = require "ltrain.core.config"
local cuts = require "ltrain.core.cuts"
local errors = require "ltrain.core.errors"
local has_shape = require "ltrain.core.has_shape"
local hyperparameters = require "ltrain.core.hyperparameters"
local load_export = require "ltrain.core.load_export"
local map_location = require "ltrain.files.map_location"
local parts = require "ltrain.core.parts"
local state_hooks = require "ltrain.nn.state_hooks"
local tree = require "ltrain.core.tree"
local walk = require "ltrain.core.walk"

local module_state = {}

local NONE <const> = {} -- the other names of a tensor that has one

-- The name in the state of what a module's get_extra_state gives.
local EXTRA <const> = "_extra_state"

local function prefix_of(entry) return entry.name == "" and "" or entry.name .. "." end

local SAVE <const> = {
  destination = { type = "table", doc = "the table that the tensors are put into" },
  prefix = { type = "string", default = "", doc = "what begins their names" },
  keep_vars = { type = "boolean", default = false,
    doc = "the parameters themselves, with history" },
}

--- Returns the parameters and persistent buffers by name: { ["net.0.weight"] = tensor }, sharing
--- memory with the module. A tensor with several names is listed once, under the first. The result
--- of a module's method get_extra_state() (numbers, strings, tensors and tables of these) is stored
--- under "_extra_state", and is loaded with set_extra_state(value). Options: destination (a new
--- table), prefix (""), keep_vars (false).
function module_state.state_dict(self, options)
  local o = config.check(options, SAVE, "state_dict")
  local state = o.destination and options.destination or {}
  state_hooks.run(state_hooks.used and walk.modules(self) or {}, "before_save", function(prefix)
    return o.prefix .. prefix, o.keep_vars
  end)
  local list, _, modules = walk.tensors(self)
  for _, item in ipairs(list) do
    if item.buffer ~= "unsaved" then
      state[o.prefix .. item.name] = o.keep_vars and item.value or item.value:detach()
    end
  end
  for _, entry in ipairs(modules) do
    if class.has_method(entry.module, "get_extra_state") then
      state[o.prefix .. prefix_of(entry) .. EXTRA] = entry.module:get_extra_state()
    end
  end
  state_hooks.run(modules, "after_save", function(prefix) return state, o.prefix .. prefix, {} end)
  return state
end

-- "net.weight_g" for "net.parametrizations.weight.original0": the names of PyTorch's first
-- weight_norm, which many files have.
local OLDER <const> = { original0 = "_g", original1 = "_v" }

local function older_name(name)
  if not name:find("parametrizations.", 1, true) then return nil end
  local path, parameter, part = name:match "^(.-)parametrizations%.([^.]+)%.(original[01])$"
  return path and path .. parameter .. OLDER[part]
end

-- The names of each tensor but its first, sorted; then its older one.
local function other_names_of(list, aliases)
  local names = {}
  for alias, first in tree.pairs(aliases) do
    names[first] = names[first] or {}
    table.insert(names[first], alias)
  end
  for _, item in ipairs(list) do
    local older <const> = older_name(item.name)
    if older then
      names[item.name] = names[item.name] or {}
      table.insert(names[item.name], older)
    end
  end
  return names
end

-- The tensors of a module: some buffers are as long as the training data said, and become so here.
local function tensors_for(module, state)
  local list, aliases, modules = walk.tensors(module)
  local resized = false
  for _, item in ipairs(list) do
    local owner = item.buffer and item.entry.module
    if owner and class.has_method(owner, "resize_for_state") then
      owner:resize_for_state(state, prefix_of(item.entry))
      resized = true
    end
  end
  if resized then return walk.tensors(module) end
  return list, aliases, modules
end

-- Adds the extra state of modules to the plan.
local function plan_extra(state, modules, plan, known)
  for _, entry in ipairs(modules) do
    local name = prefix_of(entry) .. EXTRA
    if class.has_method(entry.module, "set_extra_state") then
      known[name] = true
      if state[name] == nil then
        plan.missing[#plan.missing + 1] = name
      else
        plan.extras[#plan.extras + 1] = { entry.module, state[name] }
      end
    end
  end
end

-- Whether a value is a tensor of a file, which the plan notes.
local function is_stored(plan, source)
  local is_one = parts.is_tensor(source)
  plan.has_stored = plan.has_stored or is_one
  return is_one
end

-- Whether a tensor, or one of a file, is the whole of one of the module that is cut.
local function is_whole(plan, source, own)
  local cut = cuts.of(own)
  if not cut or not cuts.is_whole(cut, source) then return false end
  plan.has_stored = true
  return true
end

-- What is to be written where, and the three lists of what does not fit.
local function compare(plan, state_dict, list, aliases, modules)
  local other_names <const> = other_names_of(list, aliases)
  local known = {}
  for _, item in ipairs(list) do
    if item.buffer ~= "unsaved" then
      local source = state_dict[item.name]
      known[item.name] = true
      for _, name in ipairs(other_names[item.name] or NONE) do
        known[name] = true
        source = source or state_dict[name]
      end
      if source == nil then
        plan.missing[#plan.missing + 1] = item.name
      elseif not c.is_tensor(source) and not is_stored(plan, source) then
        plan.shapes[#plan.shapes + 1] = ("%s is %s, given %s"):format(item.name,
          errors.show_shape(item.value), errors.show(source))
      elseif not has_shape(source, item.value) and not is_whole(plan, source, item.value) then
        plan.shapes[#plan.shapes + 1] = ("%s is %s, given %s"):format(item.name,
          errors.show_shape(item.value), errors.show_shape(source))
      else
        plan.writes[#plan.writes + 1] = { to = item, from = source }
      end
    end
  end
  plan_extra(state_dict, modules, plan, known)
  for name in tree.pairs(state_dict) do
    if not known[name] then plan.unexpected[#plan.unexpected + 1] = name end
  end
end

-- What to do instead where the state is a whole checkpoint; nil: it is not one.
local function checkpoint_remedy(module, state, plan)
  if #plan.missing == 0 then return nil end
  if type(state.state_dict) == "table" then
    return "this is a checkpoint: pass its field state_dict"
  end
  for _, name in ipairs(plan.missing) do
    if state["model." .. name] == nil then return nil end
  end
  return ("this is a checkpoint of ltrain: %s:load_from_checkpoint(file) reads it")
    :format(walk.class_name(module))
end

local function complain(module, state, plan, strict)
  local lines = {}
  for _, text in ipairs(plan.messages) do lines[#lines + 1] = "  " .. tostring(text) end
  local function add(title, names)
    if #names > 0 then lines[#lines + 1] = ("  %s: %s"):format(title, table.concat(names, ", ")) end
  end
  if strict then
    add("missing", plan.missing)
    add("unexpected", plan.unexpected)
  end
  add("shapes", plan.shapes)
  local remedy = strict and checkpoint_remedy(module, state, plan)
  if remedy then lines = { "  " .. remedy } end
  if #lines > 0 then
    errors.blame("load_state_dict: the tensors do not fit %s\n%s", walk.class_name(module),
      table.concat(lines, "\n"))
  end
end

-- Copies the tensors of a plan, by copy(own, source) if there is one, or with `assign` puts them in
-- the place of the module's own.
local function write(plan, modules, assign, copy)
  local _ <close> = c.allow_update()
  local new = {}
  if plan.has_stored then copy = copy or cuts.copy end
  for _, step in ipairs(plan.writes) do
    local own = step.to.value
    if not assign and copy then
      copy(own, step.from)
    elseif not assign then
      own:copy_(step.from)
    elseif step.to.buffer or c.is_parameter(step.from) then
      new[own] = step.from
    else
      local cut, from = cuts.of(own), step.from:detach()
      if cut and not has_shape(from, own) then from = cuts.take(cut, from) end
      new[own] = c.parameter(from, { requires_grad = own.requires_grad })
      cuts.note(new[own], cut)
    end
  end
  for _, entry in ipairs(assign and modules or {}) do
    for _, item in ipairs(entry.tensors) do
      if new[item.value] then rawset(item.holder, item.key, new[item.value]) end
    end
  end
  for _, extra in ipairs(plan.extras) do extra[1]:set_extra_state(extra[2]) end
end

-- What load_state_dict returns, and its hooks get: PyTorch's names read the same lists.
local KEYS <const> = { missing_keys = "missing", unexpected_keys = "unexpected" }
local Keys <const> = {
  __index = function(keys, name) return KEYS[name] and rawget(keys, KEYS[name]) end,
  __newindex = function(keys, name, value) rawset(keys, KEYS[name] or name, value) end,
}

local function check_load(state, options, strict_loading)
  local message = type(options) == "table" and options.strict or options
  if state == nil and type(message) == "string" then -- nil, message of lt.load
    errors.blame("load_state_dict: there is no state: %s", message)
  end
  local o = config.check(options, {
    strict = { type = "boolean", default = strict_loading },
    assign = { type = "boolean", default = false },
  }, "load_state_dict")
  if type(state) ~= "table" then
    errors.blame("load_state_dict: the state must be a table: got %s", errors.show(state))
  end
  return o
end

-- copy(own, source), optional: see load_by.
local function load(self, state, options, copy)
  local o = check_load(state, options, self.strict_loading)
  local plan = { writes = {}, extras = {}, missing = {}, unexpected = {}, shapes = {},
    messages = {} }
  local entries = state_hooks.used and walk.modules(self) or {}
  if state_hooks.any(entries, "before_load") then
    state = parts.whole(state) -- a copy, which hooks may change
    state_hooks.run(entries, "before_load", function(prefix)
      return state, prefix, {}, o.strict, plan.missing, plan.unexpected, plan.messages
    end)
  end
  local list, aliases, modules = tensors_for(self, state)
  compare(plan, state, list, aliases, modules)
  local keys = setmetatable({ missing = plan.missing, unexpected = plan.unexpected }, Keys)
  local waits = state_hooks.any(modules, "after_load")
  complain(self, state, plan, o.strict and not waits)
  write(plan, modules, o.assign, copy)
  if waits then
    state_hooks.run(modules, "after_load", function() return keys end)
    plan.missing, plan.unexpected = keys.missing, keys.unexpected
    complain(self, state, plan, o.strict)
  end
  return keys
end

--- Copies tensors by name into the parameters and buffers. Options: strict (true, or the module's
--- strict_loading) makes missing and unexpected names errors; a wrong shape always is one; assign
--- (false): use the given tensors instead of copying them: create optimizers afterwards. If an
--- error is raised, nothing is written, unless there are hooks of
--- register_load_state_dict_post_hook. Returns { missing = {...}, unexpected = {...} }.
function module_state.load_state_dict(self, state, options)
  return load(self, state, options)
end

-- The same by a strategy's copy(own, source), which copies what this rank has; a source may be a
-- tensor of a file.
function module_state.load_by(self, state, copy) return load(self, state, nil, copy) end

--- `self:save_hyperparameters(o, {ignore =, logger =})` stores the options `o` of init in
--- `self.hparams`: they are saved in checkpoints, and load_from_checkpoint passes them to init.
--- Without `o` it stores the arguments of the calling init: its table, or its arguments by name.
--- Options: ignore, a list of names to omit; logger (true): also pass them to the loggers. Further
--- calls, for example in a subclass, add to them.
function module_state.save_hyperparameters(self, ...) hyperparameters.save(self, ...) end

--- Writes the module as an ONNX file, with the options of [lt.onnx.export](onnx.md).
--- `input_sample`: a tensor, or a list of tensors; by default the field example_input_array.
---@param file_path string
---@param input_sample Tensor|table|nil
function module_state.to_onnx(self, file_path, input_sample, options)
  if input_sample == nil then input_sample = self.example_input_array end
  if input_sample == nil then
    errors.blame("to_onnx: an input is needed: to_onnx(path, x), or the field example_input_array")
  end
  return load_export "onnx".export(self, input_sample, file_path, options)
end

-- Puts the weights of a checkpoint where `map` says; returns the device of the first.
local function place_weights(checkpoint, map)
  local place, first = map_location.place(map, "load_from_checkpoint"), nil
  if not place then return nil end
  local weights = checkpoint.state_dict
  for name, value in tree.pairs(weights) do
    if c.is_tensor(value) then
      weights[name] = place(value, "cpu")
      first = first or weights[name].device
    end
  end
  return first
end

-- A new module with a checkpoint's weights.
local function from_checkpoint(self, checkpoint, hparams, device, strict)
  local module = self(hyperparameters.arguments(self, hparams))
  if device then module:to(device) end
  if module.on_load_checkpoint then module:on_load_checkpoint(checkpoint) end
  module:load_state_dict(checkpoint.state_dict, { strict = strict })
  return module
end

--- `Net:load_from_checkpoint(file, overrides)` returns a new Net with the saved hyper-parameters
--- (those in `overrides` replaced) and the saved weights; nil and a message if the file cannot be
--- read. It is on the CPU, or on `overrides.map_location`, as in lt.load; `overrides.strict` is
--- passed to load_state_dict, unless there is a hyper-parameter of this name. If the parameters of
--- init have the names of all hyper-parameters, they are passed as arguments, otherwise as a table.
function module_state.load_from_checkpoint(self, file, overrides)
  hyperparameters.check_load(self, type(self) == "table" and rawget(self, "__module"), "Net", file,
    overrides)
  local checkpoint, message = require "ltrain.files.checkpoint_file".read(file)
  if not checkpoint then return nil, message end
  checkpoint.state_dict = parts.whole(checkpoint.state_dict)
  local hparams = hyperparameters.merged(checkpoint.hyper_parameters, overrides)
  hparams.map_location = nil
  local strict
  if (checkpoint.hyper_parameters or {}).strict == nil then
    strict, hparams.strict = hparams.strict, nil
  end
  local device = place_weights(checkpoint, overrides and overrides.map_location)
  local _ <close> = errors.reading(file)
  if next(hparams) ~= nil then
    return from_checkpoint(self, checkpoint, hparams, device, strict)
  end
  local ok, module = pcall(from_checkpoint, self, checkpoint, hparams, device, strict)
  if ok then return module end
  if type(module) ~= "string" then error(module, 0) end
  error(("%s\n  load_from_checkpoint: %s contains no hyper-parameters: call "
    .. "self:save_hyperparameters(o) in init, or give them: load_from_checkpoint(file, {name = "
    .. "value})"):format(module, errors.show(file)), 0)
end

return module_state
