-- stdlib/data/loading/iterable_workers.lua: a pass over an iterable data set that worker processes
-- read.
--
-- Workers give a batch each, in turn; one that has no more is left out from then on. Where the data
-- set shares its samples out itself (iterable_samples.lua), the position of each share is kept.

local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local workers = require "ltrain.data.loading.workers"

local Turns = {}
Turns.__index = Turns

--- Nothing is under way any more; `keep`: the workers may serve the next pass.
function Turns:stop(keep)
  local crew = self.crew
  self.crew, self.under_way = nil, {}
  if crew then crew:leave(keep) end
end

-- Stops the workers if what it calls raises: the next batch is then read anew.
local function guarded(self, fn, ...)
  local ok, value = xpcall(fn, c.runtime.frames.raised, self, ...)
  if ok then return value end
  self:stop(false)
  error(value, 0)
end

local function start_of(self, worker)
  return { position = self.position, turn = self.turn,
    taken = self.taken and self.taken[worker + 1] or -1 }
end

local function begin(self)
  local crew = workers.join(self.plan)
  crew.passes = crew.passes + 1
  self.crew, self.asked, self.ended, self.first, self.total = crew, self.turn, {}, nil, nil
  self.jobs = {}
  for worker = 0, self.n - 1 do
    local start = start_of(self, worker)
    self.jobs[worker] = { self.plan.seed, self.plan.epoch, crew.passes, self.base, start.position,
      start.turn, start.taken }
  end
end

local function order_more(self)
  local under_way, n_ended = self.under_way, 0
  while #under_way < self.plan.loader:in_flight() and n_ended < self.n do
    local worker = self.asked
    if self.ended[worker] then
      n_ended = n_ended + 1
    else
      n_ended = 0
      if not self.crew:give(worker, self.jobs[worker], #under_way == 0) then return end
      under_way[#under_way + 1] = worker
    end
    self.asked = (worker + 1) % self.n
  end
end

-- Workers that share batches out read the same samples, or batches would be lost unnoticed.
local function check(self, answer)
  if self.own == nil then
    self.own = answer.own
    if self.own then self.taken = self.taken or self.none_taken end
    if self.taken and not self.own then
      errors.blame("DataLoader: the state was taken with a data set that calls get_worker_info, "
        .. "which this one does not: it does not say where this one is to resume")
    end
  end
  self.first = self.first or answer.first
  self.total = self.total or answer.total
  local same = answer.first == self.first and (not self.total or answer.total == self.total)
  if answer.own ~= self.own or not (self.own or same) then
    errors.blame("DataLoader: the data set returns different samples in %d workers: if each is "
      .. "to read "
      .. "its own share, it must call lt.data.get_worker_info() in iterate()", self.n)
  end
end

local function receive(self, worker)
  return self.crew:receive(worker, function(how)
    if self.plan.loader.worker_init_fn then errors.blame("DataLoader: %s", how) end
    local start = start_of(self, worker)
    start.turn = worker
    return workers.read_here(self.plan, worker, self.base, self.own or false, start)
  end)
end

--- The next batch, nil at the end.
function Turns:next_batch()
  if self.over then return nil end
  if not self.crew then begin(self) end
  guarded(self, order_more)
  while self.under_way[1] do
    local worker = table.remove(self.under_way, 1)
    local answer = guarded(self, receive, worker)
    guarded(self, check, answer)
    if answer.count then
      self.position, self.turn = self.position + answer.count, (worker + 1) % self.n
      if self.own then self.taken[worker + 1] = self.taken[worker + 1] + answer.count end
      guarded(self, order_more)
      return answer.batch
    end
    self.ended[worker] = true
    guarded(self, order_more)
  end
  self.over = true
  self:stop(true)
end

--- Where each share of the data set's own was consumed to: {taken =, turn =}; else nil.
function Turns:shares()
  if not self.own then return nil end
  return { taken = table.move(self.taken, 1, self.n, 1, {}), turn = self.turn }
end

--- The turns of a pass. `base`: samples that the data set's own state is past already; `shares`:
--- those of the state that is resumed, or nil.
return function(plan, base, shares)
  local n, none_taken = plan.loader.num_workers, {}
  for k = 1, n do none_taken[k] = 0 end
  return setmetatable({ plan = plan, n = n, base = base, position = plan.position,
    turn = shares and shares.turn or 0, taken = shares and table.move(shares.taken, 1, n, 1, {}),
    none_taken = none_taken, under_way = {} }, Turns)
end
