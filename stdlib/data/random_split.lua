-- stdlib/data/random_split.lua: splits a data set randomly into disjoint subsets.

local Subset = require "ltrain.data.Subset"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local dataset_protocol = require "ltrain.data.loading.dataset_protocol"
local errors = require "ltrain.core.errors"

local OPTIONS <const> = { seed = { type = "integer", doc = "by default that of lt.seed" } }
local EPOCH <const> = 0xffffffff -- no epoch has this number: apart from the orders of loaders

-- Shares of n that sum to it: what is left after rounding down goes to the first ones.
local function from_shares(shares, n)
  local lengths, left, sum = {}, n, 0
  for i, share in ipairs(shares) do
    if type(share) ~= "number" or not (share >= 0 and share <= 1) then
      errors.blame("random_split: a fraction must be in 0..1: got %s", errors.show(share))
    end
    lengths[i] = math.floor(n * share)
    left, sum = left - lengths[i], sum + share
  end
  if math.abs(sum - 1) > 1e-6 then
    errors.blame("random_split: fractions must sum to 1: got %s", sum)
  end
  for i = 1, left do
    local at = (i - 1) % #lengths + 1
    lengths[at] = lengths[at] + 1
  end
  return lengths
end

local function check_lengths(lengths, n)
  local sum = 0
  for _, length in ipairs(lengths) do
    if math.type(length) ~= "integer" or length < 0 then
      errors.blame("random_split: a length must be a count: got %s", errors.show(length))
    end
    sum = sum + length
  end
  if sum ~= n then
    errors.blame("random_split: lengths sum to %d: the data set has %d samples", sum, n)
  end
end

local function has_share(lengths)
  for _, length in ipairs(lengths) do
    if math.type(length) == "float" then return true end
  end
end

--- Returns a list of subsets with these lengths, or these fractions of the whole (if one is not an
--- integer).
return function(dataset, lengths, options)
  if not dataset_protocol.is_indexed(dataset) then
    errors.blame("random_split: dataset must have get(i) and a length: got %s",
      errors.show(dataset))
  elseif type(lengths) ~= "table" or #lengths == 0 then
    errors.blame("random_split: lengths must be a list: got %s", errors.show(lengths))
  end
  options = config.check(options, OPTIONS, "random_split")
  local n = dataset_protocol.count(dataset, "random_split")
  if has_share(lengths) then lengths = from_shares(lengths, n) end
  check_lengths(lengths, n)
  local order = c.runtime.data.order(n, options.seed or c.runtime.rng_get().seed, EPOCH)
  local parts, first = {}, 1
  for i, length in ipairs(lengths) do
    parts[i] = Subset(dataset, order:part(first, length))
    first = first + length
  end
  return parts
end
