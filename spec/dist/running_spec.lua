-- spec/dist/running_spec.lua: values in mid-epoch, when ranks save, resume, and end.
-- tags: sampled, slow
local logged = require "spec.dist.logged"
local over = require "spec.dist.over"

-- A fit over 0 .. 15 in 4 global batches that logs sums, a mean and metrics of its own.
local NET <const> = [[
function Net:init()
  self.w = lt.parameter(lt.tensor {1.0})
  self.mean, self.kept = lt.metrics.Mean(), lt.metrics.Mean()
end
function Net:training_step(batch)
  local x = batch[1]:to "f64"
  self:log("sum", x:sum(), {on_epoch = true, on_step = false, reduce_fx = "sum"})
  self:log("most", x:amax(), {on_epoch = true, on_step = false, reduce_fx = "max"})
  self:log("average", x:mean(), {on_epoch = true, sync_dist = true})
  self.mean:update(x)
  self.kept:update(x)
  self:log("mean", self.mean, {on_epoch = true, on_step = false})
  return self:loss(batch)
end
local function values(t)
  local m = t.callback_metrics
  return ("%g %g %g %g"):format(m.sum, m.most, m.average_epoch, m.mean)
end
]]

describe("a file that ModelCheckpoint saved in mid-epoch", function()
  it("has the values of all: 1, 2 and 4 ranks resume with them", function()
    -- All of 0 .. 15, on any number of ranks: rank 0 takes 0 .. 7, the others begin with nothing.
    for _, n in ipairs { 2, 4 } do
      local out = logged.output(n, NET .. [[
        local save = lt.callbacks.ModelCheckpoint {dirpath = "files", filename = "{step}",
          every_n_train_steps = 2, save_top_k = -1}
        local t = trainer {callbacks = {save}, enable_checkpointing = true}
        t:fit(Net(), loader(16, 4 // n))
        print(values(t))
        for _, ranks in ipairs {1, 2, 4} do
          local u = trainer {devices = ranks}
          local net = Net()
          function net:on_train_end() same = ranks == 1 or equal(u) end
          u:fit(net, loader(16, 4 // ranks), nil, {ckpt_path = "files/step=2.ckpt"})
          print(values(u), text(net.kept:compute()), same)
        end
      ]])
      local whole <const> = "120 15 7.5 7.5"
      assert.equal(whole .. "\n" .. (whole .. "\t7.5\ttrue\n"):rep(3), out, n .. " ranks")
    end
  end)
end)

describe("a file that rank 0 saved by itself in mid-epoch", function()
  it("waits for no rank, and a resumed run begins its values again, with a note", function()
    local out, err = logged.output(2, NET .. [[
      local net, t = Net(), trainer()
      function net:on_train_batch_end(_, _, i)
        if i == 1 and rank() == 0 then self.trainer:save_checkpoint "mid.ckpt" end
      end
      t:fit(net, loader(16, 2))
      local u = trainer()
      u:fit(Net(), loader(16, 2), nil, {ckpt_path = "mid.ckpt"})
      print(values(u))
    ]])
    assert.equal("92 15 11.5 11.5\n", out) -- of 8 .. 15
    local _, count = err:gsub("mid.ckpt was saved in mid%-epoch by rank 0 alone: the metrics of "
      .. "epoch 0 cover only its remaining batches", "")
    assert.equal(1, count, err)
  end)

  it("says that it has rank 0's gradients only, where a window was open", function()
    local out, err = logged.output(2, NET .. [[
      function Net:loss(batch) return (self.w * batch[1]:to "f32"):mean() end
      function Net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.1}) end
      local net, t = Net(), trainer {accumulate_grad_batches = 3}
      function net:on_train_batch_end(_, _, i)
        if rank() == 0 then self.trainer:save_checkpoint("after_" .. i .. ".ckpt") end
        if i == 1 then self.trainer:request_checkpoint("agreed.ckpt", {agreed = true}) end
      end
      t:fit(net, loader(16, 2))
      for _, file in ipairs {"after_1", "after_2", "agreed"} do
        local u, again = trainer {accumulate_grad_batches = 3}, Net()
        u:fit(again, loader(16, 2), nil, {ckpt_path = file .. ".ckpt"})
        print(file, values(u), lt.hash(again:state_dict()) == lt.hash(net:state_dict()))
      end
    ]])
    assert.matches("agreed\t120 15 7.5 7.5\ttrue\n", out)
    assert.matches("after_1\t92 15 11.5 11.5\tfalse\n", out)
    local _, count = err:gsub("after_1.ckpt was saved in mid%-window by rank 0 alone: of the first "
      .. "2 batches of this window it has rank 0's gradients only", "")
    assert.equal(1, count, err)
    assert.not_matches("after_2.ckpt was saved in mid%-window", err)
    assert.not_matches("agreed.ckpt was saved", err)
  end)

  over({ "shm", "mpi" }, "is as any other when it was saved at the end of an epoch, after the fit",
    function(way)
      local out, err = logged.over(way, 2, NET .. [[
        local net, t = Net(), trainer()
        t:fit(net, loader(16, 2))
        t:save_checkpoint "end.ckpt"
        lt.dist.barrier()
        local u, again = trainer {max_epochs = 2}, Net()
        function again:on_train_epoch_end() kept = self.kept:compute() end
        u:fit(again, loader(4, 2), nil, {ckpt_path = "end.ckpt"})
        print(values(u), kept)
      ]])
      -- 0 .. 15 before the end, 0 .. 3 behind it.
      assert.equal(("6 3 1.5 1.5\t%s\n"):format((120 + 6) / 20), out)
      assert.not_matches("rank 0 alone", err)
    end)
end)

describe("when forks end", function()
  it("the script's process has what all of them gathered, and a later fit resumes with it",
    function()
      assert.equal("3.5\n7.5\t120 15 7.5 7.5\n", (logged.output(2, NET .. [[
        local net, t = Net(), trainer {max_steps = 2}
        t:fit(net, loader(16, 2))
        print(net.kept:compute()) -- of 0 .. 7
        t.max_steps = -1
        t:fit(net, loader(16, 2))
        print(net.kept:compute(), (values(t)))
      ]])))
    end)
end)
