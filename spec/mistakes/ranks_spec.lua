-- spec/mistakes/ranks_spec.lua: what two processes do differently, and what is said of it.
--
-- A row is what is wrong, what each rank does (line 1 of the script; `rank`, `dist`, `lt`), and the
-- first line of the error; rank N: the first that fails of both.
-- tags: slow
local child = require "spec.cli.child"
local support = require "spec.dist.support"

local ROWS <const> = {
  { "a collective on rank 0 alone", "if rank == 0 then dist.all_reduce(lt.ones(2)) end",
    "ranks disagree at collective 1: rank 0: all_reduce sum [2] f32 at script.lua:1; rank 1: left "
    .. "lt.dist.launch at script.lua:1" },
  { "shapes that differ", "dist.all_reduce(lt.ones(2 + rank))",
    "ranks disagree at collective 1: rank 0: all_reduce sum [2] f32 at script.lua:1; rank 1: "
    .. "all_reduce sum [3] f32 at script.lua:1" },
  { "dtypes that differ", 'dist.all_reduce(lt.ones(2):to(rank == 0 and "f32" or "f64"))',
    "ranks disagree at collective 1: rank 0: all_reduce sum [2] f32 at script.lua:1; rank 1: "
    .. "all_reduce sum [2] f64 at script.lua:1" },
  { "different collectives", [[
if rank == 0 then dist.all_reduce(lt.ones(2))
else dist.broadcast(lt.ones(2)) end]],
    "ranks disagree at collective 1: rank 0: all_reduce sum [2] f32 at script.lua:1; rank 1: "
    .. "broadcast [2] f32 from 0 at script.lua:2" },
  { "a root that differs", "dist.broadcast(lt.ones(2), {from = rank})",
    "ranks disagree at collective 1: rank 0: broadcast [2] f32 from 0 at script.lua:1; rank 1: "
    .. "broadcast [2] f32 from 1 at script.lua:1" },
  { "an error on one rank", [[
if rank == 1 then
  local x = lt.ones(2) + lt.ones(3)
end
dist.barrier()]],
    "rank 1: script.lua:2: add: shapes do not broadcast: [2] and [3]" },
  { "os.exit on one rank", [[
if rank == 1 then os.exit(3) end
dist.barrier()]],
    "rank 1: script.lua:1: os.exit(3) was called in a rank" },
  { "a list of too few values", "dist.scatter({lt.ones(2)})",
    "rank N: script.lua:1: scatter: needs a tensor, or a list of one value for each of 2 ranks: "
    .. "got a list of 1" },
  { "an operation of another name", 'dist.all_reduce(lt.ones(2), {op = "average"})',
    "rank N: script.lua:1: all_reduce: op must be 'sum', 'mean', 'min', 'max' or 'prod': got "
    .. "'average'" },
  { "a message to itself", "dist.recv(rank)",
    "rank N: script.lua:1: recv: from must be another rank: this is rank N" },
}

-- A fit on two ranks, whose training_step is the row's.
local FIT <const> = [[
local lt = require "ltrain"
lt.seed(0)
local Net = lt.Module:extend("Net")
function Net:init() self.fc = lt.nn.Linear(4, 2) end
function Net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.1}) end
function Net:training_step(batch)
%s
  return loss
end
local data = lt.data.TensorDataset(lt.randn(8, 4), lt.randint(0, 2, {8}))
return {model = Net(), data = {train = lt.data.DataLoader(data, {%s})},
  trainer = {max_epochs = 1, devices = 2, logger = false, enable_checkpointing = false,
    enable_progress_bar = false, enable_model_summary = false}}]]

local STEP <const> = "local loss = lt.cross_entropy(self.fc(batch[1]), batch[2])\n"

-- What is wrong, the step (from line 7), the options of the loader, a pattern of the error.
local FITS <const> = {
  { "a collective of rank 0 in training_step",
    STEP .. "if lt.dist.rank() == 0 then lt.dist.all_reduce(loss) end",
    "batch_size = 4",
    "^ranks disagree at collective %d+: rank 0: all_reduce sum %[%] f32 at model%.lua:8 "
    .. "%(training_step%); rank 1: all_reduce sum %[10%] f32 at model%.lua:6 %(gradients%)$" },
  { "an error of one rank in training_step",
    "if lt.dist.rank() == 1 then batch = nil end\n" .. STEP,
    "batch_size = 4", "^rank 1: model%.lua:8: attempt to index a nil value %(local 'batch'%)$" },
  { "a batch of fewer samples than ranks", STEP, "global_batch_size = 1",
    "^rank [01]: model%.lua:14: DataLoader: global_batch_size = 1 is less than a sample for each "
    .. "of 2 ranks$" },
}

describe("a mistake on ranks:", function()
  for _, row in ipairs(ROWS) do
    local what, body, expected = table.unpack(row)
    it(what, function()
      local text = support.fails(("dist.launch(2, function(rank) %s\nend)"):format(body))
      local line = text:match "ltrain: ([^\n]*)"
      if expected:find "^rank N" then line = line:gsub("%f[%w]rank [01]", "rank N") end
      assert.equal(expected, line)
    end)
  end

  for _, row in ipairs(FITS) do
    local what, step, options, expected = table.unpack(row)
    it(what, function()
      local folder <const> = child.folder()
      child.write(folder .. "/model.lua", FIT:format(step, options))
      local status, _, err = child.run({ "run", "model.lua" }, { dir = folder })
      child.remove(folder)
      assert.equal(1, status, err)
      local last
      for line in err:gmatch "ltrain: ([^\n]*)" do last = line end
      assert.matches(expected, last)
    end)
  end
end)
