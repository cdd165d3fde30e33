--- stdlib/trainer/ranks/rank_setup.lua: sets a Trainer up as one of several ranks.
--
-- Every rank runs the loop; files, bars and messages are rank 0's alone.
local Callback = require "ltrain.core.Callback"
local c = require "ltrain.c"
local consensus = require "ltrain.trainer.ranks.consensus"
local data_ranks = require "ltrain.dist.data_ranks"
local dist = require "ltrain.dist"
local dummy_logger = require "ltrain.trainer.ranks.dummy_logger"
local hook_calls = require "ltrain.trainer.hook_calls"
local loaders = require "ltrain.trainer.data.loaders"
local placement = require "ltrain.trainer.setup.placement"
local rank_warnings = require "ltrain.trainer.ranks.rank_warnings"
local version = require "ltrain.loggers.version"

local ranks = {}

-- Callbacks that run on every rank; rank 0 has all. Most write or show, and need no others.
local function callbacks_of_all(list)
  local found = {}
  for _, callback in ipairs(list) do
    if callback.all_ranks then found[#found + 1] = callback end
  end
  return found
end

-- Whether a callback, of rank 0 alone or of all, may end an epoch.
local function may_leave(list)
  for _, callback in ipairs(list) do
    if hook_calls.overrides(callback, "on_train_batch_start", Callback)
      and not callback.keeps_epoch then
      return true
    end
  end
  return false
end

-- Loggers in their places, silent unless every rank logs.
local function loggers_of_all(list)
  local found = {}
  for i, logger in ipairs(list) do
    found[i] = logger.all_ranks and logger or dummy_logger(logger)
  end
  return found
end

--- Ranks of mpirun have loggers of their own: they take rank 0's folders. Reports of failing ranks
--- go there too.
function ranks.share_folders(state)
  local trainer = state.trainer
  if dist.world_size() == 1 then return end
  version.share(trainer.loggers, state.strategy)
  if trainer.log_dir then c.dist.set_folder(trainer.log_dir) end
end

--- The first thing that a rank does: who it is, and what it leaves to rank 0.
function ranks.enter(state)
  local trainer = state.trainer
  placement.note_rank(trainer)
  c.dist.set_fixed_order(trainer.options.deterministic ~= false)
  trainer.world = dist.world()
  state.ranks.many = trainer.world.ranks > 1
  if state.ranks.many then c.dist.set_hook("", true) end
  state.ranks.began, state.ranks.waited = trainer:now(), c.dist.waited()
  consensus.prepare(state)
  state.ranks.may_leave = may_leave(trainer.callbacks)
  if trainer.is_global_zero then return end
  trainer.log_dir = trainer.log_dir -- outlives the loggers
  trainer.loggers = loggers_of_all(trainer.loggers)
  trainer.callbacks = callbacks_of_all(trainer.callbacks)
  hook_calls.resolve(state)
end

--- The last thing that all ranks do together: print pending notices, and, on rank 0, how long each
--- rank waited for the others. The slowest rank waits least.
function ranks.report_waiting(state)
  if not state.ranks.many then return end
  rank_warnings.report_together(state)
  local times = dist.all_gather(c.dist.waited() - state.ranks.waited)
  local parts, least, slowest = {}, math.huge, 0
  for i, seconds in ipairs(times) do
    parts[i] = ("rank %d %.2f s"):format(i - 1, seconds)
    if seconds < least then least, slowest = seconds, i - 1 end
  end
  state.trainer.waiting = times
  state.trainer:say(("waiting for other ranks: %s, of %.2f s; slowest: rank %d"):format(
    table.concat(parts, ", "), state.trainer:now() - state.ranks.began, slowest))
  if state.verification then
    state.verification:report(state.trainer:now() - state.ranks.began)
  end
end

-- A callback that changes what is trained must not do it on one rank alone.
local function report_rank_zero_callbacks(trainer)
  local names = {}
  for _, callback in ipairs(trainer.callbacks) do
    if callback.all_ranks == nil then names[#names + 1] = getmetatable(callback).__name end
  end
  if #names == 0 then return end
  trainer:note(("%s: on rank 0 only; all_ranks = true in a callback has it run on every rank")
    :format(table.concat(names, ", ")))
end

local function hosts_text(world)
  local seen, count = {}, 0
  for _, host in ipairs(world.hosts) do
    if not seen[host] then seen[host], count = true, count + 1 end
  end
  return count == 1 and "1 host" or ("%d hosts"):format(count)
end

-- "2 x 64", or "2 x 3 + 1 x 2" where it cannot be divided evenly.
local function division(global, world)
  local each, more = global // world, global % world
  if more == 0 then return ("%d x %d"):format(world, each) end
  return ("%d x %d + %d x %d"):format(more, each + 1, world - more, each)
end

-- Optimizer steps an epoch, here and on one rank; nil when it is not known.
local function steps_text(trainer, source)
  if not source.count then return nil end
  local function steps(count) return math.ceil(count / trainer.accumulate_grad_batches) end
  local text = ("%d steps an epoch"):format(steps(source.count))
  local alone = source.length_alone
  if not alone or source.count ~= source.length then return text end
  return ("%s (%d on 1 rank)"):format(text, steps(alone))
end

-- How many samples a step takes, and how many steps an epoch.
local function batch_text(trainer, source)
  local readers = data_ranks.size()
  local global = loaders.global_batch(source, readers)
  trainer.world.global_batch = global
  local steps = steps_text(trainer, source)
  if not global then return steps end
  local text = ("global batch %d"):format(global)
  if not source.uneven then text = text .. " = " .. division(global, readers) end
  if source.batch_before then
    text = ("%s (%d in the checkpoint)"):format(text, source.batch_before)
  end
  return steps and text .. ", " .. steps or text
end

--- Prints how the ranks of a run are made up: once, by rank 0, when there are several.
function ranks.banner(state)
  local trainer, source = state.trainer, state.data.train
  local world = trainer.world
  local batch = source and batch_text(trainer, source)
  if world.ranks == 1 then return end
  report_rank_zero_callbacks(trainer)
  local link = c.dist.link(trainer.strategy.root_device)
  local order = world.reduction_order
  if link and trainer.options.deterministic == false then order = "of " .. link end
  local parts = {
    ("%d ranks on %s over %s%s"):format(world.ranks, hosts_text(world), world.backend,
      link and " and " .. link or ""),
    ("%d thread%s each"):format(world.threads, world.threads == 1 and "" or "s"),
    "sums in the order " .. order,
  }
  parts[#parts + 1] = batch
  trainer:say(table.concat(parts, ", "))
end

return ranks
