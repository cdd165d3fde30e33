-- stdlib/data/loading/workers.lua: processes that read samples and make batches of them.
--
-- Workers are forked when a pass begins, so that they have the data set as it is then, closures and
-- all. Step k of a pass goes to worker k % n: what a worker is asked for depends on nothing that
-- happens. Their answers are taken in the order of the steps.

local c = require "ltrain.c"
local console = require "ltrain.core.console"
local errors = require "ltrain.core.errors"
local fetch = require "ltrain.data.loading.fetch"
local interrupt = require "ltrain.core.interrupt"
local iterable_samples = require "ltrain.data.loading.iterable_samples"
local traceback = require "ltrain.core.traceback"

local data = c.runtime.data

local workers = {}

-- Slots beyond the batches that are under way: one for the batch that is in use, one for a batch
-- that waits for the collector.
local SPARE <const> = 2

-- Between looks at what else may end the wait.
local WAIT_SECONDS <const> = 0.1

-- What this process is, if it is a worker; of an iterable data set also its part of the pass:
-- {id =, n =, own =, counts =, asked =, fixed =}.
local info, share

--- In a worker {id =, num_workers =, seed =, dataset =}, id from 0; elsewhere nil. An iterable data
--- set that calls it (while it `counts`) shares its samples out itself (`own`), from the first one
--- on: later that is `fixed`. `asked` is called where it matters at once.
function workers.info()
  if share and share.counts and not share.own then
    if share.fixed then
      errors.blame("get_worker_info: an iterable data set must call it before its first sample, "
        .. "in iterate() for example: workers have shared out its batches already")
    end
    share.own = true
    if share.asked then share.asked() end
  end
  return info
end

-- In a worker.

-- The frames of the script in the trace of an error, down to where the worker began.
local function own_frames(text)
  local frames = {}
  for line in text:gmatch "[^\n]+" do
    if line:find "ltrain%.data%.loading%.workers" then break end
    if line:find "^\t" and not traceback.is_ours(line) then frames[#frames + 1] = line end
  end
  return frames
end

local function describe(message, trace)
  local text = type(message) == "string" and message or errors.show(message)
  local lines = { text, ("in worker %d of %d"):format(info.id, info.num_workers) }
  local frames = own_frames(trace or "")
  if #frames > 0 then lines[2] = lines[2] .. ", stack traceback:" end
  return table.concat(table.move(frames, 1, #frames, 3, lines), "\n")
end

-- Of samples by position: what gives the batch of a job.
local function by_position(loader, collate, protect, is_over)
  local read = fetch.batches(loader.dataset, collate, protect, is_over)
  return function(job)
    local seed, epoch, first = table.unpack(job, 1, 3)
    return read(seed, epoch, table.move(job, 4, #job, 1, {}), first)
  end
end

-- Of samples that come one after the other: jobs of a new pass begin to read anew.
local function in_sequence(crew, own, is_over)
  local pass, answer, closing, last
  local function finish(value)
    local _ <close> = closing
    answer, closing, last = nil, nil, value
  end
  return function(job)
    local seed, epoch, number, base, position, turn, taken = table.unpack(job)
    if number ~= pass then
      finish()
      pass, share = number, { id = info.id, n = crew.n, own = own }
      local plan = { loader = crew.loader, collate = crew.collate, seed = seed, epoch = epoch,
        shard = crew.shard, batching = crew.batching }
      answer, closing = iterable_samples.answers(plan, base, share,
        { position = position, turn = turn, taken = taken }, is_over)
    end
    local value = last or answer()
    if not last and value and value.total then finish(value) end
    return value
  end
end

-- The life of a worker: it answers what it is asked until it is asked no more.
local function serve(crew, pool, problem)
  local loader, trace = crew.loader, nil
  local function note(message)
    trace = trace or data.traceback(2)
    return message
  end
  local function protect(fn, ...) return xpcall(fn, note, ...) end
  local function begin()
    if problem then error(problem, 0) end
    local _ <close> = data.sample_scope():enter(info.seed, 0, fetch.place_of_worker(info.id))
    share = { counts = true }
    if loader.worker_init_fn then loader.worker_init_fn(info.id) end
    share.counts = false
  end
  local fit, fault = protect(begin)
  local function is_over() return pool:is_over() end
  local answer = crew.batching and in_sequence(crew, share and share.own or false, is_over)
    or by_position(loader, crew.collate, protect, is_over)
  for slot, job in pool.receive, pool do
    local ok, value = fit, fault
    if fit then
      trace = nil
      ok, value = protect(answer, job)
      if ok and value ~= nil then ok, value = protect(pool.answer, pool, slot, value, false) end
    end
    if not ok then pool:answer(slot, describe(value, trace), true) end
  end
end

-- In the process that has the loader.

local Crew = {}
Crew.__index = Crew

local function new_crew(plan)
  local loader, n = plan.loader, plan.loader.num_workers
  local crew = setmetatable({ n = n, turn = 0, loader = loader, dataset = loader.dataset,
    collate = plan.collate, shard = plan.shard, passes = 0,
    batching = loader._iterable and plan.batching or nil }, Crew)
  crew.pool = data.workers(n, loader:in_flight() + SPARE, function(pool, id, problem)
    info = { id = id, num_workers = n, seed = plan.seed, dataset = loader.dataset }
    console.set_bar(nil)
    serve(crew, pool, problem)
  end)
  return crew
end

-- Whether workers of an iterable data set make the batches that the plan asks for.
local function cut_alike(crew, plan)
  local before, now, none = crew.shard, plan.shard, {}
  before, now = before or none, now or none
  return crew.batching.batch_size == plan.batching.batch_size
    and crew.batching.drop_last == plan.batching.drop_last
    and before.rank == now.rank and before.world == now.world
end

--- The workers of a pass: those that persist since the one before, or new ones.
function workers.join(plan)
  local loader = plan.loader
  local crew = loader._crew
  loader._crew = nil
  local same = crew and crew.pool:is_open() and not plan.state_loaded
    and crew.dataset == loader.dataset and crew.collate == plan.collate
    and crew.n == loader.num_workers and (not crew.batching or cut_alike(crew, plan))
  if crew and not same then crew.pool:close() end
  return same and crew or new_crew(plan)
end

--- They are not needed any more by the pass; `keep`: they may serve the next one.
function Crew:leave(keep)
  if not (keep and self.loader.persistent_workers and self.pool:is_open()) then
    self.pool:close()
    return
  end
  self.pool:forget()
  if self.loader._crew then self.loader._crew.pool:close() end
  self.loader._crew = self
end

-- While worker `id` is waited for. An interrupt is acted on behind this batch: one that somebody
-- has stopped is continued for that.
function Crew:wait_for(id)
  if interrupt.pending() then self.pool:continue(id) end
  interrupt.at_wait()
end

--- Gives worker `id` a job; false when there is no slot for it now. `must`: waits for one, which
--- batches have that nobody wants.
function Crew:give(id, job, must)
  while not self.pool:order(id, job) do
    if not must then return false end
    local kind, how = self.pool:take(id, WAIT_SECONDS)
    if kind == "ended" and interrupt.pending() then break end -- `take` sees it, too
    if kind == "ended" then errors.blame("DataLoader: %s", how) end
    self:wait_for(id)
  end
  return true
end

--- Asks the next worker for the batch of a step; false when there is no slot for it now.
function Crew:order(seed, epoch, step, must)
  step.worker, step.seed, step.epoch = self.turn, seed, epoch
  local job = table.move(step.positions, 1, #step.positions, 4, { seed, epoch, step.first })
  if not self:give(self.turn, job, must) then return false end
  self.turn = (self.turn + 1) % self.n
  return true
end

--- The oldest answer of worker `id` that is not taken; what read_here(how) gives if it has ended.
function Crew:receive(id, read_here)
  while true do
    local kind, value = self.pool:take(id, WAIT_SECONDS)
    if kind == "batch" then return value end
    if kind == "failed" then error(value, 0) end
    if kind == "ended" then
      -- A signal that this process has got too is left to its loop.
      if not interrupt.pending() then errors.blame("DataLoader: %s", value) end
      return read_here(value)
    end
    self:wait_for(id)
  end
end

--- The batch of a step that was ordered, the oldest of its worker's.
function Crew:take(step)
  return self:receive(step.worker, function()
    local read = fetch.batches(self.dataset, self.collate, pcall)
    return read(step.seed, step.epoch, step.positions, step.first)
  end)
end

--- What worker `id` would answer, read in this process.
function workers.read_here(plan, id, base, own, start)
  local n = plan.loader.num_workers
  info = { id = id, num_workers = n, seed = plan.seed, dataset = plan.loader.dataset }
  share = { id = id, n = n, own = own }
  local ok, value = pcall(function()
    local answer <const>, _ <close> = iterable_samples.answers(plan, base, share, start,
      function() return false end)
    return answer()
  end)
  info, share = nil, nil
  if not ok then error(value, 0) end
  return value
end

return workers
