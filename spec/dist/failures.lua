-- spec/dist/failures.lua: the ways in which a job fails, for spec/dist/*_spec.lua (few of each) and
-- ./dev bench failure, ./dev bench kills (how long each takes, many times).
--
-- A row: name; ranks; script; ready, the file that says that the job is where it shall fail; event,
-- what makes it fail `delay` seconds later (nil: the script does it by itself, and makes the file
-- `event`); text, what stderr has once; status; seconds, the bound from the event to the end of the
-- last process.
local job = require "spec.dist.job"

local failures = {}

local TIMEOUT <const> = 3

-- mpirun's own way home after its ranks are gone, and before: it kills what is left after this.
local MPIRUN_SECONDS <const> = 2

local function wake_script(body, coroutine)
  if coroutine then body = ("coroutine.wrap(function() %s end)()"):format(body) end
  return ([[
lt.dist.launch(2, function(rank)
  local x = lt.ones(4)
  lt.dist.all_reduce(x)
  if rank == 1 then
    while not exists "there" do end
    busy(0.1)
    mark "event"
    error "the error of rank 1"
  end
  %s
end)
]]):format(body)
end

local BODIES <const> = {
  { "waits in a collective", "mark 'there' lt.dist.all_gather(x)" },
  { "loops for ever", "mark 'there' while true do end" },
  { "catches every error", "mark 'there' while true do pcall(lt.dist.all_gather, x) end" },
  { "computes in C for 10 s", "mark 'there' busy(10)", 3 },
}

--- Rank 1 raises while rank 0 is busy otherwise.
failures.wake = {}
for _, row in ipairs(BODIES) do
  for _, coroutine in ipairs { false, true } do
    table.insert(failures.wake, {
      name = ("rank 1 raises, rank 0 %s%s"):format(row[1], coroutine and " in a coroutine" or ""),
      ranks = 2, script = wake_script(row[2], coroutine), ready = "event",
      text = "the error of rank 1", status = 1, seconds = row[3] or 1,
    })
  end
end

table.insert(failures.wake, {
  name = "rank 0 raises, rank 1 computes in C for 10 s", ranks = 2, ready = "event", script = [[
lt.dist.launch(2, function(rank)
  if rank == 1 then mark "there" busy(10) end
  while not exists "there" do end
  mark "event"
  error "the error of rank 0"
end)
]], text = "the error of rank 0", status = 1, seconds = 3,
})

--- Rank 1 raises while rank 0 writes a checkpoint, which must be whole.
failures.saving = {
  name = "rank 1 raises, rank 0 writes a checkpoint", ranks = 2, ready = "event",
  text = "the error of rank 1", status = 1, seconds = 30,
  script = [[
local Net = lt.Module:extend("Net")
function Net:init() self.weight = lt.parameter(lt.zeros(2e7)) end
function Net:training_step(batch)
  if lt.dist.rank() == 1 then
    while not exists "there" do end
    busy(0.1)
    mark "event"
    error "the error of rank 1"
  end
  self.trainer:save_checkpoint "a.ckpt"
  lt.dist.barrier()
  return batch[1]:sum()
end
function Net:on_save_checkpoint() mark "there" end
function Net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.1}) end
local trainer = lt.Trainer {
  devices = lt.dist.world_size() == 1 and 2 or "auto", logger = false, max_steps = 2,
  enable_checkpointing = false, enable_progress_bar = false, enable_model_summary = false,
}
trainer:fit(Net(), {{lt.ones(1)}, {lt.ones(1)}})
]],
}

-- All ranks reduce for ever; each says which process it is.
local function work(ranks)
  return ([[
lt.dist.launch(%d, function(rank)
  pid(rank)
  local x = lt.ones(1000)
  for k = 1, math.huge do
    lt.dist.all_reduce(x)
    if k == 10 and rank == 0 then mark "ready" end
  end
end)
]]):format(ranks)
end

local function ended(name, ranks, who, text, status, over)
  return {
    name = "SIGKILL of " .. name, ranks = ranks, script = work(ranks), ready = "ready",
    text = text, status = status, seconds = 3, over = over,
    event = function(one) return job.signal("KILL", who(one)) end,
  }
end

local function rank_of(rank)
  return function(one) return one:pid(rank) end
end

-- Rank 1 waits for what `waits` starts.
local function waiting(name, waits)
  return {
    name = ("SIGKILL of a rank that waits for %s"):format(name), ranks = 2, script = ([[
lt.dist.launch(2, function(rank)
  pid(rank)
  lt.dist.barrier()
  if rank == 0 then
    while not exists "started" do end
    mark "ready"
  else
    %s
  end
  lt.dist.barrier()
end)
]]):format(waits), ready = "ready", text = "ltrain: rank 1", status = 137, seconds = 3,
    over = "shm", event = function(one) return job.signal("KILL", one:pid(1)) end,
  }
end

--- Processes are killed.
failures.kills = {
  waiting("a program", [[mark "started" io.popen("sleep 100"):close()]]),
  waiting("a pipe of programs", [[os.execute "(sleep 100; echo) | (>started; cat); echo"]]),
  {
    name = "SIGKILL of rank 0, another is stopped", ranks = 3, script = work(3), ready = "ready",
    text = "ltrain: rank 0", status = 137, seconds = 3, over = "shm",
    event = function(one)
      return job.signal("STOP", one:pid(2)) and job.signal("KILL", one:pid(0))
    end,
  },
  ended("a middle rank of 3", 3, rank_of(1), "ltrain: rank 1", 137),
  ended("rank 0 of 3", 3, rank_of(0), "ltrain: rank 0", 137),
  ended("mpirun", 2, function(one) return one:find("^mpirun ")[1] end, nil, nil, "mpi"),
}

-- Rank 1 waits for rank 0, which computes, or catches every error.
local function busy_work(body)
  return ([[
lt.dist.launch(2, function(rank)
  pid(rank)
  local x = lt.ones(4)
  lt.dist.all_reduce(x)
  if rank == 0 then mark "ready" %s end
  lt.dist.all_reduce(x)
end)
]]):format(body)
end

local function ended_by(signal, name, who, status, script)
  return {
    name = ("SIG%s to %s"):format(signal, name), ranks = 2, script = script or work(2),
    ready = "ready", text = "ltrain: interrupted: rank ", status = status, seconds = 2,
    event = function(one) return job.signal(signal, who(one)) end,
  }
end

-- Whatever started the ranks: Ctrl-C goes to it.
local function starter(one)
  return one.over == "mpi" and one:find("^mpirun ")[1] or one:pid(0)
end

--- A script without a Trainer is ended.
failures.interrupts = {
  ended_by("TERM", "rank 1", rank_of(1), 143),
  ended_by("TERM", "rank 0", rank_of(0), 143),
  ended_by("INT", "what started the ranks", starter, 130),
  ended_by("INT", "rank 1", rank_of(1), 130),
  ended_by("TERM", "rank 1, which waits for one that loops", rank_of(1), 143,
    busy_work "while true do end"),
  ended_by("TERM", "rank 0, which catches every error", rank_of(0), 143,
    busy_work "while true do pcall(busy, 0.01) end"),
}

-- A fit whose step 6 has begun on all ranks; each step takes a while on rank 0. `data`: what it
-- reads, which says when it is ready.
local function fit(wait, data)
  return ([[
local Net = lt.Module:extend("Net")
function Net:init() self.layer = lt.nn.Linear(3, 1) end
function Net:training_step(batch)
  local step, rank = self.trainer.global_step, lt.dist.rank()
  if step == 3 then pid(rank) end
  if step == %d and rank == 0 then mark "ready" end
  if step >= 6 and rank == 0 then %s end
  return self.layer(batch[1]):mean()
end
function Net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.1}) end
lt.Trainer({
  devices = lt.dist.world_size() == 1 and 2 or "auto", max_epochs = -1,
  enable_progress_bar = false, enable_model_summary = false,
}):fit(Net(), %s)
]]):format(data and -1 or 6, wait, data
    or "lt.data.DataLoader(lt.data.TensorDataset(lt.ones(40, 3)), {batch_size = 2})")
end

-- A worker of one rank stops itself in step 15.
local STOPS <const> = [[(function()
  local Set = lt.data.Dataset:extend "Set"
  function Set:__len() return 400 end
  function Set:get(i)
    if i == 60 then mark "ready" os.execute "kill -STOP $PPID" end
    return {lt.ones(3)}
  end
  return lt.data.DataLoader(Set(), {batch_size = 2, num_workers = 1})
end)()]]

local function interrupted_fit(signal, name, status, send, wait, data)
  return {
    name = ("SIG%s to %s"):format(signal, name), ranks = 2, ready = "ready", status = status,
    seconds = 2, event = send, script = fit(wait, data),
    text = "ltrain: interrupted: saved ltrain_logs/version_0/checkpoints/interrupted.ckpt\n",
  }
end

-- The processes of the job, as a launcher that signals one of them and then their group.
local function all_twice(signal)
  return function(one)
    job.signal(signal, one:pid(0))
    for rank = 0, 1 do job.signal(signal, one:pid(rank)) end
    return true
  end
end

--- Ranks of a Trainer end where they agree to, when rank 0 has saved.
failures.interrupted_fits = {
  interrupted_fit("TERM", "rank 1 of a fit", 143, function(one)
    return job.signal("TERM", one:pid(1))
  end, "busy(0.01)"),
  interrupted_fit("INT", "rank 1 of a fit with steps of 0.5 s", 130, function(one)
    return job.signal("INT", one:pid(1))
  end, "busy(0.5)"),
  interrupted_fit("INT", "all ranks of a fit, twice to rank 0", 130, all_twice "INT", "busy(0.5)"),
  interrupted_fit("TERM", "all ranks of a fit that waits for a program, twice to rank 0", 143,
    all_twice "TERM", "os.execute 'sleep 0.5'"),
  interrupted_fit("INT", "all ranks of a fit that waits for a program, twice to rank 0", 130,
    all_twice "INT", "os.execute 'sleep 0.5'"),
  interrupted_fit("INT", "all ranks of a fit that waits for a stopped worker", 130,
    all_twice "INT", "busy(0.01)", STOPS),
}

--- The shell that leads the terminal is killed: SIGHUP ends the job.
failures.hangup = {
  name = "SIGKILL of the shell that leads the terminal", ranks = 2, script = work(2),
  ready = "ready", seconds = 3, terminal = true,
  event = function(one) return job.signal("KILL", one:pid "shell") end,
}

--- One rank is stopped: lost after the timeout.
failures.stop = {
  name = "SIGSTOP of a rank", ranks = 3, script = work(3), ready = "ready",
  text = "is lost: no heartbeat for", seconds = TIMEOUT + 2,
  event = function(one) return job.signal("STOP", one:pid(1)) end,
}

--- Rank 0, whose process of a forked job is the others' parent, is stopped: they end it.
failures.stop_first = {
  name = "SIGSTOP of rank 0", ranks = 3, script = work(3), ready = "ready",
  text = "ltrain: rank 0 is lost", status = 137, seconds = TIMEOUT + 2,
  event = function(one) return job.signal("STOP", one:pid(0)) end,
}

--- All ranks are stopped for twice the timeout, and then continue.
failures.suspend = {
  name = "SIGSTOP of all ranks for twice the timeout", ranks = 2,
  script = [[
lt.dist.launch(2, function(rank)
  pid(rank)
  local x, k = lt.ones(1000), 0
  repeat
    k = k + 1
    lt.dist.all_reduce(x)
    if k == 10 and rank == 0 then mark "ready" end
  until lt.dist.broadcast(exists "enough")
end)
mark "done"
]],
}

--- Starts a row's job over a backend.
function failures.start(row, over)
  return job.start(row.script, {
    ranks = row.ranks, over = over, env = ("LT_TIMEOUT=%d"):format(TIMEOUT),
    terminal = row.terminal, limit = 90,
  })
end

--- Runs a row over a backend until it has failed. Returns {seconds = from the event to the end of
--- its last process (nil: some are left after 10 times the bound), reported =, status =, err =,
--- files =}, or nil and why not; calls look(job) before all is removed.
function failures.run(row, over, look)
  local one <close> = failures.start(row, over)
  if not one:wait_for(row.ready, 30) then
    return nil, ("%s: it never came there: %s"):format(row.name, one:read "err" or "")
  end
  if row.delay then job.sleep(row.delay) end
  local since = job.now()
  if row.event and not row.event(one) then return nil, row.name .. ": nobody to signal" end
  local bound = row.seconds + (over == "mpi" and MPIRUN_SECONDS or 0)
  local result = { seconds = one:wait_gone(10 * bound, since), bound = bound }
  result.reported = row.text and one:count(row.text)
  result.status, result.err = one:status(), one:read "err"
  result.files = one:files "^ltrain_failure_"
  if look then look(one, result) end
  return result
end

--- How long ranks are to be silent before they are lost.
failures.timeout = TIMEOUT

return failures
