-- spec/trainer/resume_spec.lua: the examples, cut in mid-epoch and resumed in another process.
-- tags: half, slow
local c = require "ltrain.c"
local tiny = require "spec.trainer.tiny"

local LTRAIN <const> = os.getenv("LTRAIN") or arg[-1]

-- Runs an example in `folder`; returns its exit status.
local function run(folder, example, flags)
  local _, _, status = os.execute(("cd '%s' && '%s' run '%s' --threads 1 %s >>out 2>&1"):format(
    folder, LTRAIN, example, flags))
  return status
end

-- Path of the example as the child, in another folder, finds it.
local function path_of(name)
  local pipe <close> = assert(io.popen("pwd"))
  return pipe:read "l" .. "/examples/" .. name
end

local function exact(tensor)
  return c.io.crc32(tensor)
end

-- The rows of a run's metrics.csv, as text.
local function rows(folder)
  local list = {}
  for line in assert(c.io.read_file(folder .. "/metrics.csv")):gmatch "[^\n]+" do
    list[#list + 1] = line
  end
  return list
end

-- Runs whole, then cut after `cut` steps and resumed under another seed.
local function check(example, flags, cut)
  local folder = tiny.folder()
  assert(c.io.make_folder(folder .. "/a"))
  assert(c.io.make_folder(folder .. "/b"))
  local file = path_of(example)
  assert.equal(0, run(folder .. "/a", file, flags .. " --seed 5"))
  assert.equal(0, run(folder .. "/b", file, ("%s --seed 5 --max_steps %d"):format(flags, cut)))
  assert.equal(0, run(folder .. "/b", file, flags .. " --seed 6 --ckpt_path last"))
  local function result(where)
    return where .. "/checkpoints/last.ckpt", where
  end
  local whole, whole_dir = result(folder .. "/a/ltrain_logs/version_0")
  local gone_on, later_dir = result(folder .. "/b/ltrain_logs/version_1")
  local want, got = assert(c.io.load_safetensors(whole)), assert(c.io.load_safetensors(gone_on))
  local names = 0
  for name, tensor in pairs(want) do
    assert(got[name], name)
    assert.equal(exact(tensor), exact(got[name]), name)
    names = names + 1
  end
  assert.is_true(names > 10)
  local all, later = rows(whole_dir), rows(later_dir)
  assert.is_true(#later > 1 and #later < #all)
  for i = 2, #later do assert.equal(all[#all - #later + i], later[i]) end
  os.execute("rm -rf '" .. folder .. "'")
end

describe("an example that is cut and resumed has the same weights and rows", function()
  it("digits.lua, with dropout, batch norm, shuffling and a schedule", function()
    check("digits.lua", "--max_epochs 2 --limit_train_batches 4 --limit_val_batches 1 "
      .. "--log_every_n_steps 1 --num_sanity_val_steps 0", 2)
  end)

  it("char_gpt.lua", function()
    check("char_gpt.lua", "--max_epochs 1 --limit_train_batches 3 --limit_val_batches 1 "
      .. "--log_every_n_steps 1", 2)
  end)
end)
