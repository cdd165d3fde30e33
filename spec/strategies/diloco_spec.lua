-- spec/strategies/diloco_spec.lua: DiLoCo, and averages of LocalSGD that overlap training.
-- tags: half, slow
local lt = require "ltrain"
local trained = require "spec.dist.trained"

local error_of = require("spec.trainer.tiny").error_of

-- A net of two layers in f64 and its samples. fit(strategy, options): the net, the Trainer.
local scripts <const> = trained.with [[
local rank = lt.dist.rank
local Net = lt.Module:extend("Net")
function Net:init()
  lt.seed(4)
  self.first = lt.nn.Linear(6, 5):to "f64"
  self.second = lt.nn.Linear(5, 1):to "f64"
end
function Net:forward(x) local hidden = self.first(x):tanh() return self.second(hidden) end
function Net:loss(x) return (self(x) - x:sum {dim = 2, keepdim = true}):square():mean() end
function Net:training_step(batch) return self:loss(batch[1]) end
function Net:configure_optimizers()
  return lt.optim[self.optimizer or "SGD"](self:parameters(), {lr = 0.05})
end
lt.seed(7)
local x = lt.randn(48, 6, {dtype = "f64"})
local function loader()
  return lt.data.DataLoader(lt.data.TensorDataset(x), {batch_size = 2})
end
local function fit(strategy, options, fit_options, net)
  local all = {strategy = strategy}
  for name, value in pairs(options or {}) do all[name] = value end
  local t = trainer(all)
  net = net or Net()
  t:fit(net, loader(), nil, fit_options)
  return net, t
end
local function copies(net)
  local list = {}
  for i, p in ipairs(net:parameters()) do list[i] = p:detach():to "cpu":clone() end
  return list
end
local function gap(a, b)
  local worst = 0.0
  for i in ipairs(a) do worst = math.max(worst, (a[i] - b[i]):abs():max():item()) end
  return worst
end
local function hash(net)
  local text = ""
  for _, p in ipairs(net:parameters()) do text = text .. lt.hash(p) end
  return text
end

-- In one process: `ranks` nets that take turns, each with its own samples. o: every, lr, momentum,
-- fragments (lists of numbers of parameters), overlap, ends(step, i). Returns the nets after
-- `steps` steps.
local function by_hand(o, ranks, steps)
  local nets, optimizers = {}, {}
  for r = 1, ranks do
    nets[r] = Net()
    optimizers[r] = lt.optim.SGD(nets[r]:parameters(), {lr = 0.05})
  end
  local anchor, velocity, ways = copies(nets[1]), {}, {}
  local function outer(k, mean)
    if o.plain then return mean end
    local d = anchor[k] - mean
    velocity[k] = velocity[k] and velocity[k] * o.momentum + d or d
    anchor[k] = anchor[k] - (d + velocity[k] * o.momentum) * o.lr
    return anchor[k]
  end
  local function values(k)
    local list = {}
    for r = 1, ranks do list[r] = nets[r]:parameters()[k]:detach():clone() end
    return list
  end
  for step = 0, steps - 1 do
    for r = 1, ranks do
      optimizers[r]:zero_grad()
      -- Of the 2 * ranks samples of a step rank r has two that follow each other.
      nets[r]:loss(x:narrow(1, step * 2 * ranks + 2 * r - 1, 2)):backward()
      optimizers[r]:step()
    end
    for i, fragment in ipairs(o.fragments) do
      local _ <close> = lt.allow_update()
      local _ <close> = lt.no_grad()
      local function land(k, before)
        local mean = before[1]
        for r = 2, ranks do mean = mean + before[r] end
        local new = outer(k, mean / ranks)
        for r = 1, ranks do
          local p = nets[r]:parameters()[k]
          p:copy_(p + new - before[r])
        end
      end
      if ways[i] and ways[i].due == step then
        for j, k in ipairs(fragment) do land(k, ways[i][j]) end
        ways[i] = nil
      end
      if o.ends(step, i) then
        local way = {due = step + o.overlap}
        for j, k in ipairs(fragment) do way[j] = values(k) end
        if o.overlap == 0 then
          for j, k in ipairs(fragment) do land(k, way[j]) end
        else
          ways[i] = way
        end
      end
    end
  end
  return nets
end
-- The weights of each rank after `steps` steps of a fit: a list of lists.
local function of_fit(strategy, steps)
  local net, all = Net(), nil
  function net:on_train_batch_end(_, _, i)
    if i ~= steps - 1 then return end
    local lists = {}
    for k, p in ipairs(self:parameters()) do lists[k] = lt.dist.all_gather(p:detach()):to "cpu" end
    all = {}
    for r = 1, lt.dist.world_size() do
      all[r] = {}
      for k, list in ipairs(lists) do all[r][k] = list[r] end
    end
  end
  fit(strategy, {max_steps = steps}, nil, net)
  return all
end
local function near(strategy, o, ranks, steps)
  local nets, all, worst = by_hand(o, ranks, steps), of_fit(strategy, steps), 0
  for r = 1, ranks do worst = math.max(worst, gap(copies(nets[r]), all[r])) end
  return worst < 1e-12
end
]]

local function prints(wanted, n, script)
  local out, err = scripts.output(n, script)
  assert.equal(wanted, (out:gsub("\t", " ")), err)
  return err
end

describe("DiLoCo", function()
  it("steps as a direct computation in one process does", function()
    prints("true true true\n", 2, [[
      local function ends(every) return function(step) return (step + 1) % every == 0 end end
      local one = {{1, 2, 3, 4}}
      print(near({"diloco", every = 3}, {lr = 0.7, momentum = 0.9, fragments = one, overlap = 0,
          ends = ends(3)}, 2, 8),
        near({"diloco", every = 2, outer = {lr = 0.5, momentum = 0.5}}, {lr = 0.5, momentum = 0.5,
          fragments = one, overlap = 0, ends = ends(2)}, 2, 7),
        near({"diloco", every = 3, overlap = 2}, {lr = 0.7, momentum = 0.9, fragments = one,
          overlap = 2, ends = ends(3)}, 2, 9))
    ]])
  end)

  it("averages fragments at steps of their own", function()
    -- Of 30, 5, 5 and 1 elements: the first is a fragment, the others are the second.
    prints("true true\n", 3, [[
      local function ends(step, i) return (step + 1) % 4 == (i == 1 and 2 or 0) end
      local two = {{1}, {2, 3, 4}}
      print(near({"diloco", every = 4, fragments = 2}, {lr = 0.7, momentum = 0.9, fragments = two,
          overlap = 0, ends = ends}, 3, 7),
        near({"diloco", every = 4, fragments = 2, overlap = true}, {lr = 0.7, momentum = 0.9,
          fragments = two, overlap = 1, ends = ends}, 3, 8))
    ]])
  end)

  it("is the mean with an outer lr of 1 and no momentum", function()
    prints("true\n", 2, [[
      local mean = copies((fit {"local_sgd", period = 1}))
      print(gap(mean, copies((fit {"diloco", every = 1, outer = {lr = 1, momentum = 0}}))) < 1e-13)
    ]])
  end)

  it("resumes exactly, with rounds and averages on their way", function()
    for _, strategy in ipairs { [["diloco", every = 4]],
      [["diloco", every = 4, fragments = 2, overlap = 3, warmup_steps = 2]],
      [["local_sgd", period = 3, overlap = 2]] } do
      prints("true true true\n", 2, ([[
        Net.optimizer = "Adam"
        local strategy = {%s}
        local whole = hash((fit(strategy, {max_epochs = 2})))
        for _, steps in ipairs {3, 5, 12} do
          local _, first = fit(strategy, {max_epochs = 2, max_steps = steps})
          first:save_checkpoint "after"
          local got = hash((fit(strategy, {max_epochs = 2}, {ckpt_path = "after"})))
          local net = Net()
          function net:on_train_batch_end()
            if self.trainer.global_step == steps then self.trainer:save_checkpoint "within" end
          end
          local saving = hash((fit(strategy, {max_epochs = 2}, nil, net)))
          local second = hash((fit(strategy, {max_epochs = 2}, {ckpt_path = "within"})))
          io.write(tostring(got == whole and saving == whole and second == whole),
            steps == 12 and "\n" or " ")
        end
      ]]):format(strategy))
    end
  end)

  it("resumes on another number of ranks from the mean, with the outer state", function()
    prints("true true true\n", nil, [[
      local strategy = {"diloco", every = 4, overlap = 2}
      local _, t = fit(strategy, {devices = 2, max_steps = 5}) -- an average is on its way
      t:save_checkpoint "cut"
      local saved = require "ltrain.files.checkpoint_file".read "cut"
      local shared, seen = saved.strategy.state.rounds[1], nil
      local net = Net()
      function net:on_train_batch_start()
        if seen then return end
        local s = self.trainer.strategy
        local round = s.rounds[ self.trainer.optimizers[1] ]
        seen = {s.anchors[self.first.weight], round.averages[1].before[1],
          round.averages[1].means[1], self.first.weight:detach()}
        for i, tensor in ipairs(seen) do seen[i] = tensor:to "cpu":clone() end
      end
      fit(strategy, {devices = 3}, {ckpt_path = "cut"}, net)
      print(gap({seen[1]}, {shared.outer.anchors["first.weight"]}) == 0,
        gap({seen[2]}, {seen[3]}) == 0,
        gap({seen[4]}, {saved.state_dict["first.weight"]}) == 0)
    ]])
  end)

  it("ends, validates and saves with the mean of all ranks", function()
    prints("true true\n", 2, [[
      for _, strategy in ipairs {{"diloco", every = 5}, {"diloco", every = 5, overlap = 3}} do
        local net, after = Net(), nil
        function net:on_train_end() after = lt.dist.all_gather(hash(self)) end
        fit(strategy, {max_steps = 6}, nil, net)
        io.write(tostring(after[1] == after[2] and after[1] == hash(net)), _ == 1 and " " or "\n")
      end
    ]])
  end)

  it("leaves parameters as they are that no rank steps", function()
    prints("true true\n", 3, [[
      for i, strategy in ipairs {{"diloco", every = 2}, {"local_sgd", period = 2, overlap = 1}} do
        local net = Net()
        net.idle = lt.parameter(lt.randn(64))
        local before = lt.hash(net.idle)
        fit(strategy, nil, nil, net)
        io.write(tostring(before == lt.hash(net.idle)), i == 1 and " " or "\n")
      end
    ]])
  end)

  it("is one process on 1 rank", function()
    prints("true\n", 1, [[
      print(hash((fit {"diloco", every = 2})) == hash((fit "single_device")))
    ]])
  end)

  it("refuses options that do not fit each other", function()
    local DiLoCo, LocalSGD = lt.strategies.DiLoCo, lt.strategies.LocalSGD
    assert.matches("strategies.DiLoCo: overlap must be below the 4 steps between averagings: got 4",
      error_of(DiLoCo, { every = 4, overlap = 4 }))
    assert.matches("strategies.LocalSGD: overlap must be below the 1 steps between averagings",
      error_of(LocalSGD, { period = 1, overlap = true }))
    assert.matches("strategies.DiLoCo: fragments must be at most every: got 5 and 4",
      error_of(DiLoCo, { every = 4, fragments = 5 }))
    assert.matches("strategies.DiLoCo: outer: unknown option 'learning_rate'",
      error_of(DiLoCo, { outer = { learning_rate = 1 } }))
    assert.matches("strategies.DiLoCo: unknown option 'period'",
      error_of(DiLoCo, { period = 4 }))
    local status, _, err = scripts.run(2, [[fit("diloco", {deterministic = "world"})]])
    assert.equal(1, status)
    assert.matches("strategies.DiLoCo: deterministic = 'world' needs results that do not", err)
  end)
end)

describe("LocalSGD with overlap", function()
  it("adds what an average has made different, so many steps later", function()
    prints("true true\n", 2, [[
      local function ends(step) return step % 4 == 0 end
      local o = {plain = true, fragments = {{1, 2, 3, 4}}, ends = ends, overlap = 3}
      print(near({"local_sgd", period = 4, overlap = 3}, o, 2, 10),
        near({"local_sgd", period = 4, overlap = true}, {plain = true, fragments = o.fragments,
          ends = ends, overlap = 1}, 2, 10))
    ]])
  end)
end)
