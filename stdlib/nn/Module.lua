-- stdlib/nn/Module.lua: a model, or a layer: a table with parameters, submodules and hooks.
--
--   local lt = require "ltrain"
--   local Net = lt.Module:extend("Net")
--   function Net:init(o) self.head = lt.nn.Linear(o.width, 10) end
--   function Net:forward(x)
--     local logits = self.head(x)
--     return logits
--   end
--   local net = Net{width = 4}
--   print(net(lt.ones(2, 4)).shape[2], net.head.weight.shape[1])
--   -- prints: 10	10
--
-- Nothing is registered: parameters and submodules are found in the fields of a module when they
-- are needed (walk.lua), so any field may be set at any time. `__newindex` records the order of
-- first assignment, and raises an error for names of Module's own methods.

local c = require "ltrain.c"
local class = require "ltrain.core.class"
local config = require "ltrain.core.config"
local dtypes = require "ltrain.core.dtypes"
local errors = require "ltrain.core.errors"
local hook_lists = require "ltrain.nn.hook_lists"
local is_float = require "ltrain.core.is_float"
local load_export = require "ltrain.core.load_export"
local module_print = require "ltrain.nn.module_print"
local module_trainer = require "ltrain.nn.module_trainer"
local tree = require "ltrain.core.tree"
local walk = require "ltrain.core.walk"
local zero_grad = require "ltrain.core.zero_grad"

local Module = class.extend(nil, "Module")

Module.__module = true
Module.training = true
Module.automatic_optimization = true
Module.strict_loading = true

-- What may stand in the place of a table of options.
local LOG <const> = "prog_bar logger on_step on_epoch reduce_fx enable_graph sync_dist "
  .. "sync_dist_group add_dataloader_idx batch_size "
Module.__options = {
  all_gather = "group sync_grads", buffers = "recurse",
  load_state_dict = "strict assign", log = LOG .. "metric_attribute rank_zero_only",
  log_dict = LOG .. "rank_zero_only", named_buffers = "prefix recurse",
  named_parameters = "prefix recurse", optimizers = "use_pl_optimizer", parameters = "recurse",
  materialize = "device recurse", to_empty = "device recurse",
  register_buffer = "persistent", register_full_backward_hook = "prepend",
  register_full_backward_pre_hook = "prepend", to = "device dtype", zero_grad = "set_to_none",
}

-- Methods that a module may replace, in its class or in the object: those of Lightning's loop.
local replaceable <const> = {}
for name, method in next, module_trainer.defaults do
  Module[name] = method
  replaceable[name] = true
end
for name, method in next, module_trainer.methods do Module[name] = method end
class.add_later(Module, "register_forward_pre_hook register_forward_hook "
  .. "register_full_backward_hook register_full_backward_pre_hook",
  function() return require "ltrain.nn.module_hooks".methods end)
class.add_later(Module, "register_parameter add_module register_module set_submodule",
  function() return require "ltrain.nn.module_parts" end)
class.add_later(Module, "to_empty materialize",
  function() return require "ltrain.nn.module_memory".methods end)
class.add_later(Module, "state_dict load_state_dict load_from_checkpoint save_hyperparameters "
  .. "to_onnx", function() return require "ltrain.nn.module_state" end)
class.add_later(Module, "register_state_dict_pre_hook register_state_dict_post_hook "
  .. "register_load_state_dict_pre_hook register_load_state_dict_post_hook",
  function() return require "ltrain.nn.state_hooks".methods end)
Module.__tostring = module_print.text

-- Whether load_state_dict is this class's, which takes tensors of a file that have not been read.
function Module:_takes_unread() return self.load_state_dict == Module.load_state_dict end

-- ", but 'foward' is" where a module, or a class of it, has nearly a method; else "".
local function near_method(module, name)
  local names, object, above = {}, module, getmetatable(module)
  while object and object ~= Module do
    for key, value in next, object do
      if type(key) == "string" and type(value) == "function" then names[#names + 1] = key end
    end
    object, above = above, rawget(above, "super")
  end
  local near = errors.nearest(name, names)
  return near and (", but %s is"):format(errors.show(near)) or ""
end

--- To be overridden by classes: creates layers and fields. The base has nothing to do.
function Module:init() end

-- Of a class without an init.
function Module.__construct(object, ...)
  if object.init ~= Module.init then return end
  local near = near_method(object, "init")
  if near ~= "" then
    errors.blame("%s: init is not defined%s", walk.class_name(object), near)
  elseif select("#", ...) > 0 then
    errors.blame("%s: one argument too many: %s: its init takes none", walk.class_name(object),
      errors.show((...)))
  end
end

--- To be overridden by classes: what calling the module computes.
function Module:forward(...)
  errors.blame("%s: forward is not defined%s", walk.class_name(self), near_method(self, "forward"))
end
replaceable.forward = true

--- To be overridden by layers: returns the text in parentheses when the module is printed.
function Module:extra_repr() return "" end
replaceable.extra_repr = true

-- Calling.

local mark_line <const> = c.runtime.mark_line
local unmark <const> = setmetatable({}, { __close = function(_, err)
  local line = mark_line()
  mark_line(0)
  if type(err) == "string" and err:find "^ltrain%.nn%.Module:%d+: stack overflow" then
    error(("%s: stack overflow: forward calls itself: does it call self(x)?"):format(
      c.runtime.line_text(line)), 0)
  end
end })

local function pass(...) return ... end

local module_hooks -- from the first hook on

local function call_hooked(self, ...)
  module_hooks = module_hooks or require "ltrain.nn.module_hooks"
  return module_hooks.call(self, hook_lists[self], ...)
end

-- The forward of a module, with its hooks.
local function run(self, ...)
  if hook_lists[self] then return pass(call_hooked(self, ...)) end
  return pass(self:forward(...))
end

local function checked(self, input, ok, ...)
  if ok then return ... end
  local message = ...
  if type(message) == "string" and message:find "^ltrain%.[%w_.]+:%d+: attempt to " then
    errors.blame("%s: its input must be a tensor: got %s", walk.class_name(self),
      errors.show(input))
  end
  error(message, 0)
end

-- What a layer of the library makes of anything but a tensor is an error of its own frames.
local function run_without_tensor(self, ...)
  if self.forward == Module.forward or not c.runtime.parameters(self.forward)
    or walk.class_name(self) == "Sequential" then
    return pass(run(self, ...))
  end
  return pass(checked(self, (...), pcall(run, self, ...)))
end

-- The outermost call notes the script's line for the ops below it.
local function call_marked(self, ...)
  local _ <close> = unmark
  if type((...)) ~= "userdata" then return pass(run_without_tensor(self, ...)) end
  return pass(run(self, ...))
end

--- module(...) is module:forward(...), with its hooks. Not a tail call: the frame names the module
--- in errors.
function Module:__call(...)
  if mark_line() == 0 then return call_marked(self, ...) end
  if type((...)) ~= "userdata" then return pass(run_without_tensor(self, ...)) end
  if hook_lists[self] then return pass(call_hooked(self, ...)) end
  return pass(self:forward(...))
end

-- Fields.

-- Methods whose names scripts give to fields of their own: self.half = width // 2.
local HIDEABLE <const> = { bfloat16 = true, double = true, float = true, half = true, type = true }

local function is_reserved(key, value)
  return type(rawget(Module, key)) == "function" and not HIDEABLE[key]
    and not (replaceable[key] and type(value) == "function")
end

local function refuse(class_name, key)
  errors.blame("%s: '%s' is a method of every Module: give the field another name", class_name,
    key)
end

local function note(order, key)
  if not order[key] then
    order[#order + 1] = key
    order[key] = true
  end
end

local function order_of(module)
  local order = rawget(module, "_order")
  if not order then
    order = {}
    rawset(module, "_order", order)
  end
  return order
end

-- Fields that are computed: views of the trainer, and where the parameters are.
local properties <const> = module_trainer.properties

-- What would hide something of the Trainer's, and a list with a nil, at the line that assigns it.
local function check_field(module, key, value)
  if properties[key] and value ~= nil then
    errors.blame("%s: '%s' is computed by every Module: give the field another name",
      walk.class_name(module), key)
  elseif type(value) == "table" and getmetatable(value) == nil and walk.hole(value) then
    for i = 1, #value do
      if walk.is_module(value[i]) or c.is_parameter(value[i]) then
        walk.refuse_hole(value, ("%s.%s"):format(walk.class_name(module), key))
      end
    end
  end
end

local hook_changes = 0

--- Returns a count of first assignments of hooks (`on_...`) to any object: loops look up hooks
--- again when it changes.
function Module:hooks_version() return hook_changes end

function Module:__newindex(key, value)
  if type(key) == "string" and not walk.is_skipped(key) then
    if is_reserved(key, value) then refuse(walk.class_name(self), key) end
    check_field(self, key, value)
    if key:sub(1, 3) == "on_" then hook_changes = hook_changes + 1 end
    note(order_of(self), key)
  elseif key == "trainer" and value ~= nil and type(value) ~= "table" then
    errors.blame("%s: 'trainer' is the Trainer that runs the module: give the field another name",
      walk.class_name(self))
  end
  rawset(self, key, value)
end

local function index_for(new)
  return function(self, key)
    local value = new[key]
    if value == nil and properties[key] then return properties[key](self) end
    return value
  end
end
Module.__index = index_for(Module)

--- Creates a class of modules: `local Net = lt.Module:extend("Net")`.
function Module:extend(name)
  local new = class.extend(self, name)
  new.__index = index_for(new)
  return new
end

--- Converts a plain table of functions and layers to a module; returns a module unchanged. `fn`:
--- prefix of error messages.
function Module.adopt(value, fn)
  if walk.is_module(value) then return value end
  if class.is_class(value, Module) then
    errors.blame("%s%s is a class: call it to make a module", fn and fn .. ": " or "", value.__name)
  end
  if type(value) ~= "table" or getmetatable(value) ~= nil then
    errors.blame("%sa module is a table without metatable, or an object of a class below "
      .. "lt.Module: got %s%s", fn and fn .. ": " or "", errors.show(value),
      class.has_method(value, "batches") and ": the module comes first, the data after it" or "")
  end
  local order = {} -- of a plain table nothing is known but the alphabet
  for key, field in tree.pairs(value) do
    if type(key) == "string" then
      if is_reserved(key, field) then refuse("Module", key) end
      if not walk.is_skipped(key) then note(order, key) end
    end
  end
  value._order = order
  return setmetatable(value, Module)
end

--- Returns whether the module is an instance of the class `wanted` or a subclass.
function Module:is_a(wanted) return class.is_a(self, wanted) end

--- Makes field `name` a buffer: a tensor that is not a parameter but part of the state, such as
--- running averages. Options: persistent (true): whether state_dict contains it.
function Module:register_buffer(name, tensor, options)
  local o = config.check(options, { persistent = { type = "boolean", default = true } },
    "register_buffer")
  if tensor ~= nil and type(tensor) ~= "userdata" then
    errors.blame("register_buffer: '%s' must be a tensor: got %s", tostring(name),
      errors.show(tensor))
  end
  local buffers = rawget(self, "_buffers")
  if not buffers then
    buffers = {}
    rawset(self, "_buffers", buffers)
  end
  buffers[name] = o.persistent and "saved" or "unsaved"
  note(order_of(self), name) -- one whose name begins with _ too
  self[name] = tensor
end

-- What it holds.

local NAMED <const> = {
  prefix = { type = "string", default = "", doc = "what stands before each name, and a dot" },
  recurse = { type = "boolean", default = true, doc = "whether submodules count" },
}
local LISTED <const> = { recurse = NAMED.recurse }

-- The items of parameters, or of buffers; with `recurse` false those of the module itself alone.
local function tensors_of(module, buffers, recurse)
  local list = {}
  for _, item in ipairs(walk.tensors(module)) do
    if (item.buffer ~= nil) == buffers and (recurse ~= false or item.entry.module == module) then
      list[#list + 1] = item
    end
  end
  return list
end

local function iterate(list, key, value)
  local i = 0
  return function()
    i = i + 1
    local item = list[i]
    if item then return item[key], item[value] end
  end
end

-- An iterator over names and tensors.
local function named_tensors(module, buffers, options, who)
  local o = config.check(options, NAMED, who)
  local list = tensors_of(module, buffers, o.recurse)
  if o.prefix == "" then return iterate(list, "name", "value") end
  for i, item in ipairs(list) do
    list[i] = { name = o.prefix .. "." .. item.name, value = item.value }
  end
  return iterate(list, "name", "value")
end

local function values(list, key)
  local out, names = {}, {}
  for i, item in ipairs(list) do out[i], names[i] = item[key], item.name end
  out.names = names
  return out
end

--- Iterates over the parameters, each once, in order: `for name, tensor in net:named_parameters()
--- do`. Options: prefix (""), prepended to each name with a dot; recurse (true): include those of
--- submodules.
function Module:named_parameters(options)
  return named_tensors(self, false, options, "named_parameters")
end

--- Iterates over the buffers: `for name, tensor in net:named_buffers() do`. Options: as those of
--- named_parameters.
function Module:named_buffers(options)
  return named_tensors(self, true, options, "named_buffers")
end

--- Returns the list of parameters; its field `names` has their names. Options: recurse (true):
--- include those of submodules.
function Module:parameters(options)
  local recurse = options and config.check(options, LISTED, "parameters").recurse
  return values(tensors_of(self, false, recurse), "value")
end

--- Returns the list of buffers, likewise.
function Module:buffers(options)
  local recurse = options and config.check(options, LISTED, "buffers").recurse
  return values(tensors_of(self, true, recurse), "value")
end

--- Iterates over the module itself (named "") and all its submodules, each once.
function Module:named_modules() return iterate(walk.modules(self), "name", "module") end

--- Returns the list of the module itself and all its submodules.
function Module:modules() return values(walk.modules(self), "module") end

local function children_of(module)
  local list, seen = {}, {}
  for _, child in ipairs(walk.children(module)) do
    if not seen[child.value] then
      list[#list + 1] = { name = child.name, value = child.value }
      seen[child.value] = true
    end
  end
  return list
end

--- Iterates over the direct submodules: `for name, module in net:named_children() do`.
function Module:named_children() return iterate(children_of(self), "name", "value") end

--- Returns the list of direct submodules.
function Module:children() return values(children_of(self), "value") end

--- Returns the number of elements of the parameters. Options: trainable (false) counts only those
--- with requires_grad.
function Module:num_parameters(options)
  local o = config.check(options, { trainable = { type = "boolean", default = false } },
    "num_parameters")
  local count = 0
  for _, item in ipairs(tensors_of(self, false)) do
    if item.value.requires_grad or not o.trainable then count = count + item.value:numel() end
  end
  return count
end

-- What the list has under this name, "" and "a.b" alike.
local function named(list, name, key, what, module)
  local names = {}
  for i, item in ipairs(list) do
    if item.name == name then return item[key] end
    names[i] = item.name
  end
  errors.blame("%s: %s has no %s%s", what, walk.class_name(module), errors.show(name),
    errors.did_you_mean(name, names))
end

--- Returns the submodule at this path: `net:get_submodule("net.0")`; "" is the module itself.
function Module:get_submodule(name)
  return named(walk.modules(self), name, "module", "get_submodule", self)
end

--- Returns the parameter of this name, as in named_parameters.
function Module:get_parameter(name)
  return named(tensors_of(self, false), name, "value", "get_parameter", self)
end

--- Returns the buffer of this name, as in named_buffers.
function Module:get_buffer(name)
  return named(tensors_of(self, true), name, "value", "get_buffer", self)
end

-- What it does to all of it. Each returns the module.

local function apply(module, fn, seen)
  seen[module] = true
  for _, child in ipairs(walk.children(module)) do
    if not seen[child.value] then apply(child.value, fn, seen) end
  end
  fn(module)
end

--- Calls fn(module) for every submodule, and for the module itself last.
function Module:apply(fn)
  apply(self, fn, {})
  return self
end

--- Puts the module and all submodules in training mode (or, with false, in evaluation mode).
function Module:train(mode)
  mode = mode == nil or mode
  for _, entry in ipairs(walk.modules(self)) do
    if entry.module.training ~= mode then rawset(entry.module, "training", mode) end
  end
  return self
end

--- Puts the module and all submodules in evaluation mode: dropout does nothing, batch norm uses its
--- running averages.
function Module:eval() return self:train(false) end

--- Sets whether gradients are computed for the parameters (default true).
function Module:requires_grad_(requires_grad)
  local flag = requires_grad == nil or requires_grad
  for _, item in ipairs(tensors_of(self, false)) do item.value.requires_grad = flag end
  return self
end

--- Sets all gradients to nil, or to zero with the option set_to_none = false.
function Module:zero_grad(options)
  local o = config.check(options, { set_to_none = { type = "boolean", default = true } },
    "zero_grad")
  for _, item in ipairs(tensors_of(self, false)) do
    zero_grad.clear(item.value, not o.set_to_none)
  end
  return self
end

--- Prints a histogram of each parameter, and of its gradient if it has one, as
--- [lt.show_histograms](tensor.md#displaying-values) does; options: bins (24), match.
function Module:show_histograms(options)
  load_export "show_histograms"(self, options)
end

--- Disables the gradients of the parameters, and puts the module in evaluation mode.
function Module:freeze() return self:requires_grad_(false):eval() end

--- Returns whether it has parameters and none of them requires grad.
function Module:is_frozen()
  local any = false
  for _, parameter in self:named_parameters() do
    if parameter.requires_grad then return false end
    any = true
  end
  return any
end

--- Undoes freeze: enables gradients, and puts the module in training mode.
function Module:unfreeze() return self:requires_grad_(true):train() end

local TO <const> = { device = { type = "string|integer" }, dtype = { type = "string" } }

local function check_target(target)
  if math.type(target) == "integer" then return ("cuda:%d"):format(target) end
  if type(target) ~= "string" or dtypes[target] and not is_float(target) then
    errors.blame("to: a module goes to a device or to a floating dtype: got %s",
      errors.show(target))
  end
  return target
end

local function move(module, target)
  require "ltrain.nn.module_memory".replace(module, function(tensor)
    local stays = is_float(target) and not is_float(tensor.dtype)
    return stays and tensor or c.runtime.check_dtype(tensor:to(target))
  end)
end

--- Moves parameters and buffers to another device ("cpu", the number of a GPU), or converts them to
--- another floating-point dtype ("f64"; integers keep theirs), or both: `net:to("cuda", "bf16")`.
--- The parameters become new tensors: create optimizers after this. Options: device, dtype.
---@param options string|integer|table
function Module:to(options)
  local device, dtype = options and options.device, options and options.dtype
  if device == nil and dtype == nil then check_target(device) end
  config.check(options, TO, "to")
  device, dtype = device and check_target(device), dtype and check_target(dtype)
  if device then move(self, device) end
  if dtype then move(self, dtype) end
  return self
end

--- Converts it to f32, like :to("f32").
function Module:float() return self:to "f32" end

--- Converts it to f64.
function Module:double() return self:to "f64" end

--- Converts it to f16.
function Module:half() return self:to "f16" end

--- Converts it to bf16.
function Module:bfloat16() return self:to "bf16" end

--- Converts it to a floating-point dtype, like :to(dtype).
function Module:type(dtype) return self:to(dtype) end

--- Moves it to a GPU, like :to("cuda:1"), given by number (from 0) or name; by default the current
--- one.
function Module:cuda(device)
  return self:to(device or "cuda")
end

--- Moves it to the CPU, like :to("cpu").
function Module:cpu() return self:to "cpu" end

return Module
