-- spec/trainer/late_rows_spec.lua: what is logged in steps on an asynchronous device reaches the
-- loggers some batches later: the same rows, in the same order, as on the CPU.
local lt = require "ltrain"
local tiny = require "spec.trainer.tiny"

-- A model of one weight that logs its loss and the number of the batch.
local function line(lr)
  local net = tiny.Line { lr = lr or 0.1 }
  function net:training_step(x, batch_idx)
    if batch_idx == self.fails_at then error("the script fails", 0) end
    local loss = self:loss(x)
    self:log_dict { loss = loss, batch = batch_idx, is_even = lt.ones_like(loss):eq(1) }
    self:log("epoch_loss", loss, { on_step = false, on_epoch = true })
    return loss
  end
  return net
end

-- Fits on a kind of device with a logger; the rows that it got as texts, which go into `rows`, and
-- the error.
local function fit(device, net, options, rows)
  rows = rows or {}
  local o = { accelerator = device, max_epochs = 2, log_every_n_steps = 1 }
  local Rows = lt.Logger:extend "Rows"
  function Rows.log_metrics(_, row, step)
    local names, text = {}, {}
    for name in pairs(row) do names[#names + 1] = name end
    table.sort(names)
    for i, name in ipairs(names) do text[i] = ("%s=%.6g"):format(name, row[name]) end
    rows[#rows + 1] = ("%d: %s"):format(step, table.concat(text, " "))
  end
  o.logger = Rows()
  for name, value in pairs(options or {}) do o[name] = value end
  local trainer = tiny.trainer(o)
  local ok, err = pcall(trainer.fit, trainer, net, { train = tiny.same(4), val = tiny.same(1) })
  return rows, not ok and tostring(err)
end

describe("rows that are logged on an asynchronous device", function()
  it("are those of the CPU, also those that callbacks log", function()
    local Monitor = lt.Callback:extend "Monitor"
    function Monitor.on_train_batch_end(_, trainer)
      trainer:log_to_loggers({ lr = 0.5 }, trainer.global_step)
    end
    for _, every in ipairs { 1, 3 } do
      local o = { log_every_n_steps = every, callbacks = { Monitor() } }
      local want, err = fit("cpu", line(), o)
      assert.is_false(err)
      assert.same(want, (fit("fake", line(), o)))
      assert.is_true(#want >= 10)
    end
  end)

  it("are in trainer.logged_metrics when that is read", function()
    local function seen(device)
      local net, list = line(), {}
      function net:on_train_batch_start()
        list[#list + 1] = self.trainer.logged_metrics.batch or "none"
      end
      fit(device, net)
      return list
    end
    assert.same(seen "cpu", seen "fake")
    assert.same({ "none", 0, 1, 2, 3, 0, 1, 2 }, seen "fake")
  end)

  it("are written before a validation and a checkpoint", function()
    local net, rows, counts, path = line(), {}, {}, tiny.folder()
    function net.validation_step() counts[#counts + 1] = #rows end
    function net:on_train_batch_start(_, index)
      if index ~= 1 then return end
      counts[#counts + 1] = #rows
      self.trainer:save_checkpoint(path)
      counts[#counts + 1] = #rows
    end
    fit("fake", net, { max_epochs = 1, val_check_interval = 2, num_sanity_val_steps = 0 }, rows)
    os.remove(path)
    assert.same({ 0, 1, 2, 4 }, counts)
  end)

  it("are written up to the step whose gradients were not finite", function()
    local function broken(at)
      local net = line()
      local step = net.training_step
      function net:training_step(x, batch_idx)
        local loss = step(self, x, batch_idx)
        return batch_idx == at and loss * (0 / 0) or loss
      end
      return net
    end
    local rows, err = fit("fake", broken(2), { max_epochs = 1, nonfinite = "stop" })
    assert.matches("batch 2, step 2", err, 1, true)
    local want = fit("cpu", line())
    assert.same({ want[1], want[2] }, rows)
  end)

  it("are written when the script fails", function()
    local net, want = line(), fit("cpu", line())
    net.fails_at = 3
    local rows, err = fit("fake", net)
    assert.matches("the script fails", err, 1, true)
    assert.same({ want[1], want[2], want[3] }, rows)
  end)
end)
