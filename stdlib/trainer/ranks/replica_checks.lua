--- stdlib/trainer/ranks/replica_checks.lua: checks that the weights are bitwise equal on all ranks,
--- and that the optimizers hold the module's current parameters.
--
-- Checked with each step: whether the parameters are still in the same tables. A walk of the module
-- would cost more than a small step, so the places are kept and checked one by one; a parameter
-- that is new needs a call of lt.parameter, which is counted. Checked every n steps: whether all
-- ranks hold the same bits.
local c = require "ltrain.c"
local data_ranks = require "ltrain.dist.data_ranks"
local dist = require "ltrain.dist"
local errors = require "ltrain.core.errors"
local exchange = require "ltrain.trainer.ranks.exchange"
local external_writes = require "ltrain.optim.external_writes"
local parameters = require "ltrain.trainer.steps.parameters"
local tree = require "ltrain.core.tree"
local walk = require "ltrain.core.walk"

local replica_checks = {}

-- Adds the places on the way from `holder` along the keys.
local function add_places(places, seen, holder, keys)
  for _, key in ipairs(keys) do
    local known = seen[holder] or {}
    seen[holder] = known
    local value = rawget(holder, key)
    if not known[key] then
      known[key] = true
      local n = #places.holders + 1
      places.holders[n], places.keys[n], places.values[n] = holder, key, value
    end
    holder = value
  end
end

-- All places of tables, modules and tensors on the ways through `modules` to their parameters, and
-- `made`, the count of lt.parameter.
local function places_of(modules, made)
  local places, seen = { holders = {}, keys = {}, values = {}, made = made }, {}
  for _, entry in ipairs(modules) do
    for _, list in ipairs { entry.tensors, entry.children } do
      for _, item in ipairs(list) do
        if not item.buffer then
          add_places(places, seen, entry.module, walk.way(item))
        end
      end
    end
  end
  return places
end

local function are_as_before(places)
  local holders, keys, values = places.holders, places.keys, places.values
  for i = 1, #holders do
    if not rawequal(holders[i][keys[i]], values[i]) then return false end
  end
  return true
end

--- Raises when a parameter was lost, replaced, or is new and in no optimizer.
function replica_checks.check_places(state)
  local made = c.runtime.parameters_made()
  local known = state.loop.places
  if known and made == known.made and are_as_before(known) then return end
  local modules = parameters.check(state,
    ("optimizer step %d"):format(state.trainer.global_step + 1))
  state.loop.places = places_of(modules or walk.modules(state.module), made)
end

-- Hashes of what ranks must hold alike.

local PLAIN <const> = { number = true, string = true, boolean = true }

-- Adds the tensors and plain values of a tree, in order.
local function add_leaves(list, value)
  if c.is_tensor(value) or PLAIN[type(value)] then
    list[#list + 1] = value
  elseif type(value) == "table" and getmetatable(value) == nil then
    for _, element in tree.pairs(value) do add_leaves(list, element) end
  end
end

-- fn(name, value) for what ranks that share sums hold alike: each parameter, then of each group of
-- each optimizer its options, and what it keeps for its parameters.
local function each_part(state, fn)
  local known, strategy = state.loop.parameters, state.strategy
  local has_state = strategy:has_copies "optimizer"
  if strategy:has_copies "parameter" then
    for _, name in ipairs(known.list) do fn(name, known.by_name[name]) end
  end
  for i, optimizer in ipairs(state.optimizers) do
    local of = #state.optimizers > 1 and (" of optimizer %d"):format(i) or " of the optimizer"
    for g, group in ipairs(optimizer.param_groups) do
      local options = {}
      for key, value in next, group do
        if key ~= "params" and key ~= "names" then options[key] = value end
      end
      fn(("options of group %d%s"):format(g, of), options)
      for k, parameter in ipairs(group.params) do
        local slots = has_state and optimizer.state and optimizer.state[parameter]
        if slots then fn(("state of %s"):format(group.names and group.names[k] or k), slots) end
      end
    end
  end
end

-- Whether all ranks hold the same. Both bounds of the hashes in one message: ~ turns the order.
local function are_equal(state)
  local list = {}
  each_part(state, function(_, value) add_leaves(list, value) end)
  local hash = c.runtime.hash(list)
  local bounds = dist.all_reduce(c.tensor({ hash, ~hash }, { dtype = "i64" }),
    { op = "max", group = data_ranks.group() })
  local high, low = table.unpack(bounds:tolist())
  return high == hash and low == ~hash
end

-- Telling.

local function cpu_level()
  for _, part in ipairs(c.runtime.parts()) do
    if part.name == "cpu" then return part.text:match("level (%w+)") end
  end
end

-- What a rank sends of itself: hashes of the parts by name, who wrote, how its machine rounds.
local function account_of(state)
  local account = { hashes = {}, changed_by = {}, level = cpu_level() }
  each_part(state, function(name, value)
    local list = {}
    add_leaves(list, value)
    account.hashes[name] = c.runtime.hash(list)
  end)
  for _, optimizer in ipairs(state.optimizers) do
    if optimizer.changed_by then -- nil: not an optimizer of this library
      external_writes.look(optimizer) -- it has not been called since the last step
      for name, by in next, optimizer.changed_by do account.changed_by[name] = by end
    end
  end
  return account
end

local MOST <const> = 8

-- "rank 2: head.weight (changed by mul at model.lua:31), state of head.weight" or nil.
local function difference_text(rank, account, first)
  local parts, more = {}, 0
  local names = {}
  for name in next, first.hashes do names[name] = true end
  for name in next, account.hashes do names[name] = true end
  for name in tree.pairs(names) do
    if account.hashes[name] ~= first.hashes[name] then
      local by = account.changed_by[name]
      parts[#parts + 1] = by and ("%s (changed by %s)"):format(name, by) or name
    end
  end
  if #parts == 0 then return nil end
  if #parts > MOST then more, parts = #parts - MOST, table.move(parts, 1, MOST, 1, {}) end
  return ("  rank %d: %s%s"):format(rank, table.concat(parts, ", "),
    more > 0 and (" and %d more"):format(more) or "")
end

-- Who wrote on the first rank stands there too: it may be the one that is wrong.
local function first_text(first, rank)
  local parts = {}
  for name, by in tree.pairs(first.changed_by) do
    parts[#parts + 1] = ("%s (changed by %s)"):format(name, by)
  end
  return #parts > 0 and ("  rank %d itself: %s"):format(rank, table.concat(parts, ", ")) or nil
end

-- Machines that round differently drift apart without anybody's fault.
local function levels_text(accounts)
  local seen, levels = {}, {}
  for _, account in ipairs(accounts) do
    if not seen[account.level] then
      seen[account.level], levels[#levels + 1] = true, account.level
    end
  end
  if #levels == 1 then return nil end
  table.sort(levels)
  return ("  the ranks use instructions of levels %s, which round differently: set "
    .. "LTRAIN_CPU_LEVEL=%s for all"):format(table.concat(levels, " and "), levels[1])
end

local function complain(state)
  local group = data_ranks.group()
  local accounts = dist.all_gather(account_of(state), { group = group })
  local ranks = group and group:ranks()
  local first = ranks and ranks[1] or 0
  local lines = { ("ranks hold different values after optimizer step %d, compared to rank %d:")
    :format(state.trainer.global_step, first) }
  for i = 2, #accounts do
    lines[#lines + 1] = difference_text(ranks and ranks[i] or i - 1, accounts[i], accounts[1])
  end
  lines[#lines + 1] = first_text(accounts[1], first)
  lines[#lines + 1] = levels_text(accounts)
  errors.blame("%s", table.concat(lines, "\n"))
end

--- Raises on all ranks, naming parameters and ranks, when they do not hold the same bits.
function replica_checks.compare(state)
  if not state.ranks.many or state.trainer.options.replica_check_every_n_steps == 0 then return end
  exchange("replicas", function()
    if not are_equal(state) then complain(state) end
  end)
end

--- After a step of an optimizer, which all ranks make: compares every n steps.
function replica_checks.after_step(state)
  local every = state.trainer.options.replica_check_every_n_steps
  if every > 0 and state.trainer.global_step % every == 0 then replica_checks.compare(state) end
end

return replica_checks
