-- spec/trainer/val_time_spec.lua: val_check_interval as a time.
local support = require "spec.dist.support"
local tiny = require "spec.trainer.tiny"

-- The steps at which a fit validates, where each look at the clock costs `tick` seconds and each
-- batch `batch`.
local function steps_of(interval, seconds, options)
  local net, steps, time = tiny.Line(), {}, 0.0
  local o = { val_check_interval = interval, max_epochs = 3, num_sanity_val_steps = 0 }
  for name, value in pairs(options or {}) do o[name] = value end
  local trainer = tiny.trainer(o)
  function trainer.now() return time end
  function net:training_step(x)
    time = time + seconds
    return self:loss(x)
  end
  function net:validation_step() steps[#steps + 1] = self.trainer.global_step end
  trainer:fit(net, tiny.same(4), tiny.same(1))
  return steps
end

describe("val_check_interval as a time", function()
  it("validates at the end of the batch in which it is over", function()
    assert.same({ 3, 6, 9, 12 }, steps_of("00:00:00:25", 10))
    assert.same({ 2, 4, 6, 8, 10, 12 }, steps_of({ minutes = 1 }, 40))
    assert.same({}, steps_of("01:00:00:00", 40))
  end)

  it("validates in epochs that check_val_every_n_epoch names", function()
    assert.same({ 5, 6, 7, 8 }, steps_of({ seconds = 1 }, 5, { check_val_every_n_epoch = 2 }))
    assert.same({ 3, 6, 9, 12 },
      steps_of("00:00:00:25", 10, { check_val_every_n_epoch = false }))
  end)

  it("goes by rank 0's clock on ranks", function()
    local out = support.ranks(2, [[
      local net, seen = lt.nn.Linear(1, 1), {}
      function net:training_step(batch) return self(batch[1]):square():mean() end
      function net:validation_step(batch, i)
        if i == 0 then seen[#seen + 1] = self.trainer.global_step end
      end
      function net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.1}) end
      local data = lt.data.TensorDataset(lt.ones(12, 1))
      local loader = lt.data.DataLoader(data, {batch_size = 1})
      local t = lt.Trainer{accelerator = "cpu", max_epochs = 1, logger = false,
        enable_checkpointing = false,
        enable_progress_bar = false, enable_model_summary = false, num_sanity_val_steps = 0,
        val_check_interval = {seconds = 20}}
      local rank, time = lt.dist.rank(), 0
      function t.now()
        time = time + (rank == 0 and 10 or 1000)
        return time
      end
      t:fit(net, loader, loader)
      local all = lt.dist.all_gather(table.concat(seen, " "))
      assert(all[1] == all[2] and #all[1] > 0, all[1] .. " / " .. all[2])
      assert(#seen < 6)
    ]])
    assert.equal("string", type(out))
  end)

  it("reports what is not a time", function()
    assert.matches("val_check_interval must be 'DD:HH:MM:SS', .* or a table .*: got 'soon'",
      tiny.error_of(tiny.trainer, { val_check_interval = "soon" }))
    assert.matches("val_check_interval has no unit 'hour'; did you mean 'hours'",
      tiny.error_of(tiny.trainer, { val_check_interval = { hour = 1 } }))
    assert.matches("val_check_interval must be above 0 seconds: got 0",
      tiny.error_of(tiny.trainer, { val_check_interval = "00:00:00:00" }))
  end)
end)
