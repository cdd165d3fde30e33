-- stdlib/data/loading/workers.lua: processes that read samples and make batches of them.
--
-- Workers are forked when a pass begins, so that they have the data set as it is then, closures and
-- all. Step k of a pass goes to worker k % n: what a worker is asked for depends on nothing that
-- happens. Their answers are taken in the order of the steps.

local c = require "ltrain.c"
local console = require "ltrain.core.console"
local errors = require "ltrain.core.errors"
local interrupt = require "ltrain.core.interrupt"
local reading = require "ltrain.data.loading.reading"
local traceback = require "ltrain.core.traceback"

local data = c.runtime.data

local workers = {}

-- Slots beyond the batches that are under way: one for the batch that is in use, one for a batch
-- that waits for the collector.
local SPARE <const> = 2

-- Between looks at what else may end the wait.
local WAIT_SECONDS <const> = 0.1

-- What this process is, if it is a worker.
local info

--- In a worker {id =, num_workers =, seed =, dataset =}, id from 0; elsewhere nil.
function workers.info() return info end

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

-- The life of a worker: it answers what it is asked until it is asked no more.
local function serve(loader, collate, pool, problem)
  local trace
  local function note(message)
    trace = trace or data.traceback(2)
    return message
  end
  local function protect(fn, ...) return xpcall(fn, note, ...) end
  local function begin()
    if problem then error(problem, 0) end
    local _ <close> = data.sample_scope():enter(info.seed, 0, reading.place_of_worker(info.id))
    if loader.worker_init_fn then loader.worker_init_fn(info.id) end
  end
  local fit, fault = protect(begin)
  local read = reading.batches(loader.dataset, collate, protect, function()
    return pool:is_over()
  end)
  for slot, job in pool.receive, pool do
    local ok, value = fit, fault
    if fit then
      trace = nil
      local seed, epoch, first = table.unpack(job, 1, 3)
      ok, value = protect(read, seed, epoch, table.move(job, 4, #job, 1, {}), first)
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
    collate = plan.collate }, Crew)
  crew.pool = data.workers(n, loader:in_flight() + SPARE, function(pool, id, problem)
    info = { id = id, num_workers = n, seed = plan.seed, dataset = loader.dataset }
    console.hold(nil)
    serve(loader, crew.collate, pool, problem)
  end)
  return crew
end

--- The workers of a pass: those that persist since the one before, or new ones.
function workers.join(plan)
  local loader = plan.loader
  local crew = loader._crew
  loader._crew = nil
  local same = crew and crew.pool:is_open() and crew.dataset == loader.dataset
    and crew.collate == plan.collate and crew.n == loader.num_workers
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

-- One of them has ended. A signal that this process has got too is left to its loop.
local function ended(self, how, step)
  if interrupt.pending() then
    local read = reading.batches(self.dataset, self.collate, pcall)
    return read(step.seed, step.epoch, step.positions, step.first)
  end
  errors.blame("DataLoader: %s", how)
end

--- Asks the next worker for the batch of a step; false when there is no room for it now. `must`:
--- waits for room, which batches have that nobody wants.
function Crew:order(seed, epoch, step, must)
  step.worker, step.seed, step.epoch = self.turn, seed, epoch
  local job = table.move(step.positions, 1, #step.positions, 4, { seed, epoch, step.first })
  while not self.pool:order(self.turn, job) do
    if not must then return false end
    local kind, how = self.pool:take(self.turn, WAIT_SECONDS)
    if kind == "ended" then errors.blame("DataLoader: %s", how) end
    interrupt.at_wait()
  end
  self.turn = (self.turn + 1) % self.n
  return true
end

--- The batch of a step that was ordered, the oldest of its worker's.
function Crew:take(step)
  while true do
    local kind, value = self.pool:take(step.worker, WAIT_SECONDS)
    if kind == "batch" then return value end
    if kind == "failed" then error(value, 0) end
    if kind == "ended" then return ended(self, value, step) end
    interrupt.at_wait()
  end
end

return workers
