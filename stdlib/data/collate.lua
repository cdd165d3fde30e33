-- stdlib/data/collate.lua: collates a list of samples to a batch, field by field.
--
-- Tensors are stacked, numbers and booleans become a tensor, strings a list; tables (and samples of
-- several values) are collated field by field.

local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local tree = require "ltrain.core.tree"

-- Tables in tables: more of them are one that contains itself.
local DEEPEST <const> = 100

local collate_field

local function describe(value)
  if c.is_tensor(value) then
    return ("%s [%s]"):format(value.dtype, table.concat(value.shape, ", "))
  end
  return errors.show(value)
end

local function differ(values, i, positions, path, what)
  errors.blame("collate: samples differ in %s%s: sample %d has %s, sample %d has %s", what,
    path ~= "" and (" at '%s'"):format(path) or "", positions[1], describe(values[1]),
    positions[i], describe(values[i]))
end

local function same_shape(a, b)
  if #a ~= #b then return false end
  for i = 1, #a do
    if a[i] ~= b[i] then return false end
  end
  return true
end

local function stack(values, positions, path)
  local shape, dtype = values[1].shape, values[1].dtype
  for i = 2, #values do
    if not c.is_tensor(values[i]) then differ(values, i, positions, path, "kind") end
    if not same_shape(shape, values[i].shape) then differ(values, i, positions, path, "shape") end
    if values[i].dtype ~= dtype then differ(values, i, positions, path, "dtype") end
  end
  return c.stack(values)
end

local function same_type(values, positions, path)
  for i = 2, #values do
    if type(values[i]) ~= type(values[1]) then differ(values, i, positions, path, "kind") end
  end
end

local function has(sample, key)
  return type(sample) == "table" and sample[key] ~= nil
end

-- Raises when sample `a` has a field that sample `b` lacks.
local function covers(values, a, b, positions, path)
  for _, key in ipairs(tree.keys(values[a])) do
    if not has(values[b], key) then
      errors.blame("collate: samples differ in fields%s: sample %d has '%s', sample %d has not",
        path ~= "" and (" at '%s'"):format(path) or "", positions[a], key, positions[b])
    end
  end
end

local function same_fields(values, positions, path)
  for i = 2, #values do
    if type(values[i]) ~= "table" then differ(values, i, positions, path, "kind") end
    covers(values, 1, i, positions, path)
    covers(values, i, 1, positions, path)
  end
end

local function collate_table(values, positions, path, depth)
  if depth > DEEPEST then
    errors.blame("collate: tables more than %d deep at '%s...' of sample %s: does one contain "
      .. "itself?", DEEPEST, path:sub(1, 40), positions[1])
  end
  local keys = tree.keys(values[1])
  local batch = {}
  same_fields(values, positions, path)
  for _, key in ipairs(keys) do
    local column = {}
    for i, sample in ipairs(values) do column[i] = sample[key] end
    batch[key] = collate_field(column, positions,
      path == "" and tostring(key) or ("%s.%s"):format(path, key), depth + 1)
  end
  return batch
end

function collate_field(values, positions, path, depth)
  local first = values[1]
  if c.is_tensor(first) then return stack(values, positions, path) end
  local kind = type(first)
  if kind == "table" and getmetatable(first) == nil then
    return collate_table(values, positions, path, depth)
  end
  same_type(values, positions, path)
  if kind == "number" or kind == "boolean" then return c.tensor(values) end
  if kind == "string" then return values end
  errors.blame("collate: no batch can be made of %s%s: give the loader a collate function",
    errors.show(first), path ~= "" and (" at '%s'"):format(path) or "")
end

--- `positions`: the positions of the samples in the data set, for error messages.
return function(samples, positions)
  if type(samples) ~= "table" or rawlen(samples) == 0 then
    errors.blame("collate: needs a list of samples, got %s", errors.show(samples))
  end
  if positions ~= nil and (type(positions) ~= "table" or rawlen(positions) < rawlen(samples)) then
    errors.blame("collate: positions: needs one for each of %d samples, got %s",
      rawlen(samples), errors.show(positions))
  end
  if not positions then
    positions = {}
    for i = 1, rawlen(samples) do positions[i] = i end
  end
  return collate_field(samples, positions, "", 1)
end
