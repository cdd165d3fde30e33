--- stdlib/apps/plan/stand_in_ranks.lua: one process in the place of each of N ranks: collectives
--- return what they would if all ranks had this one's values, and are noted.
--
-- The functions of c.dist through which stdlib communicates are replaced: strategies and loops run
-- as on rank 0 of N, and allocate what they allocate there. No bytes move.
local c = require "ltrain.c"
local dtypes = require "ltrain.core.dtypes"

local stand_in_ranks = {}

local d <const> = c.dist
local CONTROL <const> = 64 -- bytes of a message of the loop's own: a vote, a list of numbers

local function bytes_of(tensor) return tensor:numel() * dtypes[tensor.dtype].size end

local function bytes_of_all(tensors)
  local bytes = 0
  for _, tensor in ipairs(tensors) do bytes = bytes + bytes_of(tensor) end
  return bytes
end

local function copies(value, n)
  local list = {}
  for i = 1, n do list[i] = value end
  return list
end

-- Results of collectives on tensors, by their names: fn(x, ranks, op, out).
local RESULTS <const> = {}

function RESULTS.all_reduce_(x, ranks, op)
  if op == "sum" and x.dtype ~= "bool" then x:mul_(ranks) end
  return x
end

function RESULTS.all_reduce(x, ranks, op)
  return op == "sum" and x * ranks or x * 1
end

function RESULTS.broadcast(x, _, _, out) return out or x * 1 end

function RESULTS.all_gather(x, ranks, _, out, cat)
  if out then return out end
  if cat then return c.cat(copies(x, ranks), 1) end
  return c.stack(copies(x, ranks), 1)
end

function RESULTS.reduce_scatter(x, ranks)
  return x:narrow(1, 1, x.shape[1] // ranks) * ranks
end

function RESULTS.all_to_all(x) return x * 1 end
function RESULTS.reduce(x, ranks, op) return RESULTS.all_reduce(x, ranks, op) end
function RESULTS.gather(x, ranks) return RESULTS.all_gather(x, ranks) end
function RESULTS.scatter(x, ranks) return x:narrow(1, 1, x.shape[1] // ranks) * 1 end
function RESULTS.recv(x, _, _, out) return out or x end
function RESULTS.send() return nil end

-- Zeros like a parameter. Not by a call that makes a meta tensor of nothing: what is made so keeps
-- all that is added to it, to be made again (ops/deferred_init.c).
local function zeros_like(parameter)
  local zero = c.zeros({ 1 }, { dtype = parameter.dtype, device = "cpu" })
  local one <close> = zero:to(parameter.device)
  local row <close> = one:expand { parameter:numel() }
  local zeros <close> = row:contiguous()
  return zeros:reshape(parameter.shape)
end

-- The gradients of parameters, zeros in the place of those that are nil, as ranks send them.
local function fill_gradients(parameters)
  local filled = {}
  for i, parameter in ipairs(parameters) do
    filled[i] = parameter.grad and 0 or 1
    if not parameter.grad then parameter.grad = zeros_like(parameter) end
  end
  return filled
end

-- c.dist.overlap without a backward to follow: gradients are summed in their own memory.
local function overlap(world, lists, given)
  local self, flat, filled = {}, {}, nil
  for _, list in ipairs(lists) do table.move(list, 1, #list, #flat + 1, flat) end
  function self.fits(_, parameters)
    local n = 0
    for _, parameter in ipairs(parameters) do
      if parameter.requires_grad then
        n = n + 1
        if not rawequal(given[n], parameter) then return false end
      end
    end
    return n == #given
  end
  function self.expect() return self end
  function self.begin() return setmetatable({}, { __close = function() end }) end
  function self.finish(_, weight)
    local _ <close> = c.no_grad()
    filled = fill_gradients(flat)
    local missing = 0
    for _, has_none in ipairs(filled) do missing = missing + has_none end
    for _, list in ipairs(lists) do
      world:note("all_reduce", bytes_of_all(list), "gradients", true)
    end
    return weight * world.ranks, missing
  end
  function self.filled() return filled end
  function self.order() return {} end
  return self
end

-- Takes the gradients of the parameters as the runtime does: each is contiguous and alive until the
-- work is done.
local function take_gradients(parameters)
  local held = {}
  for i, parameter in ipairs(parameters) do
    local grad = parameter.grad
    if not grad then
      held[i] = zeros_like(parameter)
    elseif grad:is_contiguous() then
      held[i] = grad
    else
      local scattered <close> = grad
      held[i] = scattered:contiguous()
    end
    parameter.grad = nil
  end
  return held
end

-- This rank's shards of gradients.
local function copy_shards(gradients, sums)
  for i, sum in ipairs(sums) do
    local row <close> = gradients[i]:reshape { 1, gradients[i]:numel() }
    local shard <close> = row:narrow(2, 1, sum.shape[2])
    sum:copy_(shard)
  end
end

-- The functions in the place of c.dist's.
local function functions(world)
  local ranks, f = world.ranks, {}
  function f.rank() return 0 end
  function f.size() return ranks end
  function f.ranks()
    local list = {}
    for r = 1, ranks do list[r] = r - 1 end
    return list
  end
  function f.world()
    return { backend = "shm", rank = 0, ranks = ranks, local_rank = 0, node_rank = 0,
      local_ranks = world.per_node, nodes = ranks // world.per_node, threads = 1, forked = true,
      stays = false, pid = c.runtime.pid(), reduction_order = "binary tree",
      hosts = copies("planned", ranks), pids = copies(0, ranks) }
  end
  function f.collective(_, name, x, op, _, cat, _, out)
    if name ~= "barrier" then world:note((name:gsub("_$", "")), bytes_of(x), name) end
    return { result = RESULTS[name] and RESULTS[name](x, ranks, op, out, cat) }
  end
  function f.values(_, name, value)
    world:note("all_reduce", CONTROL, name)
    if name == "broadcast" then return { result = value } end
    if name == "scatter" then return { result = value[1] } end
    return { result = copies(value, ranks) }
  end
  function f.add(numbers)
    world:note("all_reduce", CONTROL, "step")
    local sums = {}
    for i, number in ipairs(numbers) do sums[i] = number * ranks * 1.0 end
    return sums
  end
  function f.barrier() return {} end
  function f.wait(work)
    if work.finish then work.finish() end
    return work.result
  end
  function f.test() return true end
  function f.split() return {} end
  function f.reduce(parameters)
    fill_gradients(parameters)
    world:note("all_reduce", bytes_of_all(parameters), "gradients")
  end
  function f.gather_shards(_, parameters, _, _, name)
    world:note("all_gather", bytes_of_all(parameters), name)
    return {}
  end
  function f.reduce_shards(_, parameters, _, sums, name)
    local gradients = take_gradients(parameters)
    world:note("reduce_scatter", bytes_of_all(parameters), name, true)
    copy_shards(gradients, sums)
    return { finish = function()
      for i = 1, #gradients do local _ <close> = gradients[i] end
    end }
  end
  function f.overlap(lists, given) return overlap(world, lists, given) end
  function f.link() return nil end
  function f.waited() return 0 end
  function f.set_timeout() return 0 end
  for _, name in ipairs { "set_folder", "set_fixed_order", "leave", "finish", "outcome" } do
    f[name] = function() end
  end
  return f
end

local World = {}
World.__index = World

-- Notes a collective of `bytes` on each rank, of the whole that is reduced, gathered or scattered;
-- `overlaps`: backward continues meanwhile.
function World:note(kind, bytes, label, overlaps)
  if not self.messages then return end
  table.insert(self.messages, { kind = kind, bytes = bytes, label = label,
    overlaps = overlaps or false })
end

--- Notes from here on; the list is `messages`.
function World:record() self.messages = {} end

World.__close = function(self)
  for name, own in next, self._own do d[name] = own or nil end
end

--- This process is rank 0 of `ranks` until the result is closed; `per_node` of them are on a
--- machine.
function stand_in_ranks.open(ranks, per_node)
  local world = setmetatable({ ranks = ranks, per_node = per_node, _own = {} }, World)
  if ranks == 1 then return world end
  for name, fn in next, functions(world) do
    world._own[name], d[name] = d[name] or false, fn
  end
  return world
end

return stand_in_ranks
