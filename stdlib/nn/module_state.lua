-- stdlib/nn/module_state.lua: what a module saves and how it comes back.

local c = require "ltrain.c"
local class = require "ltrain.core.class"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local has_shape = require "ltrain.core.has_shape"
local map_location = require "ltrain.files.map_location"
local tree = require "ltrain.core.tree"
local walk = require "ltrain.core.walk"

local module_state = {}

local NONE <const> = {} -- the other names of a tensor that has one

--- Returns the parameters and persistent buffers by name: { ["net.0.weight"] = tensor }, sharing
--- memory with the module. A tensor with several names is listed once, under the first.
function module_state.state_dict(self)
  local state = {}
  for _, item in ipairs(walk.tensors(self)) do
    if item.buffer ~= "unsaved" then state[item.name] = item.value:detach() end
  end
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
  local list, aliases = walk.tensors(module)
  local resized = false
  for _, item in ipairs(list) do
    local owner = item.buffer and item.entry.module
    if owner and class.has_method(owner, "resize_for_state") then
      owner:resize_for_state(state, item.entry.name == "" and "" or item.entry.name .. ".")
      resized = true
    end
  end
  if resized then return walk.tensors(module) end
  return list, aliases
end

-- What is to be written where, and the three lists of what does not fit.
local function compare(module, state_dict, list, aliases)
  local other_names <const> = other_names_of(list, aliases)
  local known, plan = {}, { writes = {}, missing = {}, unexpected = {}, shapes = {} }
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
      elseif not has_shape(source, item.value) then
        plan.shapes[#plan.shapes + 1] = ("%s is %s, given %s"):format(item.name,
          errors.show_shape(item.value), errors.show_shape(source))
      else
        plan.writes[#plan.writes + 1] = { to = item.value, from = source }
      end
    end
  end
  for name in tree.pairs(state_dict) do
    if not known[name] then plan.unexpected[#plan.unexpected + 1] = name end
  end
  return plan
end

local function complain(module, plan, strict)
  local lines = {}
  local function add(title, names)
    if #names > 0 then lines[#lines + 1] = ("  %s: %s"):format(title, table.concat(names, ", ")) end
  end
  if strict then
    add("missing", plan.missing)
    add("unexpected", plan.unexpected)
  end
  add("shapes", plan.shapes)
  if #lines > 0 then
    errors.blame("load_state_dict: the tensors do not fit %s\n%s", walk.class_name(module),
      table.concat(lines, "\n"))
  end
end

--- Copies tensors by name into the parameters and buffers. Options: strict (true, or the module's
--- strict_loading) makes a missing or unexpected name an error; a wrong shape always is one.
--- Nothing is written after an error. Returns { missing = {...}, unexpected = {...} }.
function module_state.load_state_dict(self, state, options)
  local strict_loading = self.strict_loading
  if state == nil and type(options) == "string" then -- nil, message of lt.load
    errors.blame("load_state_dict: there is no state: %s", options)
  end
  local o = config.check(options, {
    strict = { type = "boolean", default = strict_loading == nil or strict_loading },
  }, "load_state_dict")
  if type(state) ~= "table" then
    errors.blame("load_state_dict: the state must be a table: got %s", errors.show(state))
  end
  local plan = compare(self, state, tensors_for(self, state))
  complain(self, plan, o.strict)
  local _ <close> = c.allow_update()
  for _, write in ipairs(plan.writes) do write.to:copy_(write.from) end
  return { missing = plan.missing, unexpected = plan.unexpected }
end

local SAVEABLE <const> = { boolean = true, number = true, string = true }

--- `self:save_hyperparameters(o, {ignore =, logger =})` stores the options `o` of init
--- in `self.hparams`: they are saved in checkpoints, and load_from_checkpoint passes them to init.
--- Options: ignore, a list of names to leave out; logger (true) also passes them to the loggers. A
--- second call, for example in a subclass, adds to them.
function module_state.save_hyperparameters(self, ...)
  if select("#", ...) == 0 then
    errors.blame("save_hyperparameters: pass what to save: self:save_hyperparameters(o) with the "
      .. "table that init is given")
  end
  local values, options = ...
  local o = config.check(options, {
    ignore = { type = "table|string", default = {} },
    logger = { type = "boolean", default = true },
  }, "save_hyperparameters")
  local ignored, kept = {}, {}
  for name, value in next, rawget(self, "hparams") or {} do kept[name] = value end
  for _, name in ipairs(type(o.ignore) == "string" and { o.ignore } or o.ignore) do
    ignored[name] = true
  end
  if values ~= nil and (type(values) ~= "table" or getmetatable(values) ~= nil) then
    errors.blame("save_hyperparameters: a table of options is needed: got %s",
      errors.show(values))
  end
  for name, value in tree.pairs(values or {}) do
    if not ignored[name] then
      kept[name] = tree.map(value, function(leaf, keys)
        if SAVEABLE[type(leaf)] then return leaf end
        errors.blame("save_hyperparameters: %s cannot be saved: it is %s; "
          .. "leave it out with {ignore = {'%s'}}", tree.path(name, keys), errors.show(leaf), name)
      end)
    end
  end
  self.hparams = kept
  rawset(self, "_log_hparams", o.logger)
end

local function check_load(self, file, overrides)
  local where <const> = "load_from_checkpoint"
  if class.of(self) then
    errors.blame("%s: call it on the class: %s:%s(file)", where, walk.class_name(self), where)
  elseif type(self) ~= "table" or not rawget(self, "__module") then
    errors.blame("%s: call it with a colon, Net:%s(file): got %s in place of the class", where,
      where, errors.show(self))
  end
  config.argument(file, "string", where, "file")
  if overrides ~= nil and (type(overrides) ~= "table" or getmetatable(overrides) ~= nil) then
    errors.blame("%s: overrides must be a table of options for init: got %s", where,
      errors.show(overrides))
  end
end

-- Puts the weights of a checkpoint where `map` says; returns the device of the first.
local function place_weights(checkpoint, map)
  local place, first = map_location.place(map, "load_from_checkpoint"), nil
  if not place then return nil end
  local weights = checkpoint.state_dict
  for name, tensor in tree.pairs(weights) do
    weights[name] = place(tensor, "cpu")
    first = first or weights[name].device
  end
  return first
end

-- A new module with a checkpoint's weights.
local function from_checkpoint(self, checkpoint, hparams, device)
  local module = self(hparams)
  if device then module:to(device) end
  if module.on_load_checkpoint then module:on_load_checkpoint(checkpoint) end
  module:load_state_dict(checkpoint.state_dict)
  return module
end

--- `Net:load_from_checkpoint(file, overrides)` returns a new Net with the saved hyper-parameters
--- (those in `overrides` replaced) and the saved weights; nil and a message if the file cannot be
--- read. It is on the CPU, or where `overrides.map_location` says, as with lt.load.
function module_state.load_from_checkpoint(self, file, overrides)
  check_load(self, file, overrides)
  local checkpoint, message = require "ltrain.files.checkpoint_file".read(file)
  if not checkpoint then return nil, message end
  local hparams = tree.map(checkpoint.hyper_parameters or {}, function(leaf) return leaf end)
  for name, value in tree.pairs(overrides or {}) do hparams[name] = value end
  hparams.map_location = nil
  local device = place_weights(checkpoint, overrides and overrides.map_location)
  if next(hparams) ~= nil then return from_checkpoint(self, checkpoint, hparams, device) end
  local ok, module = pcall(from_checkpoint, self, checkpoint, hparams, device)
  if ok then return module end
  if type(module) ~= "string" then error(module, 0) end
  error(("%s\n  load_from_checkpoint: %s holds no hyper-parameters: call "
    .. "self:save_hyperparameters(o) in init, or give them: load_from_checkpoint(file, {name = "
    .. "value})"):format(module, errors.show(file)), 0)
end

return module_state
