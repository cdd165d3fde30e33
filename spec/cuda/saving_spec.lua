-- spec/cuda/saving_spec.lua: checkpoints of a device, which a helper thread writes while the fit
-- continues: they hold what the step had that asked for them.
-- tags: slow, threads
local both = require "spec.cuda.both"
local counts = require "spec.cuda.counts"
local lt = require "ltrain"
local tiny = require "spec.trainer.tiny"

local nn = lt.nn

local Net <const> = lt.Module:extend "SavedNet"

function Net:init()
  self.layers = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm2d(8), nn.Flatten(), nn.Linear(8, 3))
  self.tied = self.layers[4].weight
end

function Net:training_step(batch)
  local hidden = self.layers[1](batch[1]):reshape { -1, 8, 1, 1 }
  local out = self.layers[4](self.layers[2](hidden):flatten(2))
  local loss = nn.functional.cross_entropy(out, batch[2])
  self:log("loss", loss, { on_epoch = true })
  return loss
end

function Net:configure_optimizers() return lt.optim.Adam(self:parameters(), { lr = 0.05 }) end

local function read(path)
  local file = io.open(path, "rb")
  local text = file and file:read "a"
  if file then file:close() end
  return text
end

-- Fits on 12 batches with a file after each third; returns what `look(folder)` finds then.
local function fit(device, folder, options, look)
  lt.seed(4)
  local net, data = Net(), {}
  for k = 1, 12 do data[k] = { lt.randn(5, 6), lt.randint(0, 3, { 5 }) } end
  local o = { devices = 1, strategy = lt.strategies.SingleDevice { device = device,
    checkpoint_io = options.io }, max_epochs = 1, enable_checkpointing = true,
    callbacks = { lt.callbacks.ModelCheckpoint { dirpath = folder, every_n_train_steps = 3,
      save_top_k = options.keep or 1, monitor = options.keep and "loss" or nil,
      save_last = true } } }
  function net:on_train_batch_end(...)
    if options.after_batch then options.after_batch(self, ...) end
  end
  tiny.trainer(o):fit(net, data)
  return look(folder)
end

local function files(folder)
  local found = {}
  for _, name in ipairs { "epoch=0-step=3.ckpt", "epoch=0-step=6.ckpt", "epoch=0-step=9.ckpt",
    "epoch=0-step=12.ckpt", "last.ckpt" } do
    found[name] = read(folder .. "/" .. name)
  end
  return found
end

-- A class with a `save` of its own: the fit waits for it.
local AtOnce <const> = lt.CheckpointIO:extend "AtOnce"
function AtOnce:save(...) return AtOnce.super.save(self, ...) end

for _, device in ipairs { "fake:0", "cuda" } do
  local it = device == "cuda" and both.it or it

  describe("a checkpoint of a fit on " .. device, function()
    it("is the file that would have been written at once, bit for bit", function()
      local folder = tiny.folder()
      local want = fit(device, folder, { io = AtOnce(), keep = -1 }, files)
      os.execute(("rm -rf %q"):format(folder))
      local got = fit(device, folder, { keep = -1 }, files)
      local n = 0
      for name, text in pairs(want) do
        n = n + 1
        assert.is_true(text == got[name], name)
      end
      assert.equal(5, n)
      assert.is_table(lt.CheckpointIO():load(folder .. "/last.ckpt"))
      os.execute(("rm -rf %q"):format(folder))
    end)

    it("takes the place of an older one only when it is whole", function()
      local folder, seen = tiny.folder(), false
      local found = fit(device, folder, {
        after_batch = function()
          local n = 0
          for name in pairs(files(folder)) do n = n + (name ~= "last.ckpt" and 1 or 0) end
          assert.is_true(n > 0 or not seen)
          seen = seen or n > 0
        end }, files)
      assert.is_nil(found["epoch=0-step=9.ckpt"])
      assert.is_string(found["epoch=0-step=12.ckpt"])
      os.execute(("rm -rf %q"):format(folder))
    end)

    it("is written after those that were asked for before it", function()
      local folder, io = tiny.folder(), lt.CheckpointIO()
      local large = { state_dict = { x = lt.rand({ 1 << 22 }, { device = device }) } }
      local small = { state_dict = { x = lt.rand({ 1 }, { device = device }) } }
      for k = 1, 4 do
        local first = io:save_later(large, ("%s/%d-large.ckpt"):format(folder, k))
        local second = io:save_later(small, ("%s/%d-small.ckpt"):format(folder, k))
        assert.is_true((second:wait()))
        assert.is_true(first:done())
        assert.is_true((first:wait()))
      end
      os.execute(("rm -rf %q"):format(folder))
    end)

    it("that cannot be written ends the fit", function()
      local net, folder = tiny.Line(), tiny.folder()
      function net:on_train_batch_end(_, _, index)
        if index == 0 then self.trainer:request_checkpoint "/dev/null" end
      end
      local trainer = tiny.trainer {
        devices = 1, strategy = lt.strategies.SingleDevice { device = device } }
      local message = tiny.error_of(trainer.fit, trainer, net, tiny.same(6))
      assert.matches("save_checkpoint: not a plain file: /dev/null", message, 1, true)
      os.execute(("rm -rf %q"):format(folder))
    end)

    it("is there when the fit has ended in an error", function()
      local net, path, followed = tiny.Line(), tiny.folder() .. "/it.ckpt", false
      function net:on_train_batch_start(_, index)
        if index == 1 then error "stop here" end
      end
      function net:on_train_batch_end()
        self.trainer:request_checkpoint(path, nil, function() followed = true end)
      end
      local trainer = tiny.trainer {
        devices = 1, strategy = lt.strategies.SingleDevice { device = device } }
      assert.matches("stop here", tiny.error_of(trainer.fit, trainer, net, tiny.same(3)))
      assert.is_string(read(path))
      assert.is_true(followed)
      os.execute(("rm -rf %q"):format(path:match "^(.*)/"))
    end)

    it("resumes as the run that continues", function()
      local folder = tiny.folder()
      local function run(ckpt_path)
        lt.seed(6)
        local net = tiny.Line()
        tiny.trainer({ devices = 1, max_epochs = 2,
          strategy = lt.strategies.SingleDevice { device = device },
          enable_checkpointing = not ckpt_path, callbacks = not ckpt_path and {
            lt.callbacks.ModelCheckpoint { dirpath = folder, every_n_train_steps = 3,
              save_top_k = -1, monitor = "loss" } } or nil })
          :fit(net, tiny.same(4), { ckpt_path = ckpt_path })
        return net.w:item()
      end
      local step = tiny.Line.training_step
      tiny.Line.training_step = function(self, x)
        local loss = self:loss(x)
        self:log("loss", loss)
        return loss
      end
      local ok, want = pcall(run)
      local resumed, got = pcall(run, folder .. "/epoch=0-step=3.ckpt")
      tiny.Line.training_step = step
      assert(ok, want)
      assert(resumed, got)
      assert.equal(want, got)
      os.execute(("rm -rf %q"):format(folder))
    end)
  end)
end

describe("a step that asks for a checkpoint", function()
  local case = counts and both.it or function(name) pending(name .. " (only the fake counts)") end

  case("waits once, for the weights to be looked at", function()
    local folder, net, rows = tiny.folder(), Net(), {}
    lt.seed(4)
    local data = {}
    for k = 1, 9 do data[k] = { lt.randn(5, 6), lt.randint(0, 3, { 5 }) } end
    function net:training_step(batch)
      local hidden = self.layers[1](batch[1])
      return nn.functional.cross_entropy(self.layers[4](hidden), batch[2])
    end
    function net:on_train_batch_start() table.insert(rows, counts()) end
    function net:on_train_batch_end(_, _, index)
      if index == 4 then self.trainer:request_checkpoint(folder .. "/it.ckpt") end
    end
    tiny.trainer({ devices = 1, strategy = lt.strategies.SingleDevice { device = "cuda" } })
      :fit(net, data)
    assert.is_true(rows[6].waits <= 2, rows[6].waits .. " waits")
    for _, k in ipairs { 5, 7, 8 } do assert.equal(0, rows[k].waits, "batch " .. k) end
    assert.is_string(read(folder .. "/it.ckpt"))
    os.execute(("rm -rf %q"):format(folder))
  end)
end)
