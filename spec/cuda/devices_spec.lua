-- spec/cuda/devices_spec.lua: which of four GPUs the ranks of a fit train on, for each form of
-- `devices` (spec/trainer/devices_spec.lua: of eight), and with CUDA_VISIBLE_DEVICES.
-- tags: slow
local child = require "spec.cli.child"
local counts = require "spec.cuda.counts"

local SCRIPT <const> = [[
local lt = require "ltrain"
local Net = lt.Module:extend "Net"
function Net:init() self.w = lt.parameter(lt.ones(1)) end
function Net:training_step(batch) return (self.w * batch[1]):sum() end
function Net:configure_optimizers() return lt.optim.SGD(self:parameters(), { lr = 0.1 }) end
local net = Net()
lt.Trainer { accelerator = ACCELERATOR, devices = DEVICES, max_steps = 1, logger = false,
  enable_checkpointing = false, enable_progress_bar = false, enable_model_summary = false,
}:fit(net, lt.data.DataLoader(lt.data.TensorDataset(lt.ones(8, 1)), { batch_size = 1 }))
local all = lt.dist.all_gather(net.device .. " " .. lt.zeros(1, { device = "cuda" }).device)
if lt.dist.rank() == 0 then print(table.concat(all, ", ")) end
]]

-- "0 1" of the GPUs that the ranks were on, which were "cuda" there, too; else what was said.
local function run(devices, settings, accelerator)
  local folder = child.folder()
  child.write(folder .. "/script.lua", (SCRIPT:gsub("DEVICES", devices)
    :gsub("ACCELERATOR", ("%q"):format(accelerator or "gpu"))))
  local status, out, err = child.shell(("cd '%s' && %s ltrain script.lua"):format(folder,
    settings or ""))
  child.remove(folder)
  if status ~= 0 then return err:match "^[^\n]*" end
  return (out:gsub("cuda:(%d) cuda:(%d)[,\n]", function(a, b) return a == b and a or a .. "/" .. b
  end))
end

local CASES <const> = {
  { "2", "0 1" }, { "'2'", "0 1" }, { "'1, 3'", "1 3" }, { "'2,'", "2" }, { "{1, 3}", "1 3" },
  { "{0}", "0" }, { "{3, 0}", "3 0" }, { "-1", "0 1 2 3" }, { "'-1'", "0 1 2 3" },
  { "'auto'", "0 1 2 3" }, { "nil", "0 1 2 3" }, { "1", "0" },
}

local WRONG <const> = {
  { "0", "devices = 0: cuda: write how many" }, { "'0'", "devices = '0': cuda: write how many" },
  { "-2", "cuda: write how many" }, { "{}", "cuda: the list is empty" },
  { "''", "cuda: write how many" }, { "{-1}", "distinct numbers from 0 to 3" },
  { "{'0'}", "distinct numbers from 0 to 3" }, { "{0, 0}", "distinct numbers from 0 to 3" },
  { "5", "cuda: there are 4" }, { "{4}", "device 4 does not exist: there are 0 to 3" },
  { "true", "devices must be an integer, a string or a table: got true" },
  { "0.1", "devices must be an integer, a string or a table: got 0.1" },
}

describe("Trainer{accelerator = 'gpu', devices}", function()
  local title <const> = "takes the GPUs that are meant: "
  if not counts then return pending(title .. "each form (only where there are four)") end

  for _, case in ipairs(CASES) do
    it(title .. case[1], function() assert.equal(case[2], run(case[1])) end)
  end

  it("says what is wrong with other forms", function()
    for _, case in ipairs(WRONG) do assert.matches(case[2], run(case[1]), 1, true) end
  end)

  it("counts from 0 what CUDA_VISIBLE_DEVICES leaves, by each name of GPUs", function()
    for _, name in ipairs { "gpu", "cuda", "auto" } do
      assert.equal("0 1", run("'auto'", "CUDA_VISIBLE_DEVICES=3,1", name))
    end
    assert.equal("1", run("{1}", "CUDA_VISIBLE_DEVICES=GPU-12,GPU-10"))
    assert.matches("device 2 does not exist: there are 0 to 1",
      run("{2}", "CUDA_VISIBLE_DEVICES=2,3"), 1, true)
    assert.matches("CUDA_VISIBLE_DEVICES=-1 hides all GPUs",
      run("1", "CUDA_VISIBLE_DEVICES=-1"), 1, true)
  end)
end)
