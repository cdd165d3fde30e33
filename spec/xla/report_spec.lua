-- spec/xla/report_spec.lua: what was compiled and why, what ended the graphs, what ran elsewhere.
-- tags: slow, unsanitized
local child = require "spec.cli.child"
local lt = require "ltrain"
local plugin = require "spec.xla.plugin"

local SCRIPT <const> = [[
local lt = require "ltrain"
local weight = lt.ones(3, 2):to "xla"
weight.requires_grad = true
local optimizer = lt.optim.SGD({ weight }, { lr = 0.1 })
local function step(n)
  local x = lt.ones(n, 3):to "xla"
  local loss = x:matmul(weight):tanh():sum()
  local value = loss:item() -- line 8
  loss:backward()
  optimizer:step()
  return value
end
for n = 2, 5 do step(n) end
step(5)
print(lt.xla.report())
print "--"
local r = lt.xla.report()
for _, p in ipairs(r.programs) do print(p.operations, p.runs, p.line, p.reason) end
for _, cut in ipairs(r.cuts) do print(cut.reason, cut.line, cut.count) end
]]

describe("lt.xla", function()
  local test <const> = plugin.it

  -- What a script prints, and its warnings.
  local function run(text)
    local status, out, err
    child.with_files({ ["script.lua"] = text }, function(folder)
      status, out, err = child.run({ "run", "script.lua" }, { dir = folder })
    end)
    assert.equal(0, status, err)
    return out, err
  end

  test("says what is there", function()
    assert.is_true(lt.xla.is_available())
    assert.is_true(lt.xla.device_count() >= 1)
    assert.equal("cpu", lt.xla.get_device_name())
    assert.equal("cpu", lt.xla.report().platform)
    local free, total = lt.xla.mem_get_info()
    assert.is_true(free <= total)
    local before = lt.xla.memory_allocated()
    local x = lt.zeros(1000):to "xla"
    assert.equal(before + 4000, lt.xla.memory_allocated())
    assert.equal(1000, x:numel())
    assert.has_error(function() return lt.xla.device_cout end,
      "xla: there is no 'device_cout'; did you mean 'device_count'?")
  end)

  test("reports programs, cuts and who makes it compile again, and warns with the line", function()
    local out, err = run(SCRIPT)
    local report, rows = out:match "^(.-)\n%-%-\n(.*)$"
    assert.matches("^xla: cpu ", report)
    assert.matches("programs: 8, of which", report)
    assert.matches("5  a value is read at script.lua:8", report)
    local row = "\n3\t%d\tscript.lua:7\tmatmul at script.lua:7: [%d, 3], before [%d, 3]\n"
    assert.matches(row:format(1, 3, 2), rows, 1, true)
    assert.matches(row:format(2, 5, 4), rows, 1, true)
    assert.matches("\nread\tscript.lua:8\t5\n", rows)
    assert.matches("\nbatch\t\t5\n", rows)
    assert.matches("warning: xla: script.lua:8 reads a value in each step: ", err, 1, true)
    assert.matches("warning: xla: shapes change from step to step, and each new one is compiled: "
      .. "matmul at script.lua:7: [5, 3], before [4, 3]: pad", err, 1, true)
    assert.equal(2, select(2, err:gsub("warning", "")))
  end)

  test("counts operations that ran on the CPU", function()
    local out, err = run [[
      local lt = require "ltrain"
      local x = lt.ones(2, 2):to "xla"
      for _ = 1, 3 do lt.linalg.svd(x) end
      print(lt.xla.report().fallbacks.linalg_svd)
    ]]
    assert.equal("3\n", out)
    assert.equal(1, select(2, err:gsub("linalg_svd: xla has no kernel", "")))
  end)

  test("does not warn of a script that reads after its steps", function()
    local _, err = run [[
      local lt = require "ltrain"
      local weight = lt.ones(3):to "xla"
      weight.requires_grad = true
      local optimizer = lt.optim.SGD({ weight }, { lr = 0.1 })
      for _ = 1, 6 do
        local loss = weight:square():sum()
        loss:backward()
        optimizer:step()
        loss:item()
      end
    ]]
    assert.equal("", err)
  end)

  test("reports that no device was used", function()
    assert.equal("xla: not used\n", (run "print(require 'ltrain'.xla.report())"))
  end)

  test("reports at the end of a Trainer's loop: one graph a step, no compilation later", function()
    local out, err = run [[
      local lt = require "ltrain"
      local net = lt.nn.Linear(4, 1)
      function net:training_step(x)
        local loss = self(x):square():mean()
        self:log("loss", loss, { on_step = true, on_epoch = true })
        return loss
      end
      function net:configure_optimizers() return lt.optim.Adam(self:parameters(), { lr = 0.1 }) end
      local seen
      function net:on_train_batch_end(_, _, index)
        local r = lt.xla.report()
        r.cut = 0
        for _, cut in ipairs(r.cuts) do r.cut = r.cut + cut.count end
        if index == 10 then seen = r end
        if index ~= 29 then return end
        print(#r.programs - #seen.programs, r.runs - seen.runs, r.cut - seen.cut)
      end
      local batches = {}
      for i = 1, 30 do batches[i] = lt.ones(8, 4) end
      lt.Trainer { max_epochs = 1, accelerator = "xla", profiler = "xla", logger = false,
        gradient_clip_val = 1, log_every_n_steps = 10, enable_checkpointing = false,
        enable_progress_bar = false, enable_model_summary = false }:fit(net, batches)
    ]]
    local programs, runs, cuts = out:match "^(%d+)\t(%d+)\t(%d+)\n"
    assert.same({ "0", "19", "19" }, { programs, runs, cuts }, out)
    assert.matches("profile of fit: .*\nxla: cpu .*\nprograms: %d.*graphs ended by:\n", err)
    assert.not_matches("warning: xla", err, 1, true)
  end)
end)
