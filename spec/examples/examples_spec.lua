-- spec/examples/examples_spec.lua: every example runs, with few batches, in a folder of its own.
-- tags: slow, third, unsanitized
local ltrain <const> = os.getenv("LTRAIN") or "ltrain"
local root <const> = os.getenv("LT_ROOT") or "."
local FEW <const> = "--max_epochs 1 --limit_train_batches 2 --limit_val_batches 2 "
  .. "--limit_test_batches 2 --num_sanity_val_steps 1 --log_every_n_steps 1"

local function folder()
  local name = os.tmpname()
  os.remove(name)
  assert(os.execute("mkdir -p '" .. name .. "'"))
  return name
end

-- Runs a command line in `dir`; returns its exit code and all that it printed.
local function run(dir, command)
  local pipe = assert(io.popen(("cd '%s' && %s 2>&1; echo \"exit $?\""):format(dir, command)))
  local text = pipe:read("a")
  pipe:close()
  return tonumber(text:match("exit (%d+)%s*$")), text
end

local function example(name) return ("'%s/examples/%s'"):format(root, name) end

local function must(dir, command)
  local code, text = run(dir, command)
  assert.equal(0, code, text)
  return text
end

describe("the examples", function()
  it("are on one screen each, and say how to run them", function()
    for name in io.popen("ls '" .. root .. "/examples'/*.lua"):lines() do
      local lines, text = 0, nil
      for line in io.lines(name) do
        lines = lines + 1
        text = (text or "") .. line .. "\n"
      end
      assert.is_true(lines <= 100, name)
      assert.matches("^%-%- examples/[%w_]+%.lua: .-\n%-%-\n%-%-   ltrain ", text, 1, false, name)
    end
  end)

  it("mlp.lua trains", function()
    assert.matches("val_acc", must(folder(), ltrain .. " run " .. example("mlp.lua") .. " " .. FEW))
  end)

  it("tabular.lua trains, and writes a prediction for each row that it validates", function()
    local dir = folder()
    must(dir, ltrain .. " run " .. example("tabular.lua") .. " " .. FEW)
    local rows = 0
    for line in io.lines(dir .. "/predictions.csv") do
      if rows > 0 then assert.matches("^%a+,%a+,[%d.]+,%-?[%d.]+$", line) end
      rows = rows + 1
    end
    assert.is_true(rows > 300 and rows < 500, rows)
  end)

  it("images.lua draws files, and trains on them", function()
    local text = must(folder(), ltrain .. " run " .. example("images.lua") .. " " .. FEW)
    assert.matches("750 images of circle, square, triangle", text, 1, true)
    assert.matches("val_acc=", text, 1, true)
  end)

  it("digits.lua trains, tests, saves; predict.lua reads what it saved", function()
    local dir = folder()
    local text = must(dir, ltrain .. " run " .. example("digits.lua") .. " " .. FEW)
    assert.matches("test_acc%s+[%d.]+", text)
    local file = "ltrain_logs/version_0/checkpoints/last.ckpt"
    local drawn = must(dir, ("%s %s %s 2"):format(ltrain, example("predict.lua"), file))
    local _, answers = drawn:gsub("answer %d %([%d.]+ %% sure%), label %d", "")
    assert.equal(2, answers)
    local csv = assert(io.open(dir .. "/ltrain_logs/version_0/metrics.csv")):read("a")
    for _, key in ipairs{"train_loss", "val_loss", "val_acc", "test_acc"} do
      assert.matches(key, csv)
    end
  end)

  it("digits.lua reads MNIST's files where they are, and names what is missing", function()
    local words = {ltrain, "run", example("digits.lua"), FEW, "-- --data ."}
    local code, text = run(folder(), table.concat(words, " "))
    assert.equal(1, code)
    assert.matches("t10k%-images", text)
  end)

  it("char_gpt.lua trains and prints a sample", function()
    local text = must(folder(), ltrain .. " run " .. example("char_gpt.lua") .. " " .. FEW)
    assert.matches("\nt[%a%s.]+\n", text)
  end)

  it("sweep.lua trains, and is swept", function()
    local dir = folder()
    assert.matches("val_acc", must(dir, ("%s run %s --width 16 %s"):format(ltrain,
      example("sweep.lua"), FEW)))
    local text = must(dir, ("%s sweep %s --lr 1e-3..1e-1 --width 16,32 --trials 2 --jobs 2 "
      .. "--max_epochs 1 --metric val_acc"):format(ltrain, example("sweep.lua")))
    assert.matches("trial 2 of 2: lr=[%d.e-]+ width=%d+: finished: val_acc = ", text)
    assert.matches("\nbest: trial %d: val_acc = ", text)
  end)

  it("fine_tune.lua trains a model of lt.models", function()
    assert.matches("accuracy %d+%.%d %%", must(folder(), ltrain .. " run "
      .. example("fine_tune.lua") .. " " .. FEW))
  end)

  it("text_classification.lua trains, and says what it thinks of a text", function()
    local text = must(folder(), ltrain .. " run " .. example("text_classification.lua") .. " "
      .. FEW .. " -- 'the cast was flat'")
    assert.matches("val_acc", text)
    assert.matches("\n%s*%d+ %% good: the cast was flat\n", text)
  end)

  it("generate.lua trains on a file of tokens and continues with a text", function()
    local text = must(folder(), ltrain .. " run " .. example("generate.lua") .. " " .. FEW)
    assert.matches("val_loss", text)
    assert.matches("\nfrom the mill", text)
  end)

  it("ring.lua passes a token through four processes", function()
    local text = must(folder(), "timeout -k 1 20 " .. ltrain .. " " .. example("ring.lua"))
    assert.matches("token: rank 0, rank 1, rank 2, rank 3, back after 4 steps", text)
    assert.matches("length 146086.735, largest element 4000, on 4 processes", text)
    assert.matches("afterwards: rank 0 of 1", text)
  end)

  it("ddp.lua trains the same on one rank and on two", function()
    local line = "ranks %d, global batch 64, val_acc ([%d.]+)"
    local values = {}
    for ranks = 1, 2 do
      local text = must(folder(), ("timeout -k 1 60 %s run %s %s --devices %d"):format(ltrain,
        example("ddp.lua"), FEW, ranks))
      values[ranks] = text:match((line:gsub("%%d", ranks, 1)))
      assert(values[ranks], text)
    end
    assert.equal(values[1], values[2])
  end)

  it("elastic.lua goes on when a rank has been killed", function()
    local missing = require "spec.elastic.launchers".missing()
    if missing then return pending(missing) end
    local text = must(folder(), ("timeout -k 1 90 %s launch --nproc_per_node 2 %s --max_epochs 1 "
      .. "--limit_train_batches 8 --limit_val_batches 2 --crash 4"):format(ltrain,
      example("elastic.lua")))
    assert.matches("start 0: from step 0\n", text, 1, true)
    assert.matches("start 1 %(rank 1 on host %S+ failed: was ended by SIGKILL%): from step %d\n",
      text)
    assert.matches("val_acc 0.%d+\n", text)
  end)

  it("pipeline.lua trains the same on one rank and on two", function()
    local values = {}
    for ranks = 1, 2 do
      local text = must(folder(), ("timeout -k 1 60 %s run %s %s --devices %d"):format(ltrain,
        example("pipeline.lua"), FEW, ranks))
      values[ranks] = text:match(("ranks %d, val_acc ([%%d.]+)"):format(ranks))
      assert(values[ranks], text)
    end
    assert.equal(values[1], values[2])
  end)

  it("context_parallel.lua trains the same on one rank and on two", function()
    local values = {}
    for ranks = 1, 2 do
      local text = must(folder(), ("timeout -k 1 60 %s run %s %s -- %d"):format(ltrain,
        example("context_parallel.lua"), FEW, ranks))
      values[ranks] = text:match(("positions %d of 64, loss ([%%d.]+)"):format(64 // ranks))
      assert(values[ranks], text)
    end
    assert.equal(values[1], values[2])
  end)

  it("mixture_of_experts.lua trains the same on one rank and on two", function()
    local values = {}
    for ranks = 1, 2 do
      local text = must(folder(), ("timeout -k 1 60 %s run %s %s -- %d"):format(ltrain,
        example("mixture_of_experts.lua"), FEW, ranks))
      values[ranks] = text:match(("%d of 8 experts, val_acc ([%%d.]+)"):format(8 // ranks))
      assert(values[ranks], text)
    end
    assert.equal(values[1], values[2])
  end)

  it("horovod.lua trains", function()
    local text = must(folder(), ("%s %s 20"):format(ltrain, example("horovod.lua")))
    assert.matches("ranks 1, steps 20, accuracy 0.%d+", text)
  end)

  it("ddp_manual.lua trains the same on one rank and on two", function()
    local values = {}
    for ranks = 1, 2 do
      local text = must(folder(), ("timeout -k 1 60 %s %s %d 2"):format(ltrain,
        example("ddp_manual.lua"), ranks))
      values[ranks] = text:match(("step 2: loss [%%d.]+\nranks %d, steps 2, (accuracy [%%d.]+)\n")
        :format(ranks))
      assert(values[ranks], text)
    end
    assert.equal(values[1], values[2])
  end)

  it("sharded_checkpoint.lua saves a folder that resumes, and that converts to a file", function()
    local dir = folder()
    local text = must(dir, ("timeout -k 1 60 %s run %s --limit_train_batches 3 --devices 2"):format(
      ltrain, example("sharded_checkpoint.lua")))
    assert.matches("saved by 2 ranks at step 3; resumed to step 6\n", text)
    text = must(dir, ltrain .. " inspect saved/half.ckpt")
    assert.matches("checkpoint in parts of 2 ranks", text)
    must(dir, ltrain .. " convert saved/half.ckpt half.safetensors")
    assert.matches("epoch 0, step 3", must(dir, ltrain .. " inspect half.safetensors"))
  end)

  it("tensor_parallel.lua has the loss of one rank on two", function()
    local losses = {}
    for ranks = 1, 2 do
      local text = must(folder(), ("timeout -k 1 60 %s run %s --devices %d --max_epochs 1"):format(
        ltrain, example("tensor_parallel.lua"), ranks))
      losses[ranks] = text:match "(loss [%d.]+); %d+ parameters of 103168 on a rank\n"
      assert(losses[ranks], text)
    end
    assert.equal(losses[1], losses[2])
  end)

  it("manual_loop.lua brings its loss down", function()
    local text = must(folder(), ltrain .. " " .. example("manual_loop.lua") .. " 200")
    assert.is_true(tonumber(text:match("step 200: loss ([%d.]+)")) < 0.05)
  end)
end)
