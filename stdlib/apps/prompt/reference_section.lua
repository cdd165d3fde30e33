--- stdlib/apps/prompt/reference_section.lua: the reference section of a public class or function,
--- from its file's comments and options: printed by `:help`, written to pages by
--- tools/docs/room_pages.lua.
local doc_comments = require "ltrain.apps.prompt.doc_comments"

local reference_section = {}

local function makes(entry)
  return entry.name == "init" and (entry.sign == ":" or entry.field) or not entry.name
end

-- How a class is called, what its init says, and its positional arguments. Of several classes in a
-- file it is the one whose init says something.
local function constructor(file, name)
  local said = false
  for _, entry in ipairs(file.functions) do said = said or makes(entry) and entry.doc end
  for _, entry in ipairs(file.functions) do
    if makes(entry) and (entry.doc or not said) then
      local shown = entry.arguments and ("%s(%s)"):format(name:match "^[^,]*", entry.arguments)
      return shown, entry.doc ~= "" and entry.doc or nil, entry.params or {}
    end
  end
  return nil, nil, {}
end

-- "nn.ELU(alpha, options)" of a class whose init another file has.
local function call_of_form(name, form)
  local own, bar = form:match "^([^|]*)(|?)"
  local places = {}
  for place in own:gmatch "%S+" do places[#places + 1] = place end
  if bar ~= "" then places[#places + 1] = "options" end
  return ("%s(%s)"):format(name:match "^[^,]*", table.concat(places, ", "))
end

-- What the object is called with, and what its forward says.
local function forward_params(file)
  local params, said = {}, nil
  for _, entry in ipairs(file.functions) do
    if entry.name == "forward" and entry.params then
      table.move(entry.params, 1, #entry.params, 1, params)
      said = said or entry.doc ~= "" and entry.doc or nil
    end
  end
  return params, said
end

-- A field of a table, or of a class or those above it.
local function field_of(value, name)
  if rawget(value, "__name") then return value[name] end
  return rawget(value, name)
end

local function options_of(value, upvalue)
  if type(value) == "function" then return doc_comments.options_of(value, upvalue) end
  if type(value) ~= "table" then return nil end
  local options = field_of(value, "options")
  if type(options) == "table" then return options end
  local init = rawget(value, "init")
  return init and doc_comments.options_of(init, upvalue)
end

-- Those of a call of the object: those that its forward checks, or the field `call_options`.
local function call_options_of(value, upvalue)
  if type(value) ~= "table" then return nil end
  local forward <const> = field_of(value, "forward")
  return field_of(value, "call_options") or type(forward) == "function"
    and doc_comments.options_of(forward, upvalue) or nil
end

-- "Adam" for what extends it; nil for the bases that say nothing.
local function base_of(value)
  local super = type(value) == "table" and rawget(value, "super")
  return super and super.__name ~= "Module" and super.__name
end

-- The prefix of a method's name in the lists: of a class, of a namespace, else the name itself.
local OBJECTS <const> = { CheckpointIO = "checkpoint_io", ClusterEnvironment = "environment",
  DataLoader = "loader", DataModule = "data_module", DistributedSampler = "sampler",
  GradScaler = "scaler", utils = "nn.utils", ["utils.prune"] = "prune" }

--- What stands before the names of the methods of `name`.
function reference_section.object(name)
  local namespace, last = name:match("^(%w+)%.(.*)$")
  if OBJECTS[last] then return OBJECTS[last] end
  if namespace == "optim" then return last:find("LR") and "scheduler" or "optimizer" end
  local shown = { nn = "layer", callbacks = "callback", loggers = "logger", metrics = "metric",
    strategies = "strategy", clusters = "environment", distributions = "distribution",
    models = "model", transforms = "t" }
  return shown[namespace] or last:lower()
end

-- `net:log(name)` for `function Module:log(name)` and for `function methods.log(self, name)`;
-- `Module.adopt(value)` stays what it is.
local function call_text(entry, object, class)
  if entry.field then return ("%s.%s"):format(object, entry.name) end
  local rest = entry.arguments:match("^self,?%s*(.*)$") or entry.arguments:match("^_,%s*(.*)$")
  if entry.sign == ":" or rest then
    return ("%s:%s(%s)"):format(object, entry.name, rest or entry.arguments)
  end
  return ("%s.%s(%s)"):format(class, entry.name, entry.arguments)
end

-- Made by init, called as the object: these are documented elsewhere.
local ELSEWHERE <const> = { init = true, forward = true }

--- The commented functions of a file: a list of { call =, doc =, params = }. `object` stands before
--- the names of methods, `class` before those of functions.
function reference_section.methods(file, object, class)
  local list = {}
  for _, entry in ipairs(file.functions) do
    if entry.doc and entry.name and not ELSEWHERE[entry.name]
      and entry.name:sub(1, 1) ~= "_" then
      list[#list + 1] =
        { call = call_text(entry, object, class), doc = entry.doc, params = entry.params }
    end
  end
  return list
end

--- Of the `value` that is called `name` and stands in `file` (source.parse): about =, more =,
--- call = how it is called, said =, arguments = {...}, called_with = {...}, forward_said =, base =
--- the name of its parent, options = rows, call_options = rows of a call of the object, order = the
--- text that has their order, methods = {...}. parent(init) is the file of an inherited init.
function reference_section.of(file, name, value, upvalue, parent)
  local order = file.text
  local is_namespace = type(value) == "table" and not rawget(value, "__name")
  local call, said, params
  if is_namespace then params = {} else call, said, params = constructor(file, name) end
  local init = type(value) == "table" and field_of(value, "init")
  if not call and not said and init then -- that of the parent
    local inherited = parent(init)
    order = order .. inherited.text
    call, said, params = constructor(inherited, name), nil, {}
  end
  local form = type(value) == "table" and rawget(value, "__arguments")
  call = call or form and call_of_form(name, form) or nil
  local called_with <const>, forward_said = forward_params(file)
  return { about = file.about, more = file.more, call = call, said = said, arguments = params,
           called_with = called_with, forward_said = forward_said, base = base_of(value),
           options = options_of(value, upvalue), order = order,
           call_options = call_options_of(value, upvalue),
           methods = reference_section.methods(file, reference_section.object(name), name) }
end

return reference_section
