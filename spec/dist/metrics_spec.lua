-- spec/dist/metrics_spec.lua: metrics on several ranks are those of the whole data.
-- tags: half, sampled, slow
local logged = require "spec.dist.logged"
local over = require "spec.dist.over"

-- Labels and scores of 46 samples, drawn once; batches of unequal numbers on ranks.
local DATA <const> = [[
local k = 46
local x = lt.rand(k)
local y = (x + lt.randn(k) * 0.4):gt(0.6):to "i64"
local ids, said = lt.randint(0, 5, {k}), lt.randint(0, 5, {k})
local data = lt.data.TensorDataset(x, y, ids, said)
local function batches(size) return lt.data.DataLoader(data, {batch_size = size}) end
function Net:training_step(batch) return (batch[1] * self.w):mean() end
]]

describe("metrics on 1, 2 and 4 ranks", function()
  local SCRIPT <const> = DATA .. [[
    local m = lt.metrics
    local made = {
      acc = m.Accuracy(), f1 = m.F1(), mean = m.Mean(), auroc = m.AUROC(),
      bins = m.AUROC {thresholds = 20},
      macro = m.F1 {num_classes = 5, average = "macro"},
      micro = m.F1 {num_classes = 5, average = "micro"},
    }
    function Net:init()
      self.w = lt.parameter(lt.tensor {1.0})
      for name, metric in pairs(made) do self[name] = metric end
    end
    function Net:validation_step(batch)
      local x, y, ids, said = batch[1], batch[2], batch[3], batch[4]
      for _, name in ipairs {"acc", "f1", "auroc", "bins"} do self[name]:update(x, y) end
      self.mean:update(x)
      self.macro:update(said, ids)
      self.micro:update(said, ids)
      for name in pairs(made) do self:log(name, self[name]) end
    end
    local net, called, names = Net(), {}, {}
    for name in pairs(made) do names[#names + 1] = name end
    table.sort(names) -- all ranks ask in one order
    function net:on_validation_epoch_end()
      for _, name in ipairs(names) do called[name] = self[name]:compute() end
    end
    local t = trainer()
    t:validate(net, batches(8 // n), {verbose = false})
    for name in pairs(made) do assert(called[name] == t.callback_metrics[name], name) end
    print(line(t.callback_metrics))
  ]]

  it("are equal, logged and computed in on_validation_epoch_end", function()
    local out = logged.same(SCRIPT)
    assert.matches("^acc=0%.%d+ auroc=0%.%d+ bins=0%.%d+ f1=0%.%d+ ", out)
  end)

  it("are equal of collections, classes, curves, moments, texts and boxes", function()
    local out = logged.same(DATA .. [[
      local m = lt.metrics
      local o = {num_classes = 5, average = "macro"}
      function Net:init()
        self.w = lt.parameter(lt.tensor {1.0})
        self.binary = m.MetricCollection({ap = m.AveragePrecision(), ece = m.CalibrationError(),
          jaccard = m.JaccardIndex(), mcc = m.MatthewsCorrCoef()}, {prefix = "b_"})
        self.classes = m.MetricCollection {precision = m.Precision(o), recall = m.Recall(o),
          each = m.ClasswiseWrapper(m.Specificity {num_classes = 5, average = "none"}),
          kappa = m.CohenKappa {num_classes = 5}}
        self.numbers = m.MetricCollection {r2 = m.R2Score(), pearson = m.PearsonCorrCoef(),
          spearman = m.SpearmanCorrCoef(), mse = m.MeanSquaredError()}
        self.wer, self.map = m.WordErrorRate(), m.MeanAveragePrecision()
      end
      function Net:validation_step(batch)
        local x, y, ids, said = batch[1], batch[2], batch[3], batch[4]
        self.binary:update(x, y)
        self.classes:update(said, ids)
        self.numbers:update(x, y:to "f32")
        for i, id in ipairs(ids:tolist()) do
          self.wer:update(("a b c"):rep(id + 1, " "), ("a b"):rep(said[i]:item() + 1, " "))
          local box = lt.tensor {{0.0, 0.0, 10.0 + id, 10.0}}
          self.map:update({{boxes = box, scores = x:narrow(1, i, 1), labels = lt.tensor {id}}},
            {{boxes = lt.tensor {{0.0, 0.0, 12.0, 10.0}}, labels = lt.tensor {id}}})
        end
        self:log_dict(self.binary)
        self:log_dict(self.classes)
        self:log_dict(self.numbers)
        self:log("wer", self.wer)
      end
      function Net:on_validation_epoch_end()
        local map = self.map:compute()
        self:log_dict({map = map.map, map_50 = map.map_50}, {reduce_fx = "max"})
      end
      local t = trainer()
      t:validate(Net(), batches(8 // n), {verbose = false})
      local shown = {}
      for name, value in pairs(t.callback_metrics) do shown[name] = value end
      for _, name in ipairs {"r2", "pearson", "spearman", "mse", "b_ece", "wer"} do
        shown[name] = tonumber(("%.6g"):format(shown[name])) -- sums of floats
      end
      print(line(shown))
    ]])
    assert.matches("b_ap=0.%d+ b_ece=", out)
    assert.matches("map=0.%d+ map_50=1 mse=0.%d+ pearson=0.%d+ precision=0.%d+", out)
    assert.matches("specificity_4=0.%d+", out)
  end)

  it("are equal of extremes and trackers, where a run resumes in mid-epoch too", function()
    -- The means of x are 3.5, 2.5 and 1.5 in epochs 0, 1 and 2.
    local values <const> = "best=1.5 greatest=7 max=3.5 min=1.5 raw=1.5 step=2\t3.5 2.5 1.5\n"
    assert.equal(values .. values, (logged.same [[
      local m = lt.metrics
      local function run(ckpt_path)
        local net, t = Net(), trainer {max_epochs = 3}
        net.range = m.MinMaxMetric(m.Mean())
        net.tracker = m.MetricTracker(m.MetricCollection {mean = m.Mean(), max = m.Max()},
          {maximize = {mean = false, max = true}})
        function net:on_train_epoch_start() self.tracker:increment() end
        function net:training_step(batch, index)
          local x = batch[1] - self.trainer.current_epoch
          self.range:update(x)
          self.tracker:update(x)
          self:log_dict(self.range, {on_step = false, on_epoch = true})
          if self.trainer.current_epoch == 1 and index == 0 and not ckpt_path then
            self.trainer:request_checkpoint("mid.ckpt", {agreed = true})
          end
          return self:loss(batch)
        end
        function net:on_train_epoch_end()
          local best, step = self.tracker:best_metric {return_step = true}
          self:log_dict {best = best.mean, greatest = best.max, step = step.mean}
        end
        local means
        function net:on_train_end() means = self.tracker:compute_all().mean:tolist() end
        t:fit(net, loader(8, 4 // n), nil, {ckpt_path = ckpt_path})
        say(line(t.callback_metrics), table.concat(means, " "))
      end
      run()
      run "mid.ckpt"
    ]]))
  end)

  over({ "mpi", "ucx", "two hosts" }, "are equal", function(way)
    assert.equal((logged.output(1, SCRIPT)), (logged.over(way, 2, SCRIPT)))
  end)

  it("join sums, extremes, lists and what a class merges by itself", function()
    -- Variance by Welford's method merges by Chan's; over 0 .. 20 it is 36.667 (21^2 - 1) / 12.
    assert.equal("low=0 high=20 sum=210 count=21 variance=36.6666667 list=21 first=0\n",
      (logged.same [[
      local Spread = lt.Metric:extend("Spread")
      function Spread:init()
        self:add_state("low", math.huge, {reduce = "min"})
        self:add_state("high", -math.huge, {reduce = "max"})
        self:add_state("sum", lt.zeros({1}, {dtype = "i64"}))
        self:add_state("list", {})
      end
      function Spread:update(x)
        self.low = math.min(self.low, x:amin():item())
        self.high = math.max(self.high, x:amax():item())
        self.sum = self.sum + x:sum()
        table.insert(self.list, x)
      end
      function Spread:compute() return 1 end
      local Variance = lt.Metric:extend("Variance")
      function Variance:init(scale)
        self.scale = scale
        self:add_state("count", 0)
        self:add_state("mean", 0.0)
        self:add_state("m2", 0.0)
      end
      function Variance:update(x)
        for _, v in ipairs(x:tolist()) do
          self.count = self.count + 1
          local d = v - self.mean
          self.mean = self.mean + d / self.count
          self.m2 = self.m2 + d * (v - self.mean)
        end
      end
      function Variance:merge(other)
        if other.count == 0 then return end
        assert(other.scale == self.scale)
        local total, d = self.count + other.count, other.mean - self.mean
        self.m2 = self.m2 + other.m2 + d * d * self.count * other.count / total
        self.mean, self.count = self.mean + d * other.count / total, total
      end
      function Variance:compute() return self.scale * self.m2 / self.count end
      function Net:init()
        self.w, self.spread, self.variance = lt.parameter(lt.tensor {1.0}), Spread(), Variance(1.0)
      end
      function Net:validation_step(batch)
        self.spread:update(batch[1])
        self.variance(batch[1])
        self:log("variance", self.variance)
      end
      local all, count
      function Net:on_validation_epoch_end()
        local parts = lt.dist.all_gather(self.spread:state_dict())
        all = self.spread:joined(parts)
        count = lt.dist.all_reduce(self.variance.count)
      end
      local t = trainer()
      t:validate(Net(), loader(21, 8 // n), {verbose = false})
      local list = lt.cat(all.list, 1)
      local variance = text(t.callback_metrics.variance)
      print(("low=%d high=%d sum=%d count=%d variance=%s list=%d first=%d"):format(all.low,
        all.high, all.sum:item(), count, variance, #list, list[1]:item()))
    ]]))
  end)

  it("have exact values of steps with sync_dist", function()
    -- F1 of each global batch of 8, not the mean of the ranks' values.
    local out = logged.same(DATA .. [[
      function Net:training_step(batch)
        self.f1 = self.f1 or lt.metrics.F1()
        self.f1(batch[1], batch[2])
        self:log("f1", self.f1, {sync_dist = true})
        return (batch[1] * self.w):mean()
      end
      local watch = lt.Logger:extend("Watch")
      function watch:log_metrics(row, step) if row.f1 then print(step, text(row.f1)) end end
      trainer({logger = watch(), log_every_n_steps = 2}):fit(Net(), batches(8 // n))
    ]])
    local _, rows = out:gsub("\n", "")
    assert.equal(3, rows)
  end)
end)

describe("metrics of fewer samples than ranks", function()
  it("are those of one process, and nothing is reported of what had no data", function()
    local script <const> = [[
      local x, y = lt.tensor {0.875, 0.25, 0.375}, lt.tensor {1, 0, 1}
      local data = lt.data.TensorDataset(x, y)
      function Net:init()
        self.w, self.auroc, self.f1 = lt.parameter(lt.tensor {1.0}), lt.metrics.AUROC(),
          lt.metrics.F1()
      end
      function Net:validation_step(batch)
        self.auroc:update(batch[1], batch[2])
        self.f1:update(batch[1], batch[2])
        self:log("auroc", self.auroc)
        self:log("f1", self.f1)
        self:log("x", batch[1]:mean())
        self:log("late", batch[1]:mean(), {on_step = true, sync_dist = true})
      end
      local computed
      function Net:on_validation_epoch_end() computed = self.auroc:compute() end
      local t = trainer()
      t:validate(Net(), lt.data.DataLoader(data, {batch_size = 1}), {verbose = false})
      print(line(t.callback_metrics), text(computed))
    ]]
    local values <const> =
      "auroc=1 f1=0.666666667 late=0.5 late_epoch=0.5 x=0.5\t1\n"
    assert.equal(values, (logged.output(1, script)))
    local out, err = logged.output(4, script)
    assert.equal(values, out)
    assert.not_matches("was not logged", err)
  end)
end)

describe("the mean of the ranks' F1", function()
  it("is not F1, and not what is logged", function()
    local script <const> = DATA .. [[
      function Net:validation_step(batch)
        self.f1 = self.f1 or lt.metrics.F1()
        self.f1:update(batch[1], batch[2])
        self:log("f1", self.f1)
      end
      local mean
      function Net:on_validation_epoch_end()
        mean = lt.dist.all_reduce(self.f1:compute {sync = false}, {op = "mean"})
      end
      local t = trainer()
      t:validate(Net(), batches(6 // n), {verbose = false})
      print(text(t.callback_metrics.f1), text(mean))
    ]]
    local whole = (logged.output(1, script)):match "^(%S+)"
    local f1, mean = (logged.output(2, script)):match "^(%S+)\t(%S+)"
    assert.equal(whole, f1)
    assert.is_true(math.abs(tonumber(f1) - tonumber(mean)) > 1e-3, mean)
  end)
end)

describe("a metric", function()
  it("that some ranks never update, or do not have at all, has one value", function()
    local out, err = logged.output(4, [[
      function Net:init() self.w, self.mean = lt.parameter(lt.tensor {1.0}), lt.metrics.Mean() end
      function Net:validation_step(batch)
        if rank() >= 2 then
          self.mean:update(batch[1])
          self:log("known", self.mean)
        end
        if rank() == 3 then
          self.own = self.own or lt.metrics.Mean()
          self.own:update(batch[1])
          self:log("own", self.own)
        end
      end
      local t = trainer()
      local same
      function Net:on_validation_end() same = equal(t) end
      t:validate(Net(), loader(8), {verbose = false})
      print(line(t.callback_metrics), same)
    ]])
    -- Ranks 2 and 3 see 2 3 and 6 7 (of global batches 0..3 and 4..7): rank 3 has 3 and 7.
    assert.equal("known=4.5 own=5\ttrue\n", out)
    assert.matches("log: 'known' was not logged on ranks 0, 1", err)
    assert.matches("log: 'own' was not logged on ranks 0%-2", err)
  end)

  it("with states of other shapes is an error that names key, state and both", function()
    local status, _, err = logged.run(2, [[
      local Hist = lt.Metric:extend("Hist")
      function Hist:init(k) self:add_state("counts", lt.zeros(k)) end
      function Hist:update() end
      function Hist:compute() return self.counts:sum() end
      function Net:validation_step(batch)
        self.hist = self.hist or Hist(3 + rank())
        self:log("h", self.hist)
      end
      trainer():validate(Net(), loader(8), {verbose = false})
    ]])
    assert.equal(1, status)
    assert.matches("log: 'h': state 'counts' of Hist differs: %[3%] f32 on rank 0, %[4%] f32 on "
      .. "rank 1", err)
  end)

  it("whose compute calls that of the class above asks the ranks once, or not at all", function()
    assert.equal("3.5 7\t2.5 5\n", (logged.output(2, [[
      local Twice = lt.metrics.Mean:extend("Twice")
      function Twice:compute() return 2 * lt.metrics.Mean.compute(self) end
      function Net:init()
        self.w, self.mean, self.twice = lt.parameter(lt.tensor {1.0}), lt.metrics.Mean(), Twice()
      end
      function Net:validation_step(batch)
        self.mean:update(batch[1])
        self.twice:update(batch[1])
      end
      function Net:on_validation_epoch_end()
        local all = text(self.mean:compute()) .. " " .. text(self.twice:compute())
        if rank() > 0 then return end
        local o = {sync = false}
        print(all, text(self.mean:compute(o)) .. " " .. text(self.twice:compute(o)))
      end
      -- Rank 0 sees 0 1 and 4 5, rank 1 2 3 and 6 7.
      trainer():validate(Net(), loader(8, 2), {verbose = false})
    ]])))
  end)

  it("that is not the one that others compute is an error", function()
    local status, _, err = logged.run(2, [[
      function Net:validation_step() end
      function Net:on_validation_epoch_end()
        local metric = rank() == 0 and lt.metrics.Mean() or lt.metrics.Accuracy()
        metric:compute()
      end
      trainer():validate(Net(), loader(8), {verbose = false})
    ]])
    assert.equal(1, status)
    assert.matches("compute: ranks ask for different metrics: Mean on rank 0, Accuracy on rank 1",
      err)
  end)

  it("that computes no number is an error that names the key", function()
    local status, _, err = logged.run(2, DATA .. [[
      function Net:validation_step(batch)
        self.f1 = self.f1 or lt.metrics.F1 {num_classes = 5, average = "none"}
        self.f1:update(batch[4], batch[3])
        self:log("each", self.f1)
      end
      trainer():validate(Net(), batches(4), {verbose = false})
    ]])
    assert.equal(1, status)
    assert.matches("log: 'each' needs a metric that computes one number: it computed a tensor "
      .. "%[5%]", err)
  end)

  it("computes its rank's own value in a callback of rank 0 alone, and in steps", function()
    assert.equal("0.5\t0\t4\n", (logged.output(2, [[
      function Net:init() self.w, self.mean = lt.parameter(lt.tensor {1.0}), lt.metrics.Mean() end
      local first, seen
      function Net:validation_step(batch)
        self.mean:update(batch[1])
        first = first or self.mean:compute()
      end
      local watch = lt.Callback:extend("Watch")
      watch.rank_zero_only = true
      function watch:on_validation_epoch_end(_, net) seen = net.mean:compute() end
      local all
      function Net:on_validation_end() all = self.mean:compute() end
      -- Rank 0 sees 0 1 and 4 5, rank 1 2 3 and 6 7.
      trainer({callbacks = {watch()}}):validate(Net(), loader(8, 2), {verbose = false})
      print(text(first), text(seen - 2.5), text(all + 0.5))
    ]])))
  end)
end)
