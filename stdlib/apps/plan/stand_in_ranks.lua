--- stdlib/apps/plan/stand_in_ranks.lua: one process in the place of each of N ranks: collectives
--- return what they would if all ranks had this one's values, and are noted in a timeline.
--
-- The functions of c.dist through which stdlib communicates are replaced: strategies and loops run
-- as on rank 0 of N, and allocate what they allocate there. No bytes move. Bytes of a collective
-- are counted as c.dist.traffic counts them: of the whole that is reduced, gathered or scattered.
local Group = require "ltrain.dist.Group"
local Mesh = require "ltrain.dist.Mesh"
local c = require "ltrain.c"
local collectives = require "ltrain.dist.collectives"
local data_ranks = require "ltrain.dist.data_ranks"
local expert_dispatch = require "ltrain.nn.expert_dispatch"
local tensor_bytes = require "ltrain.apps.plan.tensor_bytes"
local tree = require "ltrain.core.tree"

local stand_in_ranks = {}

local d <const> = c.dist

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

-- Counts the gradients of buckets until the result is closed: `complete(bucket)` when those of all
-- its parameters are there; `order` gets the numbers of parameters as they become complete.
local function watch_gradients(lists, order, complete)
  local removes, number = {}, 0
  for k, list in ipairs(lists) do
    local pending = #list
    for _, parameter in ipairs(list) do
      number = number + 1
      local own = number
      removes[#removes + 1] = parameter:register_post_accumulate_grad_hook(function()
        order[#order + 1] = own
        pending = pending - 1
        if pending == 0 then complete(k) end
      end)
    end
  end
  return setmetatable({}, { __close = function()
    for _, remove in ipairs(removes) do remove() end
  end })
end

-- c.dist.overlap: buckets are issued, in order, when backward has completed their gradients; the
-- sums are in the gradients' own memory.
local function overlap(world, lists, given)
  local self, flat, filled, order, works, is_complete = {}, {}, nil, {}, {}, {}
  for _, list in ipairs(lists) do table.move(list, 1, #list, #flat + 1, flat) end
  local function issue()
    local bytes = tensor_bytes.of_all(lists[#works + 1])
    works[#works + 1] = world:issue("all_reduce", bytes, "gradients")
  end
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
  function self.begin()
    order, is_complete = {}, {}
    return watch_gradients(lists, order, function(k)
      is_complete[k] = true
      while is_complete[#works + 1] do world:between(issue) end
    end)
  end
  local function finish(weight)
    local _ <close> = c.no_grad()
    filled = fill_gradients(flat)
    local missing = 0
    for _, has_none in ipairs(filled) do missing = missing + has_none end
    while #works < #lists do issue() end
    for _, work in ipairs(works) do world:wait(work) end
    works = {}
    return weight * world.ranks, missing
  end
  function self.finish(_, weight) return world:between(finish, weight) end
  function self.filled() return filled end
  function self.order() return order end
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
local FUNCTIONS <const> = {}

function FUNCTIONS.rank() return 0 end
function FUNCTIONS.size(world, group) return group and group.ranks or world.ranks end

function FUNCTIONS.ranks(world, group)
  local list = {}
  for r = 1, FUNCTIONS.size(world, group) do list[r] = r - 1 end
  return list
end

function FUNCTIONS.world(world)
  local ranks = world.ranks
  return { backend = "shm", rank = 0, ranks = ranks, local_rank = 0, node_rank = 0,
    local_ranks = world.per_node, nodes = math.max(ranks // world.per_node, 1), threads = 1,
    forked = true, stays = false, pid = c.runtime.pid(), reduction_order = "binary tree",
    hosts = copies("planned", ranks), pids = copies(0, ranks) }
end

-- Of a group the ranks of a replica, then those with the same shards
-- (strategies/sharded/Replicas.lua). Groups are of ranks that are `stride` apart.
function FUNCTIONS.split(world, group)
  world.splits = world.splits + 1
  local each, stride = FUNCTIONS.size(world, group) // world.replicas, group and group.stride or 1
  if world.splits % 2 == 1 then return { ranks = each, stride = stride } end
  return { ranks = world.replicas, stride = stride * each }
end

-- In the place of Mesh.group; with `stride` to the second of its ranks.
local function group_of_mesh(mesh, ...)
  local names, stride = { ... }, 1
  local _, ranks = mesh:number(names)
  while ranks > 1 and mesh:number(names, stride) ~= 1 do stride = stride + 1 end
  return Group { ranks = ranks, stride = stride }
end

local plan <const>, all_to_all <const> = expert_dispatch.plan, collectives.all_to_all

-- In the place of expert_dispatch.plan: all ranks send as many rows to the next ranks' experts as
-- this one does to those of the ranks after it, so that each gets what it sends.
local function balanced_plan(choices, experts, capacity_factor, group)
  local found = plan(choices, experts, capacity_factor, group)
  local own, each = found.kept[1], group and experts // group:world_size() or 0
  for r = 2, #found.kept do
    local rotated = {}
    for e = 1, experts do rotated[e] = own[(e - 1 + (r - 1) * each) % experts + 1] end
    found.kept[r] = rotated
  end
  return found
end

-- In the place of collectives.all_to_all: as many rows come as go.
local function balanced_all_to_all(x, options)
  local o = {}
  for name, value in next, options or {} do o[name] = value end
  o.splits = nil
  return all_to_all(x, o)
end

-- What has other functions besides c.dist: holder, name, function.
local OTHERS <const> = {
  { data_ranks, "counts", function() return true end }, -- rank 0 stands for that which counts
  { Mesh, "group", group_of_mesh }, { expert_dispatch, "plan", balanced_plan },
  { collectives, "all_to_all", balanced_all_to_all },
}

function FUNCTIONS.collective(world, group, name, x, op, _, cat, _, out)
  local ranks, kind = FUNCTIONS.size(world, group), (name:gsub("_$", ""))
  local bytes = tensor_bytes.of(x)
  if kind == "all_gather" or kind == "gather" then bytes = bytes * ranks end
  local work = world:issue(kind, bytes, name, group)
  work.result = RESULTS[name] and RESULTS[name](x, ranks, op, out, cat)
  if kind == "all_to_all" and work.result.requires_grad then -- its backward is another one
    work.result:register_hook(function()
      world:between(function() world:wait(world:issue(kind, bytes, "backward", group)) end)
    end)
  end
  return work
end

-- Of a value in the encoding of c.dist; tensors in it are counted by their elements.
local function encoded_bytes(value)
  local bytes = 0
  local plain = tree.map(value, function(leaf)
    if not c.is_tensor(leaf) then return leaf end
    bytes = bytes + tensor_bytes.of(leaf)
    return false
  end)
  return bytes + #d.encode(plain)
end

function FUNCTIONS.values(world, group, name, value)
  local ranks = FUNCTIONS.size(world, group)
  local is_for_all = name == "all_reduce" or name == "all_gather" or name == "gather"
  local bytes = encoded_bytes(value) * (is_for_all and ranks or 1)
  local work = world:issue(name, bytes, name, group)
  work.result = name == "broadcast" and value or name == "scatter" and value[1]
  if is_for_all then work.result = copies(value, ranks) end
  return work
end

function FUNCTIONS.add(world, numbers)
  world:wait(world:issue("all_reduce", 8 * #numbers, "step"))
  local sums = {}
  for i, number in ipairs(numbers) do sums[i] = number * world.ranks * 1.0 end
  return sums
end

function FUNCTIONS.barrier(world) return world:issue("barrier", 0, "barrier") end

function FUNCTIONS.wait(world, work)
  world:wait(work)
  if work.finish then work.finish() end
  local result = work.result
  work.result = nil -- a work that nobody uses any more does not keep it alive
  return result
end

function FUNCTIONS.test() return true end

function FUNCTIONS.reduce(world, parameters)
  fill_gradients(parameters)
  world:wait(world:issue("all_reduce", tensor_bytes.of_all(parameters), "gradients"))
end

function FUNCTIONS.gather_shards(world, group, parameters, _, _, name)
  return world:issue("all_gather", tensor_bytes.of_all(parameters), name, group)
end

function FUNCTIONS.reduce_shards(world, group, parameters, _, sums, name)
  local gradients = take_gradients(parameters)
  local work = world:issue("reduce_scatter", tensor_bytes.of_all(parameters), name, group)
  copy_shards(gradients, sums)
  function work.finish()
    for i = 1, #gradients do local _ <close> = gradients[i] end
  end
  return work
end

function FUNCTIONS.overlap(world, lists, given) return overlap(world, lists, given) end
function FUNCTIONS.link() return nil end
function FUNCTIONS.waited() return 0 end
function FUNCTIONS.set_timeout() return 0 end
for _, name in ipairs { "set_folder", "set_fixed_order", "leave", "finish", "outcome" } do
  FUNCTIONS[name] = function() end
end

local World = {}
World.__index = World

--- Begins a collective of `bytes` on the ranks of a group (nil: all): returns its work.
function World:issue(kind, bytes, label, group)
  local entry = { issue = kind, bytes = bytes, label = label,
    ranks = group and group.ranks or self.ranks, stride = group and group.stride or 1 }
  self.timeline[#self.timeline + 1] = entry
  return { entry = entry }
end

function World:wait(work) self.timeline[#self.timeline + 1] = { wait = work.entry } end

-- What the rank has computed since the timeline's last entry.
local function note_computation(self)
  local segment = self.meter and self.meter:stop()
  if segment then table.insert(self.timeline, segment) end
end

local function resume(self, ...)
  if self.meter then self.meter:start() end
  return ...
end

--- Returns fn(...), which is not the rank's computation but in place of communication.
function World:between(fn, ...)
  note_computation(self)
  return resume(self, fn(...))
end

--- Begins a timeline: a list of collectives that are issued, { issue = kind, bytes =, label =,
--- ranks =, stride = }, of { wait = one of these } and, with a meter (meters.lua), of what it
--- has found the rank to compute in between. Returns the one before.
function World:record(meter)
  note_computation(self)
  local before = self.timeline
  self.timeline, self.meter = {}, meter
  resume(self)
  return before
end

World.__close = function(self)
  for name, own in next, self._own do d[name] = own or nil end
  for i, own in ipairs(self._others) do OTHERS[i][1][OTHERS[i][2]] = own end
end

--- This process is rank 0 of `ranks` until the result is closed; `per_node` of them are on a
--- machine, and `replicas` groups of them have all shards (strategies/Sharded.lua).
function stand_in_ranks.open(ranks, per_node, replicas)
  local world = setmetatable({ ranks = ranks, per_node = per_node, replicas = replicas, splits = 0,
    timeline = {}, _own = {}, _others = {} }, World)
  if ranks == 1 then return world end
  for i, one in ipairs(OTHERS) do
    world._others[i], one[1][one[2]] = one[1][one[2]], one[3]
  end
  for name, fn in next, FUNCTIONS do
    world._own[name] = d[name] or false
    d[name] = function(...) return world:between(fn, world, ...) end
  end
  return world
end

return stand_in_ranks
