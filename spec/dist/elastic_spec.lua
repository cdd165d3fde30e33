-- spec/dist/elastic_spec.lua: the scaling rules: fits that are resumed on other numbers of ranks
-- than they began with (option `elastic`).
-- tags: sampled, slow, third
local over = require "spec.dist.over"
local trained = require "spec.dist.trained"

-- A net in f64 that counts the samples that each epoch has read, on all ranks. fit{legs = {{ranks,
-- up to step}, ...}, loader =, ...}: a fit in as many parts as there are legs, each resumed from
-- the file of the one before; returns the last Trainer and its net, the counts: [epoch][sample],
-- and how many samples each optimizer step had.
local scripts <const> = trained.with [[
lt.seed(3)
local N <const> = 44
local Net = lt.Module:extend("Net")
function Net:init(o)
  self.first, self.second = lt.nn.Linear(2, 5), lt.nn.Linear(5, 1)
  self:to("f64")
  self.mean, self.o, self.seen = lt.metrics.Mean(), o, {}
end
function Net:training_step(batch)
  if batch.a then batch = batch.a end
  local x, id = batch[1], batch[2]
  for _, i in ipairs(id:tolist()) do
    table.insert(self.seen, {self.current_epoch, i, self.global_step})
  end
  if self.o.most and x.shape[1] > self.o.most then error "a part is too large" end
  local loss = (self.second(self.first(x):tanh()) - x:sum(2, true)):pow(2):mean()
  self:log("loss", loss, {on_epoch = true, on_step = false})
  self:log("ids", id:to("f64"):mean(), {on_epoch = true, on_step = false})
  self.mean:update(id)
  self:log("mean", self.mean, {on_epoch = true, on_step = false})
  return loss
end
function Net:configure_optimizers()
  local sgd = lt.optim.SGD(self:parameters(), {lr = 0.1, momentum = 0.9})
  local schedule = lt.optim.StepLR(sgd, 4, {gamma = 0.5, warmup = self.o.warmup})
  return {optimizer = sgd, lr_scheduler = {scheduler = schedule, interval = "step"}}
end
function Net:on_fit_end() self.all = lt.dist.all_gather(self.seen) end
local x = lt.randn(N, 2, {dtype = "f64"})
local data = lt.data.TensorDataset(x, lt.arange(N))
local function loader(o)
  o.shuffle, o.seed = o.shuffle ~= false, 4
  return lt.data.DataLoader(data, o)
end
local function fit(o)
  local counts, steps, net, t = {}, {}, nil, nil
  for i, leg in ipairs(o.legs) do
    lt.seed(3)
    net = Net(o)
    local options = {devices = leg[1], max_steps = leg[2] or -1, max_epochs = o.epochs or 2,
      elastic = o.elastic, accumulate_grad_batches = o.accumulate, strategy = o.strategy,
      deterministic = o.deterministic, allow_batch_change = o.allow_batch_change,
      world_slices = o.world_slices, limit_train_batches = o.limit}
    t = trainer(options)
    t:fit(net, o.loader(), nil, i > 1 and {ckpt_path = "leg.ckpt"} or nil)
    t:save_checkpoint "leg.ckpt"
    for _, seen in ipairs(net.all) do
      for _, one in ipairs(seen) do
        counts[one[1] ] = counts[one[1] ] or {}
        counts[one[1] ][one[2] ] = (counts[one[1] ][one[2] ] or 0) + 1
        steps[one[3] ] = (steps[one[3] ] or 0) + 1
      end
    end
  end
  os.remove "leg.ckpt"
  return t, net, counts, steps
end
local function weights(net)
  local all = {}
  for _, p in ipairs(net:parameters()) do
    for _, value in ipairs(p:reshape {-1}:tolist()) do all[#all + 1] = value end
  end
  return all
end
local function distance(a, b)
  local most = 0
  for i, value in ipairs(weights(a)) do most = math.max(most, math.abs(value - weights(b)[i])) end
  return most
end
-- "44 once" of an epoch whose samples were all read once.
local function counted(counts, epoch)
  local once, others = 0, 0
  for _, n in pairs(counts[epoch] or {}) do
    if n == 1 then once = once + 1 else others = others + 1 end
  end
  return others == 0 and once .. " once" or ("%d once, %d other"):format(once, others)
end
local function near(t, wanted)
  local a, b = t.callback_metrics, wanted.callback_metrics
  for _, name in ipairs {"loss", "ids", "mean"} do
    if math.abs(a[name] - b[name]) > 1e-9 * math.abs(b[name]) then return false end
  end
  return true
end
]]

local function run(script) return scripts.output(nil, script) end

describe("elastic = {batch = 'global'}, the default", function()
  it("keeps batches, steps, metrics and weights on other numbers of ranks, in mid-epoch", function()
    local out, err = run [[
      local function straight() return loader {batch_size = 2} end
      local t, net, _, steps = fit {legs = {{4}}, loader = straight}
      local u, other, counts, same = fit {legs = {{4, 2}, {3, 4}, {1, 5}, {5, 9}, {2}},
        loader = straight}
      print(t.global_step, u.global_step, counted(counts, 0), counted(counts, 1))
      print(distance(net, other) < 1e-10, near(u, t), t.optimizers[1].param_groups[1].lr ==
        u.optimizers[1].param_groups[1].lr)
      for step, n in pairs(steps) do assert(same[step] == n) end
    ]]
    assert.equal("12\t12\t44 once\t44 once\ntrue\ttrue\ttrue\n", out)
    assert.matches("resumed on 3 ranks %(was 4%): global batch 8 kept, accumulation 1 %-> 2, lr "
      .. "unchanged", err)
    assert.matches("resumed on 1 rank %(was 3%): global batch 8 kept, accumulation 2 %-> 4", err)
    assert.matches("resumed on 5 ranks %(was 1%): global batch 8 kept, accumulation 4 %-> 1", err)
  end)

  it("computes no more samples at once than a batch of a rank had", function()
    local out, err = run [[
      local _, _, counts = fit {legs = {{4, 1}, {1, 3}, {3}}, most = 3, epochs = 1,
        loader = function() return loader {global_batch_size = 11} end, accumulate = 2}
      print(counted(counts, 0))
    ]]
    assert.equal("44 once\n", out)
    assert.matches("accumulation 2 %-> 8", err)
  end)

  it("leaves ranks without samples that are more than a batch has", function()
    local out = run [[
      local function small() return loader {batch_size = 1} end
      local _, net = fit {legs = {{2}}, epochs = 1, loader = small}
      local t, other, counts = fit {legs = {{2, 3}, {5, 7}, {1}}, epochs = 1, loader = small}
      print(t.global_step, counted(counts, 0), distance(net, other) < 1e-10)
    ]]
    assert.equal("22\t44 once\ttrue\n", out)
  end)

  for _, case in ipairs {
    { "with drop_last", "batch_size = 3, drop_last = true", "", "36 once" },
    { "with a short last batch", "batch_size = 3", "", "44 once" },
    { "unshuffled, in windows of 3", "batch_size = 2, shuffle = false", "accumulate = 3,",
      "44 once" },
    { "with a limit", "batch_size = 2", "limit = 4,", "32 once" },
    { "with a global batch size", "global_batch_size = 7", "", "44 once" },
  } do
    it("reads each sample once at random changes " .. case[1], function()
      local out = run(([[
        local function make() return loader {%s} end
        local straight, net = fit {legs = {{4}}, loader = make, %s}
        for seed = 1, 3 do
          math.randomseed(seed)
          local legs, step = {{4, 1}}, 1
          for i = 1, 6 do
            step = step + math.random(2)
            legs[#legs + 1] = {math.random(5), step}
          end
          legs[#legs + 1] = {math.random(5)}
          local t, other, counts = fit {legs = legs, loader = make, %s}
          print(counted(counts, 0), counted(counts, 1), t.global_step == straight.global_step,
            distance(net, other) < 1e-10, near(t, straight))
        end
      ]]):format(case[2], case[3], case[3]))
      assert.equal(("%s\t%s\ttrue\ttrue\ttrue\n"):format(case[4], case[4]):rep(3), out)
    end)
  end

  it("keeps the batches of several loaders", function()
    local out = run [[
      local function both()
        return {a = loader {batch_size = 2}, b = lt.data.DataLoader(
          lt.data.TensorDataset(lt.arange(24)), {batch_size = 2})}
      end
      local straight, net = fit {legs = {{4}}, loader = both}
      local t, other, counts = fit {legs = {{4, 2}, {3, 4}, {1, 8}, {5}}, loader = both}
      print(counted(counts, 0), counted(counts, 1), t.global_step == straight.global_step,
        distance(net, other) < 1e-10)
    ]]
    assert.equal("44 once\t44 once\ttrue\ttrue\n", out)
  end)

  for _, strategy in ipairs { "zero1", "ddp_sharded", "fsdp" } do
    it("holds under strategy = " .. strategy, function()
      local out = run(([[
        local function make() return loader {batch_size = 2} end
        local straight, net = fit {legs = {{4}}, loader = make}
        local t, other, counts = fit {legs = {{4, 2}, {3, 4}, {2, 8}, {5}}, loader = make,
          strategy = %q}
        print(counted(counts, 0), counted(counts, 1), t.global_step == straight.global_step,
          distance(net, other) < 1e-10, near(t, straight))
      ]]):format(strategy))
      assert.equal("44 once\t44 once\ttrue\ttrue\ttrue\n", out)
    end)
  end

  it("counts ranks that read different samples, under tensor parallel", function()
    local out, err = run [[
      local function make() return loader {batch_size = 2} end
      local function parallel(legs)
        return fit {legs = legs, loader = make, epochs = 1,
          strategy = {"model_parallel", tensor_parallel_size = 2}}
      end
      local straight, net = parallel {{4}}
      local t, other, counts = parallel {{4, 4}, {2}}
      print(t.global_step == straight.global_step, distance(net, other) < 1e-10)
    ]]
    assert.equal("true\ttrue\n", out)
    assert.matches("resumed on 1 data rank %(was 2%): global batch 4 kept, accumulation 1 %-> 2",
      err)
  end)

  it("resumes a shared stream of samples", function()
    local out = run [[
      local Stream = lt.data.IterableDataset:extend("Stream")
      function Stream:shard(rank, world) self.rank, self.world = rank, world end
      function Stream:iterate()
        local i = (self.rank or 0) - (self.world or 1)
        return function()
          i = i + (self.world or 1)
          if i < N then return {x[i + 1], lt.tensor(i)} end
        end
      end
      local function stream() return lt.data.DataLoader(Stream(), {batch_size = 2}) end
      for _, rule in ipairs {"global", "per_rank"} do
        local t, _, counts = fit {legs = {{4, 2}, {2, 3}, {1, 4}, {4}}, loader = stream,
          elastic = {batch = rule}}
        print(counted(counts, 0), counted(counts, 1))
      end
    ]]
    assert.equal("44 once\t44 once\n44 once\t44 once\n", out)
  end)

  it("leaves a batch size that the script has changed as it is", function()
    local status, _, err = scripts.run(nil, [[
      local size = 2
      fit {legs = {{2, 2}, {1}}, loader = function()
        size = size * 2
        return loader {batch_size = size / 2}
      end, epochs = 1}
      local first = true
      fit {legs = {{2, 2}, {2}}, loader = function()
        local one = loader {batch_size = first and 2 or 3}
        first = false
        return one
      end, epochs = 1}
    ]])
    assert.equal(1, status)
    assert.matches("was written with a global batch of 4, this run has 6: a scheduler that counts "
      .. "steps would behave differently", err)
    assert.not_matches("this run has 4", err)
  end)
end)

describe("elastic = {batch = 'per_rank'}", function()
  for _, mode in ipairs { "min_size", "max_size", "max_size_cycle", "sequential" } do
    it("reads each sample of several loaders once: " .. mode, function()
      local out = run(([[
        local counts = {a = {}, b = {}}
        local Pair = lt.Module:extend("Pair")
        function Pair:init() self.w, self.seen = lt.parameter(lt.tensor {1.0}), {} end
        function Pair:training_step(batch)
          local parts = type(batch) == "table" and batch[1] and {a = batch} or batch
          for name, part in pairs(parts) do
            for _, i in ipairs(part[1]:tolist()) do table.insert(self.seen, {name, i}) end
          end
          return self.w:sum()
        end
        function Pair:on_fit_end() self.all = lt.dist.all_gather(self.seen) end
        function Pair:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.1}) end
        local function both()
          local function of(from, n, size)
            return lt.data.DataLoader(lt.data.TensorDataset(lt.arange(from, from + n)),
              {batch_size = size, shuffle = true, seed = 1})
          end
          return lt.data.CombinedLoader({a = of(0, 24, 2), b = of(100, 12, 1)}, %q)
        end
        for i, leg in ipairs {{4, 1}, {3, 2}, {3, 3}, {2, 4}, {1, 5}, {4, -1}} do
          local net = Pair()
          local t = trainer {devices = leg[1], max_steps = leg[2], max_epochs = 1,
            elastic = {batch = "per_rank"}}
          t:fit(net, both(), nil, i > 1 and {ckpt_path = "leg.ckpt"} or nil)
          t:save_checkpoint "leg.ckpt"
          for _, seen in ipairs(net.all) do
            for _, one in ipairs(seen) do
              local of = one[2] < 100 and counts.a or counts.b
              of[one[2] ] = (of[one[2] ] or 0) + 1
            end
          end
        end
        print(counted(counts, "a"), counted(counts, "b"))
      ]]):format(mode))
      assert.equal("24 once\t12 once\n", out)
    end)
  end

  for _, rule in ipairs {
    { "linear", 0.75, 0.25 }, { "sqrt", 0.75 ^ 0.5, 0.5 }, { "keep", 1, 1 },
  } do
    it(("keeps the batch of a rank, and multiplies learning rates: lr = '%s'"):format(rule[1]),
      function()
        local out, err = run(([[
          local function make() return loader {batch_size = 2} end
          local elastic = {batch = "per_rank", lr = %q}
          local function rate(legs)
            local t, _, counts, steps = fit {legs = legs, loader = make, elastic = elastic,
              warmup = 2, epochs = 1}
            return t.optimizers[1].param_groups[1].lr, t.global_step, steps[t.global_step - 1],
              counted(counts, 0)
          end
          local _, _, _, all = rate {{4, 2}, {3}}
          print(all)
          for _, legs in ipairs {{{4, 3}}, {{4, 2}, {3, 3}}, {{4, 1}, {3, 2}, {1, 3}},
            {{4, 1}, {3, 2}, {4, 3}}} do
            local lr, steps, samples = rate(legs)
            print(("%%.12f %%d %%d"):format(lr, steps, samples))
          end
        ]]):format(rule[1]))
        local function line(factor, samples)
          return ("%.12f 3 %d\n"):format(0.1 * factor, samples)
        end
        assert.equal("44 once\n" .. line(1, 8) .. line(rule[2], 6) .. line(rule[3], 2)
          .. line(1, 8), out)
        assert.matches(rule[1] == "keep" and "%(8 at the start%), accumulation 1, lr unchanged"
          or "global batch 6 %(8 at the start%), accumulation 1, lr x 0%.%d+", err)
      end)
  end
end)

describe("deterministic = 'world'", function()
  over({ "shm", "mpi" }, "gives the same bits on 3 ranks", function(way)
    local script = [[
      local t = trainer {deterministic = "world", max_epochs = 1, accumulate_grad_batches = 2}
      local net = Net {}
      t:fit(net, loader {global_batch_size = 10})
      for _, value in ipairs(weights(net)) do print(("%.17g"):format(value)) end
    ]]
    assert.equal(scripts.over("shm", 1, script), scripts.over(way, 3, script))
  end)

  it("gives the same bits after changes of the number of ranks", function()
    local out = run [[
      local function make() return loader {global_batch_size = 10} end
      local o = {loader = make, deterministic = "world", world_slices = 8, accumulate = 2}
      o.legs = {{1}}
      local _, net = fit(o)
      for _, legs in ipairs {{{4, 2}, {3, 3}, {5, 4}, {2}}, {{7, 1}, {3, 5}, {8}}} do
        o.legs = legs
        local _, other, counts = fit(o)
        print(distance(net, other) == 0, counted(counts, 0), counted(counts, 1))
      end
    ]]
    assert.equal(("true\t44 once\t44 once\n"):rep(2), out)
  end)

  it("needs a slice for each rank", function()
    local status, _, err = scripts.run(nil, [[
      fit {legs = {{3}}, loader = function() return loader {global_batch_size = 10} end,
        deterministic = "world", world_slices = 2}
    ]])
    assert.equal(1, status)
    assert.matches("deterministic = 'world': 3 ranks cannot share 2 slices: give world_slices = a "
      .. "power of two, at least 3", err)
  end)
end)
