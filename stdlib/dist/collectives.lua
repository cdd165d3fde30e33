--- stdlib/dist/collectives.lua: what ranks do together, on tensors and on values of Lua.
--
-- Tensors go as they are, compared by shape and dtype. Values of Lua are packed as data: nil,
-- booleans, numbers, strings, tensors, and tables of them. Ranks count from 0.
local Group = require "ltrain.dist.Group"
local Handle = require "ltrain.dist.Handle"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local exact = require "ltrain.core.exact"
local options_of = require "ltrain.dist.options"
local reductions = require "ltrain.core.reductions"

local d = c.dist

local collectives = {}

--- How many arguments come before the options.
collectives.places = {
  all_reduce = 1, all_reduce_ = 1, broadcast = 1, all_gather = 1, reduce_scatter = 1, gather = 1,
  scatter = 1, send = 2, recv = 1, barrier = 0,
}

-- Checked defaults, for calls without options.
local DEFAULTS <const> = {}
for name, spec in next, options_of do DEFAULTS[name] = config.check(nil, spec, name) end

local within -- the group of calls that name none; nil: all ranks

--- From here on calls without a group are those of `group` (nil: all ranks). Returns the group that
--- was before.
function collectives.use(group)
  local outer = within
  within = group
  return outer
end

local function checked(name, options)
  if options == nil then return DEFAULTS[name], within and within._handle end
  options = config.check(options, options_of[name], name)
  local group = options.group or within
  return options, group and group._handle
end

local function check_rank(who, name, rank, group)
  local size = d.size(group)
  if rank < size then return end
  errors.blame("%s: %s must be below %d, the number of ranks: got %d", who, name, size, rank)
end

-- Its result, or a handle. `done` makes the result of what came.
local function result_of(work, options, done)
  if options.async then return Handle(work, done) end
  local result = d.wait(work)
  if done then result = done(result) end
  return result
end

-- Numbers of Lua. They are reduced as Lua computes, in the order in which tensors are.

local REDUCE <const> = {
  sum = function(a, b) return a + b end,
  mean = function(a, b) return a + b end,
  min = math.min,
  max = math.max,
  prod = function(a, b) return a * b end,
}

-- Each part is { op, number }.
local function reduce_numbers(parts)
  local op = parts[1][1]
  for rank, part in ipairs(parts) do
    if part[1] ~= op then
      errors.blame("all_reduce: ranks combine differently: rank 0: %s; rank %d: %s", op, rank - 1,
        part[1])
    end
  end
  local function number_of(rank) return parts[rank][2] end
  local total = reductions.tree_reduce(1, #parts + 1, number_of, REDUCE[op])
  return op == "mean" and total / #parts or total
end

--- The sum (or mean, min, max, prod) of x over all ranks: a new tensor, or a number for a number.
--- Gradients pass through sum and mean.
function collectives.all_reduce(x, options)
  local o, group = checked("all_reduce", options)
  if math.type(x) then
    return result_of(d.values(group, "all_reduce", { o.op, x }), o, reduce_numbers)
  elseif not c.is_tensor(x) then
    errors.blame("all_reduce: needs a tensor or a number: got %s", errors.show(x))
  end
  return result_of(d.collective(group, "all_reduce", x, o.op, nil, false, o.sync_grads), o)
end

local function check_tensor(who, x)
  if not c.is_tensor(x) then errors.blame("%s: needs a tensor: got %s", who, errors.show(x)) end
end

--- The same into x's own memory; returns x.
function collectives.all_reduce_(x, options)
  local o, group = checked("all_reduce_", options)
  check_tensor("all_reduce_", x)
  return result_of(d.collective(group, "all_reduce_", x, o.op, nil, false, o.sync_grads), o)
end

--- What rank `from` gave, on every rank. A tensor must have one shape on all ranks; of a value of
--- Lua only that rank's counts. No gradient.
function collectives.broadcast(x, options)
  local o, group = checked("broadcast", options)
  check_rank("broadcast", "from", o.from, group)
  if c.is_tensor(x) then
    return result_of(d.collective(group, "broadcast", x, nil, o.from), o)
  end
  return result_of(d.values(group, "broadcast", x, o.from), o)
end

--- What all ranks gave: of tensors [...] one of [ranks, ...], or joined along dim 1 with
--- `cat = true`; of values a list in order of rank. Gradients pass through.
function collectives.all_gather(x, options)
  local o, group = checked("all_gather", options)
  if c.is_tensor(x) then
    local work = d.collective(group, "all_gather", x, nil, nil, o.cat, o.sync_grads)
    return result_of(work, o)
  elseif o.cat then
    errors.blame("all_gather: cat = true needs tensors: got %s", errors.show(x))
  end
  return result_of(d.values(group, "all_gather", x), o)
end

--- This rank's part [n, ...] of the sum of all ranks' tensors [ranks * n, ...].
function collectives.reduce_scatter(x, options)
  local o, group = checked("reduce_scatter", options)
  check_tensor("reduce_scatter", x)
  local work = d.collective(group, "reduce_scatter", x, o.op, nil, false, o.sync_grads)
  return result_of(work, o)
end

--- On rank `to` what all_gather gives; nil elsewhere. No gradient.
function collectives.gather(x, options)
  local o, group = checked("gather", options)
  check_rank("gather", "to", o.to, group)
  if c.is_tensor(x) then return result_of(d.collective(group, "gather", x, nil, o.to), o) end
  return result_of(d.values(group, "gather", x, o.to), o)
end

-- A list of one value a rank.
local function parts_of(x, ranks)
  if not c.is_tensor(x) then
    if type(x) ~= "table" or getmetatable(x) ~= nil or #x ~= ranks then
      local what = type(x) == "table" and ("a list of %d"):format(#x) or errors.show(x)
      errors.blame("scatter: needs a tensor, or a list of one value for each of %d ranks: got %s",
        ranks, what)
    end
    return x
  end
  local size = x.shape[1]
  if not size or size % ranks ~= 0 then
    errors.blame("scatter: dim 1 must be a multiple of the %d ranks: got %s", ranks,
      errors.show(x))
  end
  local parts, each = {}, size // ranks
  local _ <close> = c.no_grad()
  for r = 1, ranks do parts[r] = x:narrow(1, (r - 1) * each + 1, each) end
  return parts
end

--- This rank's part of what rank `from` gave: a tensor is cut along dim 1, of a list rank r gets
--- element r + 1. What other ranks give is not looked at. No gradient.
function collectives.scatter(x, options)
  local o, group = checked("scatter", options)
  check_rank("scatter", "from", o.from, group)
  local parts = d.rank(group) == o.from and parts_of(x, d.size(group)) or nil
  return result_of(d.values(group, "scatter", parts, o.from), o)
end

local function check_peer(who, name, rank, group)
  check_rank(who, name, config.argument(rank, "integer", who, name, { min = 0 }), group)
  if rank == d.rank(group) then
    errors.blame("%s: %s must be another rank: this is rank %d", who, name, rank)
  end
end

--- Hands x, a tensor or a value, to rank `to`, which must call recv. No gradient.
function collectives.send(x, to, options)
  local o, group = checked("send", options)
  check_peer("send", "to", to, group)
  return result_of(d.values(group, "send", x, to), o)
end

local function copy_into(x, what)
  local wanted, came = errors.show(x), errors.show(what)
  if c.is_tensor(what) and (wanted ~= came or x.dtype ~= what.dtype) then
    wanted, came = wanted .. " " .. x.dtype, came .. " " .. what.dtype
  end
  if wanted ~= came then errors.blame("recv: expected %s, got %s", wanted, came) end
  return x:copy_(what)
end

--- What rank `from` sent: recv(from), or recv(x, {from = rank}) into the memory of a tensor of the
--- same shape and dtype, which it returns.
function collectives.recv(from, options)
  local o, group = checked("recv", options)
  if c.is_tensor(from) then
    local x = from
    check_peer("recv", "from", o.from, group)
    return result_of(d.values(group, "recv", nil, o.from), o, function(what)
      return copy_into(x, what)
    end)
  end
  check_peer("recv", "from", from, group)
  return result_of(d.values(group, "recv", nil, from), o)
end

--- Returns when all ranks have called it.
function collectives.barrier(options)
  local o, group = checked("barrier", options)
  return result_of(d.barrier(group), o)
end

--- A group of the ranks that give the same color, an integer from 0; nil for color -1. All ranks
--- call it. `key` orders the new group, then the rank does.
function collectives.split(color, options)
  local o, group = checked("split", options)
  color = config.argument(color, "integer", "split", "color", { min = -1, max = 2 ^ 31 - 1 })
  local handle = d.split(group, color, o.key)
  return handle and Group(handle)
end

for name in next, collectives.places do collectives[name] = exact.fn(collectives[name], name) end
Group._give(collectives, collectives.places)

return collectives
