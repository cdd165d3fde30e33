-- spec/callbacks/checkpoint_files_spec.lua: the files of several ModelCheckpoints, and many saves.
local c = require "ltrain.c"
local child = require "spec.cli.child"
local lt = require "ltrain"
local tiny = require "spec.trainer.tiny"

local root
before_each(function() root = tiny.folder() end)
after_each(function() os.execute("rm -rf '" .. root .. "'") end)

local function files(folder)
  return c.io.list_folder(folder or root) or {}
end

-- A fit that logs scores[epoch] as "score", with a ModelCheckpoint for each table of options.
local function fit(scores, lists, fit_options)
  local net, saving = tiny.Line(), {}
  function net:on_train_epoch_end() self:log("score", scores[self.current_epoch + 1]) end
  for i, options in ipairs(lists) do
    options.dirpath = options.dirpath or root
    saving[i] = lt.callbacks.ModelCheckpoint(options)
  end
  tiny.trainer({ enable_checkpointing = true, callbacks = saving, max_epochs = #scores }):fit(net,
    tiny.same(1), fit_options)
  return table.unpack(saving)
end

-- The weight's steps: each epoch has one, so a file's global_step says which epoch wrote it.
local function step_of(path)
  return tostring(assert(c.io.json_decode(select(2, assert(
    c.io.load_safetensors(path))).ltrain)).global_step)
end

describe("two ModelCheckpoints in one folder", function()
  it("keep the best of each, whatever the order of the scores", function()
    for _, scores in ipairs { { 1, 2, 3 }, { 3, 2, 1 }, { 2, 3, 1 }, { 2, 1, 3 }, { 2, 2, 2 } } do
      local low, high = fit(scores, { { monitor = "score", mode = "min" },
        { monitor = "score", mode = "max" } })
      local best, worst = 1, 1
      for i, score in ipairs(scores) do
        if score < scores[best] then best = i end
        if score > scores[worst] then worst = i end
      end
      assert.equal(tostring(best), step_of(low.best_model_path))
      assert.equal(tostring(worst), step_of(high.best_model_path))
      assert.equal(2, #files())
      os.execute("rm -rf '" .. root .. "'")
    end
  end)

  it("get -v1 for a name that the other has", function()
    local low, high = fit({ 1 }, { { monitor = "score", mode = "min", save_last = true },
      { monitor = "score", mode = "max", save_last = true } })
    assert.same({ "epoch=0-step=1-v1.ckpt", "epoch=0-step=1.ckpt", "last-v1.ckpt", "last.ckpt" },
      files())
    assert.equal(root .. "/epoch=0-step=1.ckpt", low.best_model_path)
    assert.equal(root .. "/epoch=0-step=1-v1.ckpt", high.best_model_path)
    assert.equal(root .. "/last-v1.ckpt", high.last_model_path)
  end)

  it("share a name without the version counter: the file lives while one holds it", function()
    local shared = { enable_version_counter = false }
    local function options(more)
      for name, value in pairs(shared) do more[name] = value end
      return more
    end
    local low, high = fit({ 2, 3, 1 }, { options { monitor = "score", mode = "min" },
      options { monitor = "score", mode = "max" } })
    assert.same({ "epoch=1-step=2.ckpt", "epoch=2-step=3.ckpt" }, files())
    assert.equal("3", step_of(low.best_model_path))
    assert.equal("2", step_of(high.best_model_path))
  end)

  it("write the whole state into a file that one of them wants of weights alone", function()
    fit({ 1 }, { { enable_version_counter = false, save_weights_only = true },
      { enable_version_counter = false, monitor = "score" } })
    local _, metadata = assert(c.io.load_safetensors(root .. "/epoch=0-step=1.ckpt"))
    assert.is_table(c.io.json_decode(metadata.ltrain).optimizer_states)
  end)
end)

describe("save_last = 'link'", function()
  it("makes last.ckpt a link to the file that was saved last, which resumes", function()
    local saving = fit({ 3, 1, 2 }, { { monitor = "score", save_last = "link" } })
    assert.same({ "epoch=1-step=2.ckpt", "last.ckpt" }, files()) -- the third was not among the best
    assert.equal(root .. "/last.ckpt", saving.last_model_path)
    local pipe <close> = assert(io.popen("readlink '" .. root .. "/last.ckpt'"))
    assert.equal("epoch=1-step=2.ckpt", pipe:read())
    fit({ 3, 1, 2, 0.5 }, { { monitor = "score", save_last = "link" } },
      { ckpt_path = root .. "/last.ckpt" })
    -- The file that the run was resumed from stays.
    assert.same({ "epoch=1-step=2.ckpt", "epoch=3-step=4.ckpt", "last.ckpt" }, files())
    assert.equal("4", step_of(root .. "/last.ckpt"))
  end)

  it("takes the place of a file, and a file that of the link", function()
    fit({ 1 }, { { save_last = true } })
    fit({ 1, 2 }, { { save_last = "link" } }, { ckpt_path = root .. "/last.ckpt" })
    assert.is_true(c.io.same(root .. "/epoch=1-step=2.ckpt", root .. "/last.ckpt"))
    fit({ 1, 2, 3 }, { { save_last = true } }, { ckpt_path = root .. "/last.ckpt" })
    assert.is_false(c.io.same(root .. "/epoch=2-step=3.ckpt", root .. "/last.ckpt"))
    assert.equal("3", step_of(root .. "/last.ckpt"))
    assert.equal("2", step_of(root .. "/epoch=1-step=2.ckpt"))
  end)

  it("is a file where no other is saved", function()
    fit({ 1, 2 }, { { save_top_k = 0, save_last = "link" } })
    assert.same({ "last.ckpt" }, files())
    assert.equal("2", step_of(root .. "/last.ckpt"))
  end)

  it("must be 'link', true or false", function()
    assert.matches("save_last must be false, true or 'link': got 'links'",
      tiny.error_of(lt.callbacks.ModelCheckpoint, { save_last = "links" }))
  end)
end)

describe("the same monitor in two folders", function()
  it("has a state for each, which a resumed run finds", function()
    local lists = function()
      return { { monitor = "score", dirpath = root .. "/a" },
        { monitor = "score", dirpath = root .. "/b", save_last = true } }
    end
    fit({ 2, 1 }, lists())
    local a, b = fit({ 2, 1, 3 }, lists(), { ckpt_path = root .. "/b/last.ckpt" })
    assert.equal(root .. "/a/epoch=1-step=2.ckpt", a.best_model_path)
    assert.equal(root .. "/b/epoch=1-step=2.ckpt", b.best_model_path)
    assert.equal(1, a.best_model_score)
    assert.same({ "epoch=1-step=2.ckpt" }, files(root .. "/a"))
  end)

  it("in one folder, under two names, too", function()
    local a, b = fit({ 2, 1 }, { { monitor = "score", filename = "best" },
      { monitor = "score", filename = "{epoch}", save_top_k = -1 } })
    assert.equal(root .. "/best.ckpt", a.best_model_path)
    assert.equal(root .. "/epoch=1.ckpt", b.best_model_path)
  end)

  it("knows its best file when it resumes in another folder", function()
    fit({ 1 }, { { monitor = "score", dirpath = root .. "/a" } })
    local path = root .. "/a/epoch=0-step=1.ckpt"
    local later = fit({ 1 }, { { monitor = "score", dirpath = root .. "/b" } },
      { ckpt_path = path })
    assert.equal(path, later.best_model_path)
  end)
end)

describe("a save that fails", function()
  -- The third save does; returns the callback and the run's entry.
  local function fail(options, scores)
    local io, saves = lt.CheckpointIO(), 0
    local write = io.save
    function io:save(...)
      saves = saves + 1
      if saves == 3 then return nil, "the disk is full" end
      return write(self, ...)
    end
    options.dirpath = root .. "/saved"
    local saving, net = lt.callbacks.ModelCheckpoint(options), tiny.Line()
    function net:on_train_epoch_end() self:log("score", scores[self.current_epoch + 1]) end
    local trainer = tiny.trainer { enable_checkpointing = true, callbacks = { saving },
      logger = true, default_root_dir = root, max_epochs = 5,
      strategy = lt.strategies.DDP { checkpoint_io = io } }
    assert.is_false((pcall(trainer.fit, trainer, net, tiny.same(1))))
    return saving, assert(lt.runs.read(root .. "/ltrain_logs/version_0")).info
  end

  for name, row in pairs {
    ["the newest"] = { {}, 1 },
    ["the best one"] = { { monitor = "score" }, 1 },
    ["the best two"] = { { monitor = "score", save_top_k = 2 }, 1 },
    ["all"] = { { monitor = "score", save_top_k = -1 }, 1 },
  } do
    it("leaves the callback and run.json with files that are there: " .. name, function()
      row[1].filename = "{epoch}"
      local saving, info = fail(row[1], { 3, 2, 1, 0, 0 })
      local best = ("%s/saved/epoch=%d.ckpt"):format(root, row[2])
      assert.same({ best, best }, { saving.best_model_path, info.best_checkpoint })
      assert.equal("file", c.io.kind(best))
      for path in pairs(saving.best_k_models) do assert.equal("file", c.io.kind(path)) end
    end)
  end

  it("names the former last.ckpt", function()
    local saving, info = fail({ save_last = true, filename = "{epoch}" }, { 1, 1, 1, 1, 1 })
    assert.same({ root .. "/saved/epoch=0.ckpt", root .. "/saved/last.ckpt" },
      { saving.best_model_path, info.last_checkpoint })
  end)
end)

describe("a run that is resumed", function()
  -- What a process leaves that is killed while it writes; `pid` is its number.
  local function leave(folder, pid)
    local host, bytes = c.runtime.hostname(), {}
    for i = 1, #host do bytes[i] = host:byte(i) end
    assert(c.io.make_folder(folder))
    for _, name in ipairs { (".last.ckpt.%08x-%d-0.saving"):format(
      c.io.crc32(lt.tensor(bytes, { dtype = "u8" })), pid), ".epoch=0.ckpt.lock" } do
      child.write(folder .. "/" .. name, "x")
    end
  end

  it("removes what killed runs were writing, in sibling versions too", function()
    local pipe <close> = assert(io.popen "sh -c 'echo $$'")
    local dead, logs = pipe:read "n", root .. "/ltrain_logs"
    fit({ 1 }, { { dirpath = logs .. "/version_0/checkpoints", save_last = true } })
    for version = 0, 3 do leave(("%s/version_%d/checkpoints"):format(logs, version), dead) end
    leave(logs .. "/version_1", dead)
    leave(logs .. "/version_2/checkpoints", c.runtime.pid())
    fit({ 1, 2 }, { { dirpath = root .. "/new" } },
      { ckpt_path = logs .. "/version_0/checkpoints/last.ckpt" })
    assert.same({ "epoch=0-step=1.ckpt", "last.ckpt" }, files(logs .. "/version_0/checkpoints"))
    assert.same({}, files(logs .. "/version_1/checkpoints"))
    assert.same({ "checkpoints" }, files(logs .. "/version_1"))
    assert.equal(1, #files(logs .. "/version_2/checkpoints")) -- its process is alive
    assert.same({}, files(logs .. "/version_3/checkpoints"))
  end)
end)

describe("save_top_k = -1", function()
  it("writes files that do not grow with those before them", function()
    local scores = {}
    for i = 1, 60 do scores[i] = (i * 37) % 61 end -- all different
    local saving = fit(scores, { { monitor = "score", save_top_k = -1,
      filename = "{epoch:02d}" } })
    local names, sizes = files(), {}
    assert.equal(60, #names)
    for i, name in ipairs(names) do sizes[i] = #c.io.read_file(root .. "/" .. name) end
    assert.is_true(sizes[60] - sizes[5] < 64, ("%d, then %d"):format(sizes[5], sizes[60]))
    assert.equal(1, saving.best_model_score)
    assert.equal(60, saving.kth_value)
    local known = 0
    for _ in pairs(saving.best_k_models) do known = known + 1 end
    assert.equal(60, known)
  end)

  it("knows the best of all after a resume", function()
    local all = { monitor = "score", save_top_k = -1, filename = "{epoch}" }
    fit({ 3, 1, 2 }, { all })
    local saving = fit({ 3, 1, 2, 2.5 }, { all }, { ckpt_path = root .. "/epoch=2.ckpt" })
    assert.equal(root .. "/epoch=1.ckpt", saving.best_model_path)
    assert.equal(3, saving.kth_value)
    assert.same({ "epoch=0.ckpt", "epoch=1.ckpt", "epoch=2.ckpt", "epoch=3.ckpt" }, files())
  end)
end)

-- A run of four epochs that keeps three files, and prints the place of each and what is in it.
local ONE_OF_SIX <const> = [[
local lt = require "ltrain"
local Net = lt.Module:extend("Net")
function Net:init() self.run = lt.parameter(lt.tensor{arg[1] + 0.0}) end
function Net:training_step(x)
  local loss = (self.run * x):sum()
  self:log("score", self.current_epoch)
  return loss
end
function Net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0}) end
local saving = lt.callbacks.ModelCheckpoint{dirpath = "ckpt", monitor = "score", mode = "max",
  save_top_k = 2, save_last = true}
lt.Trainer{max_epochs = 4, logger = false, enable_progress_bar = false,
  enable_model_summary = false, callbacks = {saving}}:fit(Net(), {lt.ones(1)})
local function show(path) print(path, lt.load(path)["model.run"]:item()) end
for path in pairs(saving.best_k_models) do show(path) end
show(saving.last_model_path)
]]

describe("six runs at once in one folder", function()
  it("write a file each, under names with versions", function()
    local folder <const> = child.folder()
    child.write(folder .. "/one.lua", ONE_OF_SIX)
    local status, out, err = child.shell([[
for run in 1 2 3 4 5 6; do ltrain one.lua $run >out$run & done
wait
for run in 1 2 3 4 5 6; do sed "s/$/ $run/" out$run; done]], { dir = folder })
    local names = files(folder .. "/ckpt")
    child.remove(folder)
    assert.equal(0, status, err)
    local seen = 0
    for path, own, run in out:gmatch "(%S+)%s+([%d.]+) ([%d.]+)\n" do
      assert.equal(tonumber(run), tonumber(own), path)
      seen = seen + 1
    end
    assert.equal(18, seen, out)
    assert.equal(18, #names, table.concat(names, " "))
  end)
end)
