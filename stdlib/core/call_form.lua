-- stdlib/core/call_form.lua: reads the arguments of a call given by position, by name in a last
-- table, or both.
--
-- A form says which: names in PyTorch's order, a bar before those of options, "in_features
-- out_features | bias". The function has a parameter for each name before the bar, its own, and one
-- for a table of all options: nn.Linear(2, 3, false) is nn.Linear(2, 3, {bias = false}), and so is
-- nn.Linear{in_features = 2, out_features = 3, bias = false}. A class has the form of its init in
-- its field `__arguments`, and in `__options` the options of its methods, { load_state_dict =
-- "strict" }, whose own parameters go by place alone. Rows of config.signature are a form of
-- options alone. A name in parentheses has a place for the sake of those behind it, and is refused
-- as an unknown option.

local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local tree = require "ltrain.core.tree"

local call_form = {}

-- One dim may be called `dims`, and several `dim`.
local function with_dims(form)
  local places = form.places
  places.dim, places.dims = places.dim or places.dims, places.dims or places.dim
  return form
end

-- A form as a table: names by place, behind `unnamed` own parameters; `places` by name, the list
-- `names`; `own`, how many are own, `n`, how many there are; whether there is a table of options.
local function read(source, unnamed)
  local form = { own = unnamed or 0, n = unnamed or 0, places = {}, names = {},
    has_options = true }
  local function add(name)
    form.n = form.n + 1
    form[form.n], form.places[name], form.names[#form.names + 1] = name, form.n, name
  end
  if type(source) == "table" then
    for _, row in ipairs(source) do add(row[1]) end
    return with_dims(form)
  end
  local own, bar, options = source:match "^([^|]*)(|?)(.*)$"
  for name in own:gmatch "%S+" do add(name) end
  form.own, form.has_options = form.n, bar ~= ""
  for name in options:gmatch "[%w_]+" do add(name) end
  return with_dims(form)
end

local forms = setmetatable({}, { __index = function(self, source)
  self[source] = read(source)
  return self[source]
end })

-- Options that may be a tensor. A tensor in the place of another is an input, given to a class.
local TENSORS <const> = { weight = true, pos_weight = true, logits = true, scale_tril = true,
  covariance_matrix = true, precision_matrix = true, thresholds = true }

-- Whether a table has the name of an argument, or one that another library has for it.
local function knows(form, named)
  for name in next, named do
    if form.places[name] then return true end
  end
  -- A table in such a place is rarely right.
  local foreign_names = require "ltrain.core.foreign_names"
  for name in next, named do
    if foreign_names.option(name, form.names) then return true end
  end
  return false
end

-- Whether the n-th argument, the last, is a table of names and values: neither a list nor an
-- object, and in the place of an own parameter with a name that the form knows.
local function is_named(form, value, n)
  if type(value) ~= "table" or getmetatable(value) ~= nil then return false end
  local key = next(value)
  if n > form.own then return key == nil or type(key) == "string" end
  return type(key) == "string" and knows(form, value)
end

-- The number of arguments without nil at their end.
local function count(...)
  local n = select("#", ...)
  while n > 0 and (select(n, ...)) == nil do n = n - 1 end
  return n
end

local function refuse_unknown(form, name, where)
  errors.blame("%s: unknown option %s%s", where, errors.show(name),
    errors.did_you_mean(name, form.names))
end

-- Moves what a table names to own places, and to the options.
local function take_named(form, values, named, options, where)
  for name, value in next, named do
    local place = form.places[name]
    if place and values[place] ~= nil then
      errors.blame("%s: %s is given by place and by name", where, name)
    elseif place and place <= form.own then
      values[place] = value
    elseif not form.has_options then
      refuse_unknown(form, name, where)
    else
      local known = place and form[place] or name
      if options[known] ~= nil then errors.blame("%s: %s is given twice", where, known) end
      options[known] = value
    end
  end
  for k = 1, form.own do -- beside an empty own place a name is rather meant for that
    for name in tree.pairs(values[k] == nil and named or {}) do
      if not form.places[name] then refuse_unknown(form, name, where) end
    end
  end
end

-- The options among n values, those of a table that comes last too; the number of values, without
-- that table.
local function options_of(form, values, n, where)
  local options, named = {}, is_named(form, values[n], n) and values[n] or nil
  if named then
    values[n], n = nil, n - 1
    take_named(form, values, named, options, where)
  end
  for k = form.own + 1, math.min(n, form.n) do options[form[k]] = values[k] end
  return options, n
end

-- The same, where more values than the form has are an error.
local function all_options(form, values, n, where)
  local options, used = options_of(form, values, n, where)
  for k = form.n + 1, used do
    if values[k] ~= nil then
      errors.blame("%s: one argument too many: %s", where, errors.show(values[k]))
    end
  end
  return options
end

--- The table of options of a call whose arguments all are: rows of config.signature.
function call_form.options(rows, where, ...)
  return all_options(forms[rows], { ... }, count(...), where)
end

-- The arguments of a constructor of the class `where` as its init takes them. What is too many init
-- refuses.
local function of_init(form, where, n, ...)
  local values = { ... }
  local options, used = options_of(form, values, n, where)
  for k = form.own + 1, math.min(used, form.n) do
    if type(values[k]) == "userdata" and not TENSORS[form[k]] then return ... end -- an input
  end
  local last = form.own
  if form.has_options then
    last = last + 1
    table.move(values, form.n + 1, used, last + 1)
    values[last] = options
  end
  return table.unpack(values, 1, last + math.max(used - form.n, 0))
end

-- All layers have the option `device`: where their parameters and buffers are made.
local function make_on(device, make, class, form, n, ...)
  local values, options = { ... }, {}
  for name, value in next, values[n] do
    if name ~= "device" then options[name] = value end
  end
  values[n] = options
  local _ <close> = c.device(device)
  return (make(class, of_init(form, class.__name, n, table.unpack(values, 1, n))))
end

--- make(class, ...) with the arguments of a constructor as init takes them; `text`: their form.
function call_form.construct(make, class, text, ...)
  local form, n = forms[text], count(...)
  local named = n > 0 and is_named(form, (select(n, ...)), n)
  if not named and (n <= form.own or not form.has_options) then return make(class, ...) end
  local device = named and class.__module and (select(n, ...)).device
  if device then return make_on(device, make, class, form, n, ...) end
  return make(class, of_init(form, class.__name, n, ...))
end

--- The arguments of a call of `where` by place: those of `text`, which has no options.
function call_form.own(text, where, ...)
  local form <const>, n <const> = forms[text], count(...)
  if n == 0 or not is_named(form, (select(n, ...)), n) then return ... end
  return of_init(form, where, n, ...)
end

--- The function `fn`, called `where`, of `own` arguments and a table of options, of which those
--- that `text` names may be given by place too.
function call_form.method(fn, where, own, text)
  local form
  return function(...)
    local n = select("#", ...)
    if n <= own then return fn(...) end
    local first = select(own + 1, ...)
    if n == own + 1 and (first == nil or type(first) == "table") then return fn(...) end
    form = form or read("| " .. text, own)
    local values = { ... }
    values[own + 1] = all_options(form, values, count(...), where)
    return fn(table.unpack(values, 1, own + 1))
  end
end

return call_form
