-- stdlib/core/by_place.lua: arguments of a constructor as its init takes them.
--
-- Constructors take their arguments by place, in PyTorch's order, or by the same names in a table
-- that comes last, or both: nn.Conv2d(3, 8, 3, 1, 1), nn.Conv2d(3, 8, 3, {padding = 1}),
-- nn.Conv2d{in_channels = 3, out_channels = 8, kernel_size = 3, padding = 1}. An init has
-- parameters for those that are required, and one for a table of all others. A class says the names
-- in its field `__arguments`, a bar before those of the table: "in_features out_features | bias".

local errors = require "ltrain.core.errors"
local tree = require "ltrain.core.tree"

-- What `__arguments` says: names in order, how many are init's own, whether it takes a table.
local function read(text)
  local own, rest = text:match "^([^|]*)|?(.*)$"
  local form = { takes_table = text:find("|", 1, true) ~= nil }
  for name in own:gmatch "%S+" do form[#form + 1] = name end
  form.own = #form
  for name in rest:gmatch "%S+" do form[#form + 1] = name end
  for k, name in ipairs(form) do form[name] = k end
  return form
end

local forms = setmetatable({}, { __index = function(self, text)
  self[text] = read(text)
  return self[text]
end })

-- Options that may be a tensor. A tensor in the place of another is an input, given to a class.
local TENSORS <const> = { weight = true, pos_weight = true, logits = true, scale_tril = true,
  covariance_matrix = true, precision_matrix = true, thresholds = true }

-- Whether a value is a table of names and values: neither a list nor an object.
local function has_names(value)
  if type(value) ~= "table" or getmetatable(value) ~= nil then return false end
  return type(next(value)) == "string"
end

-- Whether it is such a table in a place of init's own parameters, by the names that it has, or that
-- another library has for them.
local function knows(form, named)
  for name in next, named do
    if form[name] then return true end
  end
  local elsewhere = require "ltrain.core.elsewhere" -- a table in such a place is rarely right
  for name in next, named do
    if elsewhere.option(name, form) then return true end
  end
  return false
end

-- Raises where a place of init's own stays empty beside a name that the constructor does not have.
local function check_missing(form, values, named, where)
  for k = 1, form.own do
    for name in tree.pairs(values[k] == nil and named or {}) do
      if not form[name] then
        errors.blame("%s: unknown option %s%s", where, errors.show(name),
          errors.did_you_mean(name, { table.unpack(form) }))
      end
    end
  end
end

-- Moves what a table names to the places of init's own parameters; returns what is left.
local function take_named(form, values, named, where)
  local options = {}
  for name, value in next, named do
    local place = form[name]
    if place and values[place] ~= nil then
      errors.blame("%s: %s is given by place and by name", where, name)
    elseif place and place <= form.own then
      values[place] = value
    elseif not form.takes_table then
      errors.blame("%s: unknown option %s%s", where, errors.show(name),
        errors.did_you_mean(name, { table.unpack(form) }))
    else
      options[name] = value
    end
  end
  check_missing(form, values, named, where)
  return options
end

--- The arguments that follow `text` (of `__arguments`) and the class's name, as init takes them.
return function(text, where, ...)
  local form, n, named = forms[text], select("#", ...), nil
  while n > 0 and (select(n, ...)) == nil do n = n - 1 end
  if n > 0 then named = (select(n, ...)) end
  if not has_names(named) or n <= form.own and not knows(form, named) then named = nil end
  if named then n = n - 1 end
  local is_plain = n == form.own and (not named or form.takes_table)
  if is_plain or not named and (n < form.own or not form.takes_table) then return ... end
  local values = { ... }
  if named then values[n + 1] = nil end
  if type(values[form.own + 1]) == "table" and next(values[form.own + 1]) == nil then
    return ... -- no options
  end
  local options = named and take_named(form, values, named, where) or {}
  for k = form.own + 1, math.min(n, #form) do
    if type(values[k]) == "userdata" and not TENSORS[form[k]] then return ... end -- an input
    options[form[k]] = values[k]
  end
  local list = { table.unpack(values, 1, form.own) }
  local count = form.own + (form.takes_table and 1 or 0)
  if form.takes_table then list[count] = options end
  for k = #form + 1, n do -- too many: init refuses them
    count = count + 1
    list[count] = values[k]
  end
  return table.unpack(list, 1, count)
end
