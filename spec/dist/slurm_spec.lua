-- spec/dist/slurm_spec.lua: a real SLURM of two nodes: ranks join over it, a job is queued again
-- and resumes. The nodes are network namespaces of this machine (spec/dist/slurm/cluster.sh).
-- tags: sampled, slow, unsanitized, waits
local c = require "ltrain.c"
local child = require "spec.cli.child"
local examples = require "spec.examples.on_ranks"
local namespaces = require "spec.dist.namespaces"
local sample = require "spec.sample"

local process = c.runtime.process

local CLUSTER <const> = "spec/dist/slurm/cluster.sh"
local LIMIT <const> = 60 -- seconds of a command on the cluster

local function shell(text)
  local pipe <close> = assert(io.popen(text))
  return (pipe:read("a"):gsub("%s+$", ""))
end

local LTRAIN <const> = shell(("realpath -s '%s'"):format(os.getenv("LTRAIN") or arg[-1]))

local ROOT <const> = shell("pwd")

local EMULATED <const> = shell(("realpath '%s'"):format(os.getenv("LT_BUILD") or "build"))
  .. "/spec/cuda/backends"

-- Why there can be no cluster here, or nil.
local function missing()
  local why = namespaces.missing { "slurmctld", "slurmd", "srun" }
  if why then return why end
  if not c.io.kind("/usr/lib/x86_64-linux-gnu/slurm-wlm/mpi_pmix.so")
    and shell("find /usr/lib -name 'mpi_pmix*.so' 2>/dev/null") == "" then
    return "this SLURM has no pmix"
  end
end

local reason = missing()
local when = reason and pending or it

describe("SLURM" .. (reason and " (left out: " .. reason .. ")" or ""), function()
  local folder

  -- A command on the cluster: status and what it says on both streams.
  local function on(...)
    local status, text = process.capture({ "timeout", "-k", "1", tostring(LIMIT), CLUSTER, "in",
      folder, ... }, LIMIT + 5)
    return status, text
  end

  local function run(script, ...)
    child.write(folder .. "/script.lua", script)
    return on("srun", "-N2", "-n2", "-D", folder, ...)
  end

  setup(function()
    if reason then return end
    folder = child.folder()
    local status, text = process.capture({ "timeout", "-k", "1", "30", CLUSTER, "up", folder }, 40,
      { "PATH=" .. os.getenv("PATH") .. ":/usr/sbin:/sbin", "LIMIT=240" })
    assert(status == 0, text)
  end)

  teardown(function()
    if not folder then return end
    process.capture({ "timeout", "-k", "1", "30", CLUSTER, "down", folder }, 40)
    child.remove(folder)
  end)

  when("tasks on two nodes are one world", function()
    local status, text = run([[
      local lt = require "ltrain"
      local sum = lt.dist.all_reduce(lt.ones(5) * (lt.dist.rank() + 1)):sum():item()
      local world = lt.dist.world()
      lt.dist.rank_zero_first(function()
        io.write(("%d of %d on %s: %g, node %d of %d, local %d\n"):format(world.rank, world.ranks,
          world.hosts[world.rank + 1], sum, world.node_rank, world.nodes, world.local_rank))
      end)
    ]], "--mpi=pmix", LTRAIN, "run", "script.lua")
    assert.equal(0, status, text)
    assert.matches("0 of 2 on lta: 15, node 0 of 2, local 0\n", text, 1, true)
    assert.matches("1 of 2 on ltb: 15, node 1 of 2, local 0\n", text, 1, true)
  end)

  local function run_example(example, own)
    local words, ranks, printed, times = table.unpack(example)
    if example.after then run_example(examples[example.after], own) end
    local each = ("-n%d"):format(ranks)
    local status, text = on("srun", "-O", "-N2", each, "-D", own, "--mpi=pmix", "bash", "-c",
      ("exec '%s' %s"):format(LTRAIN, words:gsub("'%./", "'" .. ROOT .. "/")))
    assert.equal(0, status, words .. "\n" .. text)
    local _, found = text:gsub(printed, "")
    assert.equal(times, found, words .. "\n" .. text)
  end

  when("every example runs as its reader would start it", function()
    for i, example in ipairs(sample(examples, 6)) do
      local own = ("%s/example_%d"):format(folder, i)
      assert(os.execute(("mkdir -p '%s'"):format(own)))
      run_example(example, own)
    end
  end)

  local function has_gpus()
    return (select(2, on("scontrol", "show", "node", "lta")):find("Gres=gpu:4", 1, true))
  end

  -- "0=3 0=1": task 0 is on cuda:0, the machine's GPU 3; or what was said.
  local function gpus_of(...)
    local words = { "-n2", ... }
    for _, word in ipairs { "--mpi=pmix", "--export=ALL,LTRAIN_BACKENDS=" .. EMULATED, LTRAIN,
      "run", "script.lua" } do
      words[#words + 1] = word
    end
    child.write(folder .. "/script.lua", [[
      local lt = require "ltrain"
      local Net = lt.Module:extend "Net"
      function Net:init() self.w = lt.parameter(lt.ones(1)) end
      function Net:training_step(batch) return (self.w * batch[1]):sum() end
      function Net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.1}) end
      local net, data = Net(), lt.data.TensorDataset(lt.ones(8, 1))
      lt.Trainer {max_steps = 2, logger = false, enable_checkpointing = false,
        enable_progress_bar = false, enable_model_summary = false,
      }:fit(net, lt.data.DataLoader(data, {batch_size = 1}))
      local address = require "ltrain.c".runtime.bus_address(net.device)
      local bus = tonumber(address:match ":(%x+):", 16) - 0xfa
      local all = lt.dist.all_gather(("%s=%d"):format(net.device, bus))
      if lt.dist.rank() == 0 then print((table.concat(all, " "):gsub("cuda:", ""))) end
    ]])
    local _, text = on("srun", "-N1", "-D", folder, table.unpack(words))
    return text
  end

  when("tasks take the GPUs that srun has given each", function()
    if not c.io.kind(EMULATED .. "/ltrain_cuda.so") or not has_gpus() then
      return pending "no device cuda here, or no files of devices can be made"
    end
    assert.matches("0=0 1=1\n", gpus_of "--gpus-per-node=2", 1, true)
    assert.matches("0=0 0=1\n", gpus_of "--gpus-per-task=1", 1, true)
    assert.matches("0=3 0=1\n", gpus_of("--gpus-per-node=4", "--gpu-bind=map_gpu:3,1"), 1, true)
    assert.matches("0=0 0=1\n", gpus_of("--gpus=2", "--gpu-bind=mask_gpu:0x3,0x2"), 1, true)
    assert.matches("Trainer: 2 ranks were started on lta, with 1 device of cuda to compute on",
      gpus_of "--gpus-per-node=1", 1, true)
  end)

  when("tasks without PMIx are refused, and reported once", function()
    local status, text = run("print('ran')", LTRAIN, "script.lua")
    assert.equal(2, status, text)
    local _, times = text:gsub("SLURM started 2 tasks, but without PMIx", "")
    assert.equal(1, times, text)
    assert.not_matches("ran\n", text, 1, true)
  end)

  when("devices that contradict the step are refused", function()
    local status, text = run("print('ran')", "--mpi=pmix", LTRAIN, "run", "script.lua",
      "--devices", "2", "--num_nodes", "2")
    assert.equal(2, status, text)
    assert.matches("devices x num_nodes = 2 x 2 = 4, but 2 ranks were started: srun --mpi=pmix "
      .. "-n 4", text, 1, true)
  end)

  when("an error on one node ends both, and is reported once", function()
    local status, text = run([[
      local lt = require "ltrain"
      if lt.dist.rank() == 1 then error "boom" end
      while true do pcall(lt.dist.barrier) end
    ]], "--mpi=pmix", LTRAIN, "run", "script.lua")
    assert.equal(1, status, text)
    local _, times = text:gsub("rank 1: script.lua:2: boom", "")
    assert.equal(1, times, text)
  end)

  -- Waits until the file of the job's output has the text; fails after `seconds`.
  local function wait_for(path, wanted, seconds, meanwhile)
    local last = c.runtime.clock() + seconds
    while true do
      local text = c.io.kind(path) and c.io.read_file(path) or ""
      if text:find(wanted, 1, true) then return text end
      if c.runtime.clock() > last then
        local _, jobs = on("scontrol", "show", "job")
        error(("no '%s' in: %s\n%s"):format(wanted, text, jobs))
      end
      if meanwhile then meanwhile() end
      os.execute("sleep 0.1")
    end
  end

  when("SIGUSR1 requeues a job, which resumes where it was", function()
    child.write(folder .. "/model.lua", [[
      local lt = require "ltrain"
      local Net = lt.Module:extend "Net"
      function Net:init() self.layer = lt.nn.Linear(3, 1) end
      -- Until a signal ends it.
      local slow = not require "ltrain.c".runtime.getenv "SLURM_RESTART_COUNT"
      function Net:training_step(batch)
        local ends = require "ltrain.c".runtime.clock() + (slow and 0.05 or 0)
        while require "ltrain.c".runtime.clock() < ends do end
        return self.layer(batch[1]):mean()
      end
      function Net:on_train_start()
        if lt.dist.rank() == 0 then print("from step " .. self.trainer.global_step) end
      end
      function Net:configure_optimizers()
        return lt.optim.SGD(self:parameters(), {lr = 0.1})
      end
      local data = lt.data.TensorDataset(lt.ones(400, 3))
      local trainer = lt.Trainer {max_steps = 1000, enable_progress_bar = false,
        enable_model_summary = false, num_sanity_val_steps = 0, log_every_n_steps = 0}
      trainer:fit(Net(), lt.data.DataLoader(data, {batch_size = 2}))
      if lt.dist.rank() == 0 then print("to step " .. trainer.global_step) end
    ]])
    child.write(folder .. "/job.sh", ([[#!/bin/bash
#SBATCH -N2 -n2 --ntasks-per-node=1 --requeue --open-mode=append
srun --mpi=pmix '%s' run model.lua
]]):format(LTRAIN))
    local out = folder .. "/job.out"
    local status, text = on("sbatch", "--parsable", "-D", folder, "-o", out, folder .. "/job.sh")
    assert.equal(0, status, text)
    local job = text:match "%d+"
    wait_for(out, "from step 0\n", 20)
    os.execute("sleep 0.3")
    assert.equal(0, (on("scancel", "--signal=USR1", job))) -- the steps, not the script
    wait_for(out, ("SLURM: job %s is queued again, to resume from "):format(job), 20)
    -- It would wait for two minutes; but within two seconds its credentials count as revoked.
    os.execute("sleep 3")
    text = wait_for(out, "to step 1000\n", 40, function()
      on("scontrol", "update", "jobid=" .. job, "starttime=now")
    end)
    assert.not_matches("world:%d+: interrupted", text)
    assert.matches(("SLURM: job %s was restarted (SLURM_RESTART_COUNT=1): resumes from"):format(
      job), text, 1, true)
    local step = tonumber(text:match("resumes from.*from step (%d+)\n"))
    assert(step and step > 0 and step < 1000, text)
  end)
end)
