--- stdlib/strategies/same_options.lua: refuses ranks that have different strategies, or options of
--- them: they would wait for each other in different collectives.
--
-- Forked ranks have those of one script; ranks of a launcher run the script each, and may branch on
-- their rank or differ in their files and arguments.
local class = require "ltrain.core.class"
local collectives = require "ltrain.dist.collectives"
local errors = require "ltrain.core.errors"
local tree = require "ltrain.core.tree"

-- Options that matter to a rank alone.
local OWN <const> = { timeout = true, fork_with_threads = true, start_method = true }

local KINDS <const> = { string = true, number = true, boolean = true }

-- A value as text where it can be compared: numbers, texts, booleans and lists of them.
local function text_of(value)
  if KINDS[type(value)] then return errors.show(value) end
  if type(value) ~= "table" or getmetatable(value) ~= nil or #value == 0 then return nil end
  local texts = {}
  for i, element in ipairs(value) do
    if not KINDS[type(element)] then return nil end
    texts[i] = errors.show(element)
  end
  return ("{%s}"):format(table.concat(texts, ", "))
end

local function described(strategy)
  local texts = {}
  for name, value in next, strategy.checked_options or {} do
    if not OWN[name] then texts[name] = text_of(value) end
  end
  return { name = class.of(strategy).__name, options = texts }
end

-- The first option in which two differ; nil: none.
local function difference(a, b)
  local names = {}
  for name in next, a do names[name] = true end
  for name in next, b do names[name] = true end
  for name in tree.pairs(names) do
    if a[name] ~= b[name] then return name end
  end
end

--- Compares those of all ranks, which all call it.
return function(strategy)
  local all = collectives.all_gather(described(strategy))
  local first = all[1]
  for r = 2, #all do
    local other = all[r]
    if other.name ~= first.name then
      errors.blame("Trainer: ranks have different strategies: rank 0 has %s, rank %d has %s",
        first.name, r - 1, other.name)
    end
    local name = difference(first.options, other.options)
    if name then
      errors.blame("strategies.%s: ranks have different options: rank 0 has %s = %s, rank %d has "
        .. "%s = %s", first.name, name, first.options[name] or "nil", r - 1, name,
        other.options[name] or "nil")
    end
  end
end
