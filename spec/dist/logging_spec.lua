-- spec/dist/logging_spec.lua: what self:log makes of the values of several ranks.
-- tags: sampled, slow
local logged = require "spec.dist.logged"
local over = require "spec.dist.over"

describe("self:log on 1, 2 and 4 ranks", function()
  -- 22 numbers in global batches of 8, the last of 6: ranks have uneven ones.
  local FIT <const> = [[
    function Net:training_step(batch)
      local x = batch[1]:to("f64")
      self:log("mean", x:mean(), {on_epoch = true, on_step = false})
      self:log("sum", x:sum(), {on_epoch = true, on_step = false, reduce_fx = "sum"})
      return self:loss(batch)
    end
    function Net:validation_step(batch)
      local x = batch[1]:to("f64")
      self:log("val", x:mean())
      self:log("least", x:amin(), {reduce_fx = "min"})
      self:log("most", x:amax(), {reduce_fx = "max"})
    end
    local t = trainer()
    function Net:on_train_end() same = equal(t) end
    t:fit(Net(), loader(22, 8 // n), loader(7, 3))
    print(line(t.callback_metrics), n == 1 or same)
  ]]

  it("gives exact values of the epoch, with sync_dist or without", function()
    local values = "least=0 mean=10.5 most=6 sum=231 val=3"
    assert.equal(values .. "\ttrue\n", (logged.same(FIT)))
  end)

  over({ "mpi", "two hosts" }, "gives exact values of the epoch", function(way)
    assert.equal("least=0 mean=10.5 most=6 sum=231 val=3\ttrue\n", (logged.over(way, 2, FIT)))
  end)

  it("reduces step values with sync_dist at log steps, by samples", function()
    -- Global batches 0..7 and 8..12; the means are 3.5 and 10.
    local wanted <const> = "0\t3.5\t3.5\t28\n1\t10\t10\t50\n"
    assert.equal(wanted, (logged.same [[
      function Net:training_step(batch)
        local x = batch[1]:to("f64")
        self:log("a", x:mean(), {sync_dist = true})
        self:log("b", x:sum(), {sync_dist = true, reduce_fx = "sum"})
        return self:loss(batch)
      end
      local watch = lt.Logger:extend("Watch")
      function watch:log_metrics(row, step)
        local shown = net.trainer.callback_metrics.a
        if row.a then print(step, text(row.a), text(shown), text(row.b)) end
      end
      net = Net()
      trainer({logger = watch(), log_every_n_steps = 1}):fit(net, loader(13, 8 // n))
    ]]))
  end)

  it("has values of whole steps where a step is made of slices", function()
    -- deterministic = "world": 4 slices a step, one to four of them a rank.
    local wanted <const> = "0\t3.5\t28\t7\t0.375\n1\t10\t50\t12\t0.6\n6 0.461538462\n"
    assert.equal(wanted, (logged.same [[
      function Net:training_step(batch)
        local x, o = batch[1]:to("f64"), {sync_dist = true}
        self.acc = self.acc or lt.metrics.Accuracy()
        self:log("a", x:mean(), {sync_dist = true, on_epoch = true, on_step = true})
        self:log("b", x:sum(), {sync_dist = true, reduce_fx = "sum"})
        self:log("c", x:amax(), {sync_dist = true, reduce_fx = "max"})
        self.acc(x:gt(1e3):to("i64"), x:remainder(8):ge(3):to("i64"))
        self:log("acc", self.acc, {sync_dist = true, on_epoch = true, on_step = true})
        return self:loss(batch)
      end
      local watch = lt.Logger:extend("Watch")
      function watch:log_metrics(row, step)
        if row.b then
          print(step, text(row.a_step), text(row.b), text(row.c), text(row.acc_step))
        end
      end
      local t = trainer {logger = watch(), log_every_n_steps = 1, deterministic = "world"}
      t:fit(Net(), lt.data.DataLoader(lt.data.TensorDataset(lt.arange(13)),
        {global_batch_size = 8}))
      print(text(t.callback_metrics.a) .. " " .. text(t.callback_metrics.acc))
    ]]))
  end)

  it("has the values of evaluation steps joined when the pass ends", function()
    -- The global batches are 0..7, 8..15, 16..21.
    assert.equal("0\t3.5\n1\t11.5\n2\t18.5\n", (logged.same [[
      local how = {on_step = true, on_epoch = false, sync_dist = true}
      function Net:validation_step(batch) self:log("v", batch[1]:to("f64"):mean(), how) end
      local watch = lt.Logger:extend("Watch")
      function watch:log_metrics(row, step) print(step, text(row.v)) end
      trainer({logger = watch()}):validate(Net(), loader(22, 8 // n), {verbose = false})
    ]]))
  end)
end)

describe("a value that is not a number on one rank", function()
  it("is reported once with key and rank, of passes and of steps", function()
    local out, err = logged.output(2, [[
      local mean = lt.metrics.Mean()
      function Net:training_step(batch)
        if rank() == 0 then mean:update(lt.ones(1)) end
        self:log("pass", mean:compute(), {on_epoch = true, on_step = false})
        self:log("step", mean:compute(), {sync_dist = true})
        self:log("whole", mean, {on_epoch = true, on_step = false})
        self:log("no", 0 / 0, {on_epoch = true, on_step = false})
        return self:loss(batch)
      end
      local t = trainer {max_epochs = 2, log_every_n_steps = 1, logger = lt.Logger()}
      t:fit(Net(), loader(16, 2))
      local m = t.callback_metrics
      print(m.pass ~= m.pass, m.step ~= m.step, m.whole)
    ]])
    assert.equal("true\ttrue\t1.0\n", out)
    local reports = {}
    for name in err:gmatch("warning: log: '(%w+)' is nan on rank 1 alone, which makes it nan for "
      .. "all ranks; if a metric computed it that was not updated there, log the metric itself") do
      reports[#reports + 1] = name
    end
    assert.same({ "step", "pass" }, reports, err)
    assert.equal(2, select(2, err:gsub(" is nan ", "")), err)
  end)
end)

describe("a key that some ranks log", function()
  over({ "shm", "two hosts" }, "counts as nothing on the others, and is reported once with key and "
    .. "ranks", function(way)
    local out, err = logged.over(way, 4, [[
      function Net:training_step(batch)
        if rank() % 2 == 1 then self:log("odd", rank(), {on_epoch = true, on_step = false}) end
        return self:loss(batch)
      end
      local t = trainer {max_epochs = 3}
      function Net:on_train_end() same = equal(t) end
      t:fit(Net(), loader(16, 2))
      print(text(t.callback_metrics.odd), same)
    ]])
    assert.equal("2\ttrue\n", out)
    local _, count = err:gsub("log: 'odd' was not logged on ranks 0, 2: it is ignored there",
      "")
    assert.equal(1, count, err)
  end)

  it("is not reported for a rank that had no data", function()
    local out, err = logged.output(2, [[
      function Net:validation_step(batch) self:log("v", batch:to("f64"):mean()) end
      local Some = lt.data.IterableDataset:extend("Some")
      function Some:iterate()
        local i = rank() == 1 and 3 or 0
        return function()
          i = i + 1
          if i <= 3 then return lt.tensor(i) end
        end
      end
      local t = trainer()
      t:validate(Net(), lt.data.DataLoader(Some()), {verbose = false})
      print(text(t.callback_metrics.v))
    ]])
    assert.equal("2\n", out)
    assert.not_matches("was not logged", err)
  end)

  it("is an error when they log it in different ways, the same on all ranks", function()
    local status, _, err = logged.run(2, [[
      function Net:validation_step(batch)
        self:log("v", 1.0, {reduce_fx = rank() == 1 and "max" or "mean"})
      end
      trainer():validate(Net(), loader(8), {verbose = false})
    ]])
    assert.equal(1, status)
    assert.matches("log: ranks log 'v' in validation_step in different ways: reduce_fx: mean on "
      .. "rank 0, max on rank 1", err)
  end)

  it("and a metric there, a number here", function()
    local status, _, err = logged.run(2, [[
      function Net:validation_step(batch)
        self.mean = self.mean or lt.metrics.Mean()
        self:log("v", rank() == 1 and self.mean or 1.0)
      end
      trainer():validate(Net(), loader(8), {verbose = false})
    ]])
    assert.equal(1, status)
    assert.matches("'v' in validation_step in different ways: what is logged: a number on rank 0, "
      .. "a metric Mean on rank 1", err)
  end)
end)

describe("rank_zero_only", function()
  it("counts rank 0's call alone, in steps and hooks, under a guard or not", function()
    assert.equal("a=0 b=7 c=5 c_epoch=5 c_step=5\ttrue\n", (logged.output(4, [[
      function Net:training_step(batch)
        self:log("c", 5 + rank(), {rank_zero_only = true, on_epoch = true})
        return self:loss(batch)
      end
      function Net:on_validation_epoch_end()
        self:log("a", rank(), {rank_zero_only = true})
        if self.trainer.is_global_zero then self:log("b", 7, {rank_zero_only = true}) end
      end
      function Net:validation_step() end
      local t = trainer()
      function Net:on_train_end() same = equal(t) end
      t:fit(Net(), loader(16, 2), loader(4))
      print(line(t.callback_metrics), same)
    ]])))
  end)

  it("is not reported as missing on the others", function()
    local _, err = logged.output(2, [[
      function Net:validation_step() self:log("a", 1, {rank_zero_only = true}) end
      trainer():validate(Net(), loader(4), {verbose = false})
    ]])
    assert.not_matches("was not logged", err)
  end)

  over({ "shm", "two hosts" }, "can be watched by ModelCheckpoint with save_top_k = 2 and by "
    .. "EarlyStopping", function(way)
    -- The values 5 4 3 6 7 8: the best are epochs 1 and 2; two worse ones end the fit in epoch 4.
    local out = logged.over(way, 4, [[
      local values = {5, 4, 3, 6, 7, 8}
      function Net:on_train_epoch_end()
        if self.trainer.is_global_zero then
          self:log("x", values[self.current_epoch + 1], {rank_zero_only = true})
        end
      end
      local best = lt.callbacks.ModelCheckpoint {dirpath = "best", monitor = "x", save_top_k = 2,
        filename = "{epoch}"}
      local stop = lt.callbacks.EarlyStopping {monitor = "x", patience = 2}
      local t = trainer {max_epochs = 6, callbacks = {best, stop}, enable_checkpointing = true}
      local epochs
      function Net:on_train_end() epochs = lt.dist.all_gather(self.current_epoch) end
      t:fit(Net(), loader(16, 2))
      local names = {}
      for path, score in pairs(best.best_k_models) do
        names[#names + 1] = path:match("[^/]*$") .. " " .. score
      end
      table.sort(names)
      print(table.concat(names, ", "), table.concat(epochs, " "), stop.stopped_epoch)
    ]])
    assert.equal("epoch=1.ckpt 4.0, epoch=2.ckpt 3.0\t5 5 5 5\t4\n", out)
  end)
end)

describe("a step value of which ranks have different values", function()
  it("leads ModelCheckpoint to one decision: rank 0's", function()
    -- Rank 0 sees 1 2 3 ..., rank 1 gets better and better, and would save each time.
    assert.equal("x=1\ttrue\n", (logged.output(2, [[
      function Net:training_step(batch, i)
        self:log("x", rank() == 0 and i + 1 or -i)
        return self:loss(batch)
      end
      local best = lt.callbacks.ModelCheckpoint {dirpath = "best", monitor = "x",
        filename = "{x:.0f}", every_n_train_steps = 1, save_top_k = 1}
      local t = trainer {callbacks = {best}, enable_checkpointing = true}
      local same
      function Net:on_train_end()
        local all = lt.dist.all_gather {best.best_model_path, best.best_model_score}
        same = all[1][1] == all[2][1] and all[1][2] == all[2][2]
      end
      t:fit(Net(), loader(16, 2))
      print(best.best_model_path:match "([^/]*).ckpt$", same)
    ]])))
  end)

  it("and a step's value, at the end, is of those that had a sample in the last step", function()
    -- 9 samples in batches of 2 on 4 ranks: in the last step rank 0 alone has one.
    assert.equal("8\ttrue\n", (logged.output(4, [[
      function Net:training_step(batch)
        self:log("x", batch[1]:to("f64"):mean(), {on_epoch = true, sync_dist = true})
        return self:loss(batch)
      end
      local t = trainer()
      local same
      function Net:on_train_end() same = equal(t) end
      t:fit(Net(), loader(9, 2))
      print(text(t.callback_metrics.x_step), same)
    ]])))
  end)

  it("and those ranks too that had no sample in the last step", function()
    -- 9 samples in batches of 2 on 4 ranks: in the last step rank 0 alone has one.
    assert.equal("4\ttrue\n", (logged.output(4, [[
      function Net:training_step(batch) self:log("x", 1.0) return self:loss(batch) end
      local best = lt.callbacks.ModelCheckpoint {dirpath = "best", monitor = "x", save_top_k = -1,
        every_n_train_steps = 1}
      local t = trainer {max_epochs = 2, callbacks = {best}, enable_checkpointing = true}
      local same
      function Net:on_train_end()
        local all = lt.dist.all_gather(best.best_k_models)
        same = true
        for _, one in ipairs(all) do
          for path in pairs(all[1]) do same = same and one[path] ~= nil end
        end
      end
      t:fit(Net(), loader(9, 2))
      local count = 0
      for _ in pairs(best.best_k_models) do count = count + 1 end
      print(count, same)
    ]])))
  end)

  it("and ranks that run out of data, rank 0 first: then nothing is decided", function()
    -- Rank 0 has one sample, rank 1 three: of steps 1, 2, 3 rank 0 sees the first.
    assert.equal("step=1\t1.75\t1.75\n", (logged.output(2, [[
      local Count = lt.data.IterableDataset:extend("Count")
      function Count:shard(r) self.sizes = ({1, 3})[r + 1] end
      function Count:iterate()
        local i = 0
        return function()
          i = i + 1
          if i <= self.sizes then return lt.tensor(i) end
        end
      end
      function Net:training_step(x)
        self.mean = self.mean or lt.metrics.Mean()
        self.mean(x)
        self:log("mean", self.mean, {on_epoch = true, on_step = false})
        self:log("x", x, {on_epoch = true, sync_dist = true})
        return (x:to("f32") * self.w):mean()
      end
      local save = lt.callbacks.ModelCheckpoint {dirpath = "files", filename = "{step}",
        every_n_train_steps = 1}
      local t = trainer {callbacks = {save}, enable_checkpointing = true, log_every_n_steps = 1}
      t:fit(Net(), lt.data.DataLoader(Count()))
      print(save.best_model_path:match "([^/]*).ckpt$", text(t.callback_metrics.mean),
        text(t.callback_metrics.x_epoch))
    ]])))
  end)

  it("leads EarlyStopping to one decision, and a plateau scheduler", function()
    assert.equal("3 3\t0.5 0.5\n", (logged.output(2, [[
      function Net:training_step(batch, i)
        self:log("x", rank() == 0 and 1.0 or -i)
        return self:loss(batch)
      end
      function Net:validation_step() end
      function Net:configure_optimizers()
        local optimizer = lt.optim.SGD(self:parameters(), {lr = 1.0})
        return {optimizer = optimizer, lr_scheduler = {monitor = "x", interval = "step",
          scheduler = lt.optim.ReduceLROnPlateau(optimizer, {factor = 0.5, patience = 1})}}
      end
      local stop = lt.callbacks.EarlyStopping {monitor = "x", patience = 2,
        check_on_train_epoch_end = false}
      local t = trainer {callbacks = {stop}, val_check_interval = 1}
      local steps, rates
      function Net:on_train_end()
        steps = lt.dist.all_gather(self.global_step)
        rates = lt.dist.all_gather(self.trainer.optimizers[1].param_groups[1].lr)
      end
      t:fit(Net(), loader(16, 2), loader(4, 2))
      print(table.concat(steps, " "), table.concat(rates, " "))
    ]])))
  end)
end)

describe("after each epoch end", function()
  it("callback, bar and logged values are equal on all ranks, also those of steps", function()
    local values <const> = "lr-SGD=0 s=0 x=7.5 x_epoch=7.5 x_step=14.5"
    assert.equal("true true true\t" .. values .. "\n", (logged.output(2, [[
      function Net:training_step(batch)
        self:log("s", rank(), {prog_bar = true})
        self:log("x", batch[1]:to("f64"):mean(),
          {on_epoch = true, sync_dist = true, prog_bar = true})
        return self:loss(batch)
      end
      local same = {}
      local none = lt.Logger:extend("None")
      function none:log_metrics() end
      local t
      local watch = {all_ranks = true,
        on_train_epoch_end = function() same[#same + 1] = tostring(equal(t)) end}
      t = trainer {max_epochs = 3, log_every_n_steps = 3, logger = none(),
        callbacks = {lt.callbacks.LearningRateMonitor {logging_interval = "epoch"}, watch}}
      t:fit(Net(), loader(16, 1))
      print(table.concat(same, " "), (line(t.callback_metrics)))
    ]])))
  end)
end)
