-- spec/cuda/joined_spec.lua: which of four GPUs ranks take that mpirun has started, where each sees
-- all of them, one of its own, or some (as by srun --gpus-per-task and --gpu-bind).
-- tags: half, slow, waits
local child = require "spec.cli.child"
local counts = require "spec.cuda.counts"
local mpirun = require "ltrain.clusters.mpirun"

local why <const> = not counts and "only where there are four GPUs" or mpirun.missing()

local function test(name, fn)
  if why then pending(name .. " (" .. why .. ")") else it(name, fn) end
end

-- Prints the device of each rank, and which of the machine's GPUs that is.
local SCRIPT <const> = [[
local lt = require "ltrain"
local Net = lt.Module:extend "Net"
function Net:init() self.w = lt.parameter(lt.ones(1)) end
function Net:training_step(batch) return (self.w * batch[1]):sum() end
function Net:configure_optimizers() return lt.optim.SGD(self:parameters(), { lr = 0.1 }) end
local net = Net()
lt.Trainer { OPTIONS max_steps = 2, logger = false, enable_checkpointing = false,
  enable_progress_bar = false, enable_model_summary = false,
}:fit(net, lt.data.DataLoader(lt.data.TensorDataset(lt.ones(8, 1)), { batch_size = 1 }))
local bus = tonumber(require "ltrain.c".runtime.bus_address(net.device):match ":(%x+):", 16) - 0xfa
local all = lt.dist.all_gather(("%s=%d"):format(net.device, bus))
if lt.dist.rank() == 0 then print((table.concat(all, " "):gsub("cuda:", ""))) end
]]

-- Runs n ranks, each with the settings that the shell makes of its number `$k`; returns "0=3 0=1":
-- rank 0 is on cuda:0, the machine's GPU 3, or what was said on standard error.
local function run(n, settings, options)
  local folder = child.folder()
  child.write(folder .. "/script.lua", (SCRIPT:gsub("OPTIONS", options or "")))
  child.write(folder .. "/rank.sh", ([[
    k=$OMPI_COMM_WORLD_LOCAL_RANK
    %s exec ltrain run script.lua
  ]]):format(settings))
  local status, out, err = child.shell(("cd '%s' && OMPI_ALLOW_RUN_AS_ROOT=1 "
    .. "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun -q --oversubscribe -n %d sh rank.sh"):format(folder,
    n))
  child.remove(folder)
  return status == 0 and out or err
end

describe("ranks of mpirun", function()
  test("take the GPU with the number of their local rank where they see all", function()
    assert.equal("0=0 1=1\n", run(2, ""))
    assert.equal("1=2 0=0\n", run(2, "CUDA_VISIBLE_DEVICES=0,2", "devices = {1, 0},"))
  end)

  test("take the one that each sees, whatever its number is", function()
    assert.equal("0=0 0=1 0=2 0=3\n", run(4, "CUDA_VISIBLE_DEVICES=$k"))
    assert.equal("0=0 0=1\n", run(2, "FAKERT_HIDDEN=$k CUDA_VISIBLE_DEVICES=0"))
    assert.equal("0=3 0=2\n", run(2, "CUDA_VISIBLE_DEVICES=$((3 - k))"))
  end)

  test("may say how many they are where each sees one", function()
    assert.equal("0=0 0=1\n", run(2, "CUDA_VISIBLE_DEVICES=$k", "devices = 2,"))
    assert.matches("devices = 3 x num_nodes = 1 is 3 ranks, but the launcher started 2",
      run(2, "CUDA_VISIBLE_DEVICES=$k", "devices = 3,"), 1, true)
  end)

  test("share out the GPUs that several of them see", function()
    assert.equal("0=0 0=2 1=1 1=3\n",
      run(4, "CUDA_VISIBLE_DEVICES=$((k % 2 * 2)),$((k % 2 * 2 + 1))"))
    -- The second sees only what the first would take, which has another.
    assert.equal("1=1 0=0\n", run(2, "CUDA_VISIBLE_DEVICES=$([ $k = 0 ] && echo 0,1 || echo 0)"))
  end)

  test("are told, once, where there are more of them than GPUs", function()
    local said <const> = "Trainer: %d ranks were started on %%S+, with %s to compute on: start one "
      .. "rank for each\n"
    for _, case in ipairs {
      { 4, "CUDA_VISIBLE_DEVICES=0,1", "2 devices of cuda" },
      { 2, "CUDA_VISIBLE_DEVICES=2", "1 device of cuda" },
      { 3, "CUDA_VISIBLE_DEVICES=$((k / 2))", "2 devices of cuda" },
      { 2, "CUDA_VISIBLE_DEVICES=0", "1 device of cuda", "devices = 2," },
    } do
      local text = run(case[1], case[2], case[4])
      local _, times = text:gsub(said:format(case[1], case[3]), "")
      assert.equal(1, times, text)
    end
  end)

  test("are told where one of them sees no GPU", function()
    assert.matches("Trainer: all ranks compute on one kind of device: rank 0 on %S+: cuda, rank 1 "
      .. "on %S+: cpu\n", run(2, "CUDA_VISIBLE_DEVICES=$([ $k = 0 ] && echo 0)"))
  end)
end)
