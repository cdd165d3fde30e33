--- stdlib/dist/collectives.lua: collective operations on tensors and Lua values.
--
-- Shapes and dtypes of tensors are compared between ranks before they are sent. Lua values are
-- serialized: nil, booleans, numbers, strings, tensors, and tables of them. Ranks count from 0.
local Group = require "ltrain.dist.Group"
local Handle = require "ltrain.dist.Handle"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local options_of = require "ltrain.dist.options"
local reductions = require "ltrain.core.reductions"
local staging_warning = require "ltrain.dist.staging_warning"
local strict_arity = require "ltrain.core.strict_arity"

local d = c.dist

local collectives = {}

--- The number of arguments before the options.
collectives.places = {
  all_reduce = 1, all_reduce_ = 1, broadcast = 1, all_gather = 1, reduce_scatter = 1,
  all_to_all = 1, reduce = 1, gather = 1, scatter = 1, send = 2, recv = 1, barrier = 0,
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

local prepare -- what ranks do before a collective of them all; nil: nothing
local is_prepared -- groups that have all of these ranks, by group

--- From here on fn() is called before each collective of all ranks, also before those that are in
--- backward the gradients of others: a strategy whose ranks may owe each other others (nil: none
--- is). `ranks`: the group of these; then also fn(group) before collectives of groups that have
--- them all, as some of the world's do not wait for the others.
function collectives.before(fn, ranks)
  prepare = fn
  is_prepared = setmetatable({}, { __mode = "k", __index = function(known, group)
    local has, all = {}, ranks ~= nil
    for _, rank in ipairs(ranks and group:ranks() or {}) do has[rank] = true end
    for _, rank in ipairs(ranks and ranks:ranks() or {}) do all = all and has[rank] == true end
    known[group] = all
    return all
  end })
  d.before_backward(fn)
end

local function checked(name, options)
  options = options and config.check(options, options_of[name], name)
  local group = options and options.group or within
  if prepare and (not group or is_prepared[group]) then prepare(group) end
  return options or DEFAULTS[name], group and group._handle
end

--- The sums of a list of numbers over all ranks.
function collectives.add(numbers)
  if prepare then prepare() end
  return d.add(numbers)
end

local function check_rank(who, name, rank, group)
  local size = d.size(group)
  if rank < size then return end
  errors.blame("%s: %s must be below %d, the number of ranks: got %d", who, name, size, rank)
end

-- A collective on a tensor, begun. `o`: its options; `rows`: of all_to_all.
local function begin(group, name, x, o, rows)
  local work, device = d.collective(group, name, x, o.op, o.from or o.to, o.cat, o.sync_grads,
    o.out, rows)
  staging_warning(device)
  return work
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

--- Returns the sum (or mean, min, max, prod) of x over all ranks: a new tensor, or a number if x is
--- one. Sum and mean are differentiable.
function collectives.all_reduce(x, options)
  local o, group = checked("all_reduce", options)
  if math.type(x) then
    return result_of(d.values(group, "all_reduce", { o.op, x }), o, reduce_numbers)
  elseif not c.is_tensor(x) then
    errors.blame("all_reduce: needs a tensor or a number: got %s", errors.show(x))
  end
  return result_of(begin(group, "all_reduce", x, o), o)
end

-- What has no derivative must not take a tensor out of its graph without a word.
local function check_no_gradient(who, x, remedy)
  if not (c.is_tensor(x) and x.requires_grad and c.is_grad_enabled()) then return x end
  errors.blame("%s: has no gradient, and %s requires one: write x:detach(), or %s", who,
    errors.show(x), remedy)
end

local function check_out(who, options)
  if options.out == nil then return end
  errors.blame("%s: out needs a tensor to %s: a value of Lua is returned", who, who)
end

local function check_tensor(who, x)
  if not c.is_tensor(x) then errors.blame("%s: needs a tensor: got %s", who, errors.show(x)) end
end

--- The same in place; returns x.
function collectives.all_reduce_(x, options)
  local o, group = checked("all_reduce_", options)
  check_tensor("all_reduce_", x)
  return result_of(begin(group, "all_reduce_", x, o), o)
end

--- Returns rank `from`'s x on every rank. Tensors must have the same shape on all ranks; Lua values
--- of other ranks are ignored. Differentiable: rank `from`'s x gets the sum of all ranks'
--- gradients, that of the others is zero; x requires grad on all ranks or on none.
function collectives.broadcast(x, options)
  local o, group = checked("broadcast", options)
  check_rank("broadcast", "from", o.from, group)
  if c.is_tensor(x) then return result_of(begin(group, "broadcast", x, o), o) end
  check_out("broadcast", o)
  return result_of(d.values(group, "broadcast", x, o.from), o)
end

--- Gathers x from all ranks: tensors [...] become one of [ranks, ...], or are concatenated along
--- dim 1 with `cat = true`; Lua values become a list in the order of ranks. Differentiable.
function collectives.all_gather(x, options)
  local o, group = checked("all_gather", options)
  if c.is_tensor(x) then
    return result_of(begin(group, "all_gather", x, o), o)
  elseif o.cat then
    errors.blame("all_gather: cat = true needs tensors: got %s", errors.show(x))
  end
  check_out("all_gather", o)
  return result_of(d.values(group, "all_gather", x), o)
end

--- Returns this rank's part [n, ...] of the sum of all ranks' tensors [ranks * n, ...].
--- Differentiable.
function collectives.reduce_scatter(x, options)
  local o, group = checked("reduce_scatter", options)
  check_tensor("reduce_scatter", x)
  return result_of(begin(group, "reduce_scatter", x, o), o)
end

-- What all ranks send to this one, in rows, and the most that any sends to another: { rows, from,
-- most } as the runtime takes it. All ranks call it.
local function exchange_splits(x, splits, group, options)
  local ranks, total = d.size(group), 0
  for r = 1, ranks do
    local rows = config.argument(splits[r], "integer", "all_to_all", ("splits[%d]"):format(r),
      { min = 0 })
    total = total + rows
  end
  if #splits ~= ranks or total ~= x.shape[1] then
    errors.blame("all_to_all: splits must be %d numbers, one for each rank, whose sum is the size "
      .. "of dim 1: got %d of sum %d for %s", ranks, #splits, total, errors.show(x))
  end
  local all = collectives.all_gather(c.tensor(splits, { dtype = "i64" }),
    { group = options.group }):tolist()
  local from, most = {}, 0
  for r = 1, ranks do
    from[r] = all[r][d.rank(group) + 1]
    most = math.max(most, table.unpack(all[r]))
  end
  return { splits, from, most }
end

--- Sends part r of x, [ranks * n, ...] divided along dim 1, to rank r; returns what all ranks sent
--- to this one, in the order of ranks. `splits`: the sizes of the parts, where they are not equal.
--- Differentiable.
function collectives.all_to_all(x, options)
  local o, group = checked("all_to_all", options)
  check_tensor("all_to_all", x)
  local rows = o.splits and exchange_splits(x, o.splits, group, o)
  return result_of(begin(group, "all_to_all", x, o, rows), o)
end

--- Returns the result of all_reduce on rank `to`, nil on the others. Not differentiable: a tensor
--- that requires grad is refused.
function collectives.reduce(x, options)
  local o, group = checked("reduce", options)
  check_rank("reduce", "to", o.to, group)
  check_no_gradient("reduce", x, "use all_reduce")
  if c.is_tensor(x) then return result_of(begin(group, "reduce", x, o), o) end
  if not math.type(x) then
    errors.blame("reduce: needs a tensor or a number: got %s", errors.show(x))
  end
  check_out("reduce", o)
  return result_of(d.values(group, "all_reduce", { o.op, x }), o, function(parts)
    local total = reduce_numbers(parts)
    return d.rank(group) == o.to and total or nil
  end)
end

--- Returns the result of all_gather on rank `to`, nil on the others. Differentiable: x requires
--- grad on all ranks or on none; where it does, the others get a zero [] to add to their loss, in
--- whose backward the gradient arrives.
function collectives.gather(x, options)
  local o, group = checked("gather", options)
  check_rank("gather", "to", o.to, group)
  if c.is_tensor(x) then return result_of(begin(group, "gather", x, o), o) end
  check_out("gather", o)
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
    for _, part in ipairs(x) do
      check_no_gradient("scatter", part, "pass one tensor: lt.cat(list)")
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

--- Returns this rank's part of rank `from`'s x: a tensor is split along dim 1, of a list rank r
--- gets element r + 1. The x of other ranks is ignored. Differentiable: all parts require grad if
--- the tensor does; a list of tensors that do is refused. Without `out` other ranks learn from a
--- message what they get; with it, on all ranks, only bytes travel.
function collectives.scatter(x, options)
  local o, group = checked("scatter", options)
  check_rank("scatter", "from", o.from, group)
  if o.out then
    local is_root = d.rank(group) == o.from
    if is_root then check_tensor("scatter", x) end
    return result_of(begin(group, "scatter", is_root and x or o.out, o), o)
  end
  if d.rank(group) ~= o.from then return result_of(d.values(group, "scatter", nil, o.from), o) end
  local whole = o.sync_grads and c.is_tensor(x) and x or nil
  return result_of(d.values(group, "scatter", parts_of(x, d.size(group)), o.from, whole), o)
end

local function check_peer(who, name, rank, group)
  check_rank(who, name, config.argument(rank, "integer", who, name, { min = 0 }), group)
  if rank == d.rank(group) then
    errors.blame("%s: %s must be another rank: this is rank %d", who, name, rank)
  end
end

--- Sends x, a tensor or a Lua value, to rank `to`, which must call recv. Differentiable: of a
--- tensor that requires grad returns a zero [] to add to the loss, in whose backward the gradient
--- arrives; else nil. Tensors in tables are sent without history.
function collectives.send(x, to, options)
  local o, group = checked("send", options)
  check_peer("send", "to", to, group)
  return result_of(d.values(group, "send", x, to, c.is_tensor(x) and x or nil), o)
end

local function copy_into(x, what)
  if rawequal(x, what) then return x end
  local wanted, came = errors.show(x), errors.show(what)
  if c.is_tensor(what) and (wanted ~= came or x.dtype ~= what.dtype) then
    wanted, came = wanted .. " " .. x.dtype, came .. " " .. what.dtype
  end
  if wanted ~= came then errors.blame("recv: expected %s, got %s", wanted, came) end
  return x:copy_(what)
end

--- Receives what rank `from` sent: recv(from) returns it; recv(x, {from = rank}) receives into a
--- tensor of the same shape and dtype, and returns x. Tensors go straight from GPU to GPU, by NCCL,
--- where both are on one: x, or `device`. Differentiable: it requires grad if what was sent does;
--- where no backward reaches it, that of the sender is an error.
function collectives.recv(from, options)
  local o, group = checked("recv", options)
  if c.is_tensor(from) then
    local x = from
    check_peer("recv", "from", o.from, group)
    if o.device then errors.blame("recv: device: what comes is put into %s", errors.show(x)) end
    return result_of(d.values(group, "recv", x, o.from), o, function(what)
      return copy_into(x, what)
    end)
  end
  check_peer("recv", "from", from, group)
  return result_of(d.values(group, "recv", nil, from, o.device), o)
end

--- Returns when all ranks have called it.
function collectives.barrier(options)
  local o, group = checked("barrier", options)
  return result_of(d.barrier(group), o)
end

--- Returns a group of the ranks that pass the same color, an integer from 0; nil for color -1. All
--- ranks must call it. The new group is ordered by `key`, then by rank.
function collectives.split(color, options)
  local o, group = checked("split", options)
  color = config.argument(color, "integer", "split", "color", { min = -1, max = 2 ^ 31 - 1 })
  local handle = d.split(group, color, o.key)
  return handle and Group(handle)
end

for name in next, collectives.places do
  collectives[name] = strict_arity.fn(collectives[name], name)
end
Group._give(collectives, collectives.places)

return collectives
