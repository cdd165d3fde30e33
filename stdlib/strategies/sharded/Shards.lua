--- stdlib/strategies/sharded/Shards.lua: where each parameter is cut, and this rank's slice of it.
--
-- Each parameter, as a row of elements, is cut into as many slices as there are ranks that share it
-- (of a replica, if there are several); where its first dim divides by them these are blocks of
-- that dim.
-- Ranks have equally many elements of all parameters together, give or take one. A shard is
-- { parameter =, name =, cuts =, from =, n =, tensor =, is_kept =, used = }: `tensor` is this
-- rank's slice [1, n], which is stepped in the parameter's place, by the slice of its gradient,
-- `tensor.grad`. What the optimizer keeps for it is a slice of what it would keep for the
-- parameter; the two dims distinguish a state that has an element for each of the shard's, [1, n],
-- from one for the whole parameter, such as a counter [1].
--
-- In a pipeline a parameter that other stages have, or several, is left to the strategy
-- (`is_left`): it is never parted, and its gradient is reduced at the end of a step alone, after
-- the stages have added theirs up.
--
-- A gradient is spent when the Trainer has made a step with it: what is reduced next replaces it,
-- on each rank, also on one that has no sample and clears nothing in time. In manual optimization
-- the script clears.
--
-- A parameter that is kept has all its elements on every rank, and its shard shares their memory; a
-- shard that is `apart` has a copy of them while it is stepped: one on the host (Offload.lua), and
-- the f32 shard of a parameter in 16 bits, a wide one, where small updates add up (Micikevicius et
-- al. 2018). Of the others the ranks have their shards, and the whole only while it is computed
-- with.
local Optimizer = require "ltrain.optim.Optimizer"
local buckets = require "ltrain.dist.buckets"
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local divided_modules = require "ltrain.parallel.divided_modules"
local tensor_cuts = require "ltrain.core.cuts"
local errors = require "ltrain.core.errors"
local has_shape = require "ltrain.core.has_shape"
local parts = require "ltrain.core.parts"
local zero_grad = require "ltrain.core.zero_grad"

local d = c.dist

local Shards = class.extend(nil, "Shards")

--- Shards(replicas, offload, who): `replicas`: a Replicas; `who`: the strategy, in errors.
--- `module` of it is set before the first backward.
function Shards:init(replicas, offload, who)
  self.replicas, self.offload, self.who = replicas, offload, who
  self.of = {} -- by parameter
  self.elements = {} -- that each rank has so far, by the ranks that share them
  self.division = nil -- of a pipeline: which stage has which parameters
end

--- Whether the Trainer clears gradients, once a window.
function Shards:is_automatic() return self.module.automatic_optimization ~= false end

-- The ranks that share a parameter: of an expert those that have the same (core/cuts.lua).
local function ranks_of(self, parameter)
  local known = tensor_cuts.of(parameter)
  return known and known.is_summed and self.replicas.of_experts or self.replicas
end

-- How many elements each of them has so far.
local function elements_of(self, replicas)
  local elements = self.elements[replicas]
  if elements then return elements end
  elements = {}
  for r = 1, replicas.ranks do elements[r] = 0 end
  self.elements[replicas] = elements
  return elements
end

-- Where the slices of `n` elements begin, and the end of the last. Elements over go to the ranks
-- that have fewest.
local function cut(elements, n)
  local ranks = #elements
  local each, over = n // ranks, n % ranks
  local order = {}
  for r = 1, ranks do order[r] = r end
  table.sort(order, function(a, b)
    local x, y = elements[a], elements[b]
    if x ~= y then return x < y end
    return a < b
  end)
  local sizes = {}
  for place, r in ipairs(order) do sizes[r] = each + (place <= over and 1 or 0) end
  local cuts = { 0 }
  for r = 1, ranks do
    cuts[r + 1] = cuts[r] + sizes[r]
    elements[r] = elements[r] + sizes[r]
  end
  return cuts
end

--- This rank's elements of a whole tensor of the parameter's shape, as a row in the same memory.
function Shards.slice(shard, whole)
  return whole:detach():reshape { 1, whole:numel() }:narrow(2, shard.from + 1, shard.n)
end

--- Cuts a parameter, which is kept; returns its shard, the same one when it is cut already.
function Shards:add(parameter, name)
  local shard = self.of[parameter]
  if shard then return shard end
  if not parameter:is_contiguous() then
    errors.blame("%s: %s is not contiguous: %s: create it from x:contiguous()", self.who, name,
      errors.show(parameter))
  end
  local replicas = ranks_of(self, parameter)
  local division = self.division
  local is_foreign = division and not division:has(parameter)
  local cuts = cut(elements_of(self, replicas), is_foreign and 0 or parameter:numel())
  local from = cuts[replicas.rank + 1]
  shard = { parameter = parameter, name = name, cuts = cuts, from = from, replicas = replicas,
    offload = self.offload, n = cuts[replicas.rank + 2] - from, is_kept = true, used = false,
    is_left = is_foreign or division and division:is_common(parameter), who = self.who }
  -- A view would keep the memory of what other ranks have.
  shard.tensor = is_foreign and c.empty({ 1, 0 }, { dtype = parameter.dtype,
    device = parameter.device }) or Shards.slice(shard, parameter)
  local dtype = parameter.requires_grad and Optimizer.state_dtype(parameter) or parameter.dtype
  shard.is_wide = parameter.dtype ~= dtype and not is_foreign
  shard.apart = shard.is_wide or self.offload:moves(parameter)
  if shard.apart then shard.tensor = self.offload:copy(shard.tensor, dtype) end
  self.of[parameter] = shard
  zero_grad.also(parameter, function()
    if shard.is_spent or not self:is_automatic() then shard.tensor.grad = nil end
  end, function() return shard.tensor.grad ~= nil end)
  return shard
end

--- Copies a tensor, or one of a file, into a parameter or buffer: into the shard where this rank
--- has one of it. Of a parameter that is cut the source may be the whole.
function Shards:copy_into(own, source)
  local shard, whole_cut = self.of[own], tensor_cuts.of(own)
  local is_kept = not shard or shard.is_kept
  if (is_kept and own:numel() or shard.n) == 0 then return end
  if is_kept then return tensor_cuts.copy(own, source) end
  if whole_cut and not has_shape(source, own) then source = tensor_cuts.read(whole_cut, source) end
  parts.copy(shard.tensor, source, shard.from)
end

--- Forgets the gradients of all shards.
function Shards:forget()
  for parameter in next, self.of do zero_grad.also(parameter, nil) end
end

--- Takes the memory of the whole parameter away.
function Shards.empty(shard)
  d.empty(shard.parameter, ("parameter '%s' is sharded, and this rank has a part of it: use it in "
    .. "the forward of its module, in a method that lt.register_forward_method names, or within "
    .. "strategy:gather_parameters()"):format(shard.name))
end

--- The other ranks' parts of a parameter are gone.
function Shards.lose(shard)
  d.fill(shard.parameter)
  d.empty(shard.parameter, divided_modules.lost_text(shard.name, shard.who))
end

--- Gives the shard memory of its own and takes that of the whole parameter away, until a unit
--- gathers it.
function Shards.part(shard)
  if not shard.apart then
    shard.tensor = shard.offload:copy(shard.tensor, shard.parameter.dtype)
  end
  shard.is_kept, shard.apart = false, false
  Shards.empty(shard)
end

--- Makes the parameter whole again; its memory is here, with all values.
function Shards.join(shard)
  shard.is_kept, shard.is_wide = true, false
  shard.tensor = Shards.slice(shard, shard.parameter)
end

--- Gives a shard the elements of its parameter, whose memory is here: before a step of one that is
--- apart, and where a script has written the parameter. A wide shard keeps those that round to what
--- the parameter has.
function Shards.read(shard)
  local now, own = Shards.slice(shard, shard.parameter), shard.tensor
  if shard.is_wide then
    now = now:to(own.device)
    now = c.where(own:to(now.dtype):eq(now), own, now:to(own.dtype))
  end
  own:copy_(now)
end

--- Gives the parameter the elements of its shard.
function Shards.write(shard) Shards.slice(shard, shard.parameter):copy_(shard.tensor) end

-- Adds the groups of a list of shards that the same ranks share.
local function add_groups(groups, list, cap)
  local parameters, shard_of = {}, {}
  for i, shard in ipairs(list) do
    parameters[i], shard_of[shard.parameter] = shard.parameter, shard
  end
  for _, bucket in ipairs(buckets.split(parameters, "all", cap or math.huge)) do
    local group = { shards = {}, parameters = bucket.parameters, dtype = bucket.dtype,
      device = bucket.parameters[1].device, replicas = list[1].replicas }
    local cuts = {}
    for k, parameter in ipairs(group.parameters) do
      local shard = shard_of[parameter]
      group.shards[k] = shard
      table.move(shard.cuts, 1, #shard.cuts, #cuts + 1, cuts)
    end
    group.cuts = c.tensor(cuts, { dtype = "i64" }):reshape { #group.parameters, -1 }
    groups[#groups + 1] = group
  end
end

--- Lists of shards, each of one dtype and device and at most `cap` bytes (nil: any), unless one has
--- more: { shards =, parameters =, cuts = } for c.dist's gather_shards and reduce_shards.
function Shards.group(list, cap)
  local lists, list_of, groups = {}, {}, {}
  for _, shard in ipairs(list) do
    local own = list_of[shard.replicas]
    if not own then
      own = {}
      list_of[shard.replicas], lists[#lists + 1] = own, own
    end
    own[#own + 1] = shard
  end
  for _, own in ipairs(lists) do add_groups(groups, own, cap) end
  return groups
end

-- Adds a sum over the ranks to what a shard has.
local function accumulate(shard, sum)
  local tensor = shard.tensor
  sum = shard.offload:take(sum, tensor.dtype)
  if shard.is_spent then tensor.grad, shard.is_spent = nil, false end
  if not tensor.grad then
    tensor.grad = sum
    return
  end
  local sum <close> = sum -- luacheck: ignore
  tensor.grad:add_(sum)
end

-- The dtype in which a group's gradients travel: halves do as they are.
local function sent_dtype(group)
  local is_half = group.dtype == "bf16" or group.dtype == "f16"
  return not is_half and group.replicas.sends or group.dtype
end

-- Rows for the sums of a group's slices; if replicas add them up, in one tensor, which is returned
-- too.
local function new_sums(group)
  local _ <close> = group.shards[1].offload:scope()
  local sums, o, n = {}, { dtype = sent_dtype(group), device = group.device }, 0
  if not group.replicas.outer then
    for i, shard in ipairs(group.shards) do sums[i] = c.empty({ 1, shard.n }, o) end
    return sums
  end
  for _, shard in ipairs(group.shards) do n = n + shard.n end
  local all = c.empty({ 1, n }, o)
  n = 0
  for i, shard in ipairs(group.shards) do
    sums[i], n = all:narrow(2, n + 1, shard.n), n + shard.n
  end
  return sums, all
end

-- What follows when the sums of a replica's ranks are there: those of the others, and the shards'.
local function finish_reduce(group, work, sums, all, scale)
  local _ <close> = c.no_grad()
  d.wait(work)
  if all then
    d.wait(d.collective(group.replicas.outer, "all_reduce_", all, "sum"))
    if scale ~= 1 then all:mul_(scale) end
  end
  for i, shard in ipairs(group.shards) do accumulate(shard, sums[i]) end
end

--- Begins to reduce the gradients of a group over the ranks, times `scale`; the parameters have
--- none from here on. Returns a function that adds the sums to the shards' gradients. All ranks
--- call both.
function Shards.begin_reduce(group, name, scale)
  local _ <close> = c.no_grad()
  for i, has in ipairs(d.with_gradients(group.parameters)) do
    local shard = group.shards[i]
    shard.used = shard.used or has == 1
  end
  local sums, all = new_sums(group)
  local work = d.reduce_shards(group.replicas.inner, group.parameters, group.cuts, sums, name,
    all and 1 or scale)
  return function() finish_reduce(group, work, sums, all, scale) end
end

--- Both in one.
function Shards.reduce(group, name, scale) Shards.begin_reduce(group, name, scale)() end

return Shards
