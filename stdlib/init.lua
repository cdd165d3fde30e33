-- stdlib/init.lua: `require "ltrain"`: tensors and their functions, and the libraries below it
-- (lt.nn, lt.optim, ...).
--
-- What C gives is there at once; what is written in Lua is loaded when first asked for, so that a
-- script pays only for what it uses.

local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local exports = require "ltrain.core.exports"
local load_export = require "ltrain.core.load_export"

-- What the library alone calls.
local INTERNAL <const> = { io = true, net = true, runtime = true }

local lt = {}
for name, value in next, c do
  local is_internal = INTERNAL[name] or c.runtime.internal[name]
  if not exports[name] and not is_internal then lt[name] = value end
end

--- The seed of all random numbers that follow; Lightning's name for lt.seed.
lt.seed_everything = c.seed

-- LT_SEED of the environment, until lt.seed or --seed says another; else what `ltrain launch` has
-- drawn for all ranks of a job.
local function seed_of_environment()
  local text, drawn = c.runtime.getenv "LT_SEED", c.runtime.getenv "LTRAIN_SEED"
  if not text then
    drawn = math.tointeger(tonumber(drawn))
    if drawn then c.runtime.drawn_seed(drawn) end
    return
  end
  local seed = math.tointeger(tonumber(text))
  if not seed or seed < 0 then
    errors.blame("LT_SEED = %s: must be an integer of at least 0", errors.show(text))
  end
  c.seed(seed)
end
seed_of_environment()

local methods <const> = c.runtime.methods

-- Files of stdlib/ops whose functions take no tensor first.
local FUNCTIONS <const> = { ["ltrain.ops.joining"] = true, ["ltrain.ops.triangles"] = true }

local METHODS <const> = { show = true, retain_grad = true }

local function is_method(name)
  local file <const> = exports[name]:match "^(ltrain%.ops%.[%w_]+)"
  return METHODS[name] or file ~= nil and not FUNCTIONS[file]
end

-- The namespace that has a class of the name; nil.
local function namespace_of(name)
  for _, full in ipairs(require "ltrain.core.library_modules".list()) do
    local namespace, class = full:match "^ltrain%.(%l+)%.(%u[%w_]*)$"
    if class == name and exports[namespace] then return namespace end
  end
end

local function find(self, name)
  if exports[name] then
    local value = load_export(name)
    rawset(self, name, value)
    if is_method(name) then methods[name] = value end
    return value
  end
  local names = {}
  for known in next, exports do names[#names + 1] = known end
  for known in next, self do names[#names + 1] = known end
  table.sort(names)
  local namespace = type(name) == "string" and name:find "^%u" and namespace_of(name)
  errors.blame("ltrain: there is no lt.%s%s", tostring(name),
    namespace and ("; write lt.%s.%s"):format(namespace, name)
      or errors.in_place_of(name, "lt", names))
end

for name in next, exports do
  if is_method(name) then methods[name] = function(...) return lt[name](...) end end
end

return setmetatable(lt, { __index = find })
