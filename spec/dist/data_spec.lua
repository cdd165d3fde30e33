-- spec/dist/data_spec.lua: how the loaders of a fit are shared by its ranks.
-- tags: sampled, slow
local over = require "spec.dist.over"
local trained = require "spec.dist.trained"

-- A net that remembers the samples of its steps; `seen_by_all` prints those of all ranks.
local scripts <const> = trained.with [[
lt.seed(3)
local Net = lt.Module:extend("Net")
function Net:init()
  self.layer = lt.nn.Linear(1, 1)
  self.seen, self.evaluated = {}, {}
end
function Net:training_step(batch, index)
  local x = batch[1]
  table.insert(self.seen, ("%d:%s"):format(index, table.concat(x:to("i64"):tolist(), ",")))
  return self.layer(x:to("f32"):reshape {-1, 1}):pow(2):mean()
end
function Net:validation_step(batch, index)
  table.insert(self.evaluated,
    ("%d:%s"):format(index, table.concat(batch[1]:to("i64"):tolist(), ",")))
end
function Net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.001}) end
function Net:on_fit_end()
  for _, name in ipairs {"seen", "evaluated"} do
    local lists = lt.dist.all_gather(table.concat(self[name], " "))
    if lt.dist.rank() == 0 then
      for _, list in ipairs(lists) do if list ~= "" then print(list) end end
    end
  end
end
local function numbers(count) return lt.data.TensorDataset(lt.arange(count) + 1) end
local function loader(count, options) return lt.data.DataLoader(numbers(count), options) end
]]

local start <const>, run <const> = scripts.run, scripts.output

describe("the training data of ranks", function()
  it("is cut by global_batch_size, which is said", function()
    local out, err = run(2, [[
      local t = trainer {}
      t:fit(Net(), loader(10, {global_batch_size = 4}))
      print(t.world.global_batch, t.num_training_batches)
    ]])
    assert.equal("0:1,2 1:5,6 2:9\n0:3,4 1:7,8 2:10\n4\t3\n", out)
    assert.matches("global batch 4 = 2 x 2, 3 steps an epoch %(3 on 1 rank%)", err)
  end)

  it("is cut unevenly where a global batch cannot be divided", function()
    local out, err = run(3, [[
      trainer {}:fit(Net(), loader(9, {global_batch_size = 5}))
    ]])
    assert.equal("0:1,2 1:6,7\n0:3,4 1:8\n0:5 1:9\n", out)
    assert.matches("global batch 5 = 2 x 2 %+ 1 x 1, 2 steps an epoch", err)
  end)

  it("is more in a step with batch_size for each rank, which is said", function()
    local out, err = run(2, [[
      local t = trainer {accumulate_grad_batches = 2}
      t:fit(Net(), loader(10, {batch_size = 2}))
      print(t.world.global_batch, t.global_step)
    ]])
    assert.equal("0:1,2 1:5,6 2:9\n0:3,4 1:7,8 2:10\n4\t2\n", out)
    assert.matches("global batch 4 = 2 x 2, 2 steps an epoch %(3 on 1 rank%)", err)
  end)

  it("leaves a rank out of a step for which it has no sample", function()
    local out = run(3, [[
      local t = trainer {}
      t:fit(Net(), loader(7, {batch_size = 2}))
      print(t.global_step)
    ]])
    assert.equal("0:1,2 1:7\n0:3,4\n0:5,6\n2\n", out)
  end)

  it("may be fewer samples than ranks", function()
    local out = run(4, [[
      local net = Net()
      trainer {}:fit(net, loader(1), loader(3))
    ]])
    assert.equal("0:1\n0:1\n0:2\n0:3\n", out)
  end)

  it("keeps the order of a sampler, and deals the batches of a batch sampler", function()
    local out = run(2, [[
      trainer {}:fit(Net(), loader(6, {sampler = {6, 5, 4, 3, 2, 1}, batch_size = 2}))
      trainer {}:fit(Net(), loader(6, {batch_sampler = {{1, 2, 3}, {4}, {5, 6}}}))
    ]])
    assert.equal("0:6,5 1:2\n0:4,3 1:1\n0:1,2,3 1:5,6\n0:4\n", out)
  end)

  it("is another order in each epoch, the same cut of it on all ranks", function()
    local script = [[
      local net = Net()
      trainer {max_epochs = 3}:fit(net, loader(6, {shuffle = true, global_batch_size = 6}))
    ]]
    local whole = run(1, script)
    local halves = run(2, script)
    local joined = {}
    local first, second = halves:match("^(.-)\n(.-)\n$")
    local others = second:gmatch("0:(%S+)")
    for part in first:gmatch("%S+") do joined[#joined + 1] = part .. "," .. others() end
    assert.equal(whole, table.concat(joined, " ") .. "\n")
    assert.not_equal(joined[1], joined[2])
  end)

  it("is left as it is by a sampler that shares it already", function()
    local out, err = run(2, [[
      local ds = numbers(5)
      local sampler = lt.data.DistributedSampler{dataset = ds, shuffle = false}
      trainer {}:fit(Net(), lt.data.DataLoader(ds, {sampler = sampler, batch_size = 2}))
    ]])
    assert.equal("0:1,3 1:5\n0:2,4 1:1\n", out)
    assert.not_matches("every rank reads all", err)
  end)

  it("is read whole by every rank with use_distributed_sampler = false", function()
    local out, err = run(2, [[
      trainer {use_distributed_sampler = false}:fit(Net(), loader(2, {batch_size = 2}))
      local t = trainer {use_distributed_sampler = false}
      t:fit(Net(), loader(2, {global_batch_size = 2}))
      print(t.world.global_batch)
    ]])
    assert.equal("0:1,2\n0:1,2\n0:1 1:2\n0:1 1:2\n2\n", out)
    assert.not_matches("every rank reads all", err)
  end)
end)

describe("batches of each rank's own", function()
  it("weigh by their samples, whatever the sizes are on the ranks", function()
    local out, err = run(2, [[
      local net, seen = Net()
      function net:train_dataloader()
        local first, last = table.unpack(({{1, 2}, {3, 8}})[lt.dist.rank() + 1])
        local own = lt.data.TensorDataset(lt.arange(first, last + 1))
        return lt.data.DataLoader(own, {batch_size = last - first + 1})
      end
      net.layer.weight = lt.parameter(lt.ones(1, 1))
      function net:training_step(batch)
        return (batch[1]:to("f32"):reshape {-1, 1} * self.layer.weight):mean()
      end
      function net:on_before_optimizer_step() seen = self.layer.weight.grad:item() end
      local t = trainer {use_distributed_sampler = false}
      t:fit(net)
      print(seen, t.world.global_batch)
    ]])
    assert.equal("4.5\t8\n", out) -- the mean of 1 to 8
    assert.matches("global batch 8, 1 steps an epoch", err)
  end)
end)

describe("samples that draw random numbers", function()
  it("are the same on 1, 2 and 4 ranks, in each epoch, whoever reads them", function()
    local script <const> = [[
      local Noisy = lt.data.Dataset:extend("Noisy")
      function Noisy:__len() return 13 end
      function Noisy:get(i) return {i, lt.rand(1), math.random(1000)} end
      local net = Net()
      function net:training_step(batch)
        for k, i in ipairs(batch[1]:tolist()) do
          table.insert(self.seen, ("%d %02d %a %d"):format(self.current_epoch, i,
            batch[2][k]:item(), batch[3][k]:item()))
        end
        return self.layer(batch[2]:reshape {-1, 1}):mean()
      end
      function net:on_fit_end()
        local all = {}
        for _, seen in ipairs(lt.dist.all_gather(self.seen)) do
          table.move(seen, 1, #seen, #all + 1, all)
        end
        table.sort(all)
        if lt.dist.rank() == 0 then print(table.concat(all, "\n")) end
      end
      trainer {max_epochs = 2}:fit(net,
        lt.data.DataLoader(Noisy(), {global_batch_size = 4, shuffle = true}))
    ]]
    local wanted = run(1, script)
    assert.equal(26, select(2, wanted:gsub("\n", "")))
    assert.not_equal(wanted:match "^0 01 (%S+)", wanted:match "\n1 01 (%S+)")
    for _, n in ipairs { 2, 4 } do assert.equal(wanted, (run(n, script))) end
  end)
end)

describe("a collate that draws random numbers", function()
  local NOISY <const> = [[
    local net = Net()
    function net:training_step(batch)
      table.insert(self.seen, ("%.9f"):format(batch[1][1]:item()))
      return self.layer(batch[1]:reshape {-1, 1}):mean()
    end
    local noisy = loader(8, {global_batch_size = 8,
      collate = function(list) return {lt.rand(#list)} end})
  ]]

  it("draws apart on each rank", function()
    local out = run(2, NOISY .. "trainer {}:fit(net, noisy)")
    local first, second = out:match "^(%S+)\n(%S+)\n$"
    assert.not_equal(first, second)
    assert.equal(first .. "\n", (run(1, NOISY .. "trainer {}:fit(net, noisy)")))
  end)

  it("draws by slice with deterministic = 'world'", function()
    local script <const> = NOISY .. [[
      function net:on_fit_end()
        local all = {}
        for _, seen in ipairs(lt.dist.all_gather(self.seen)) do
          table.move(seen, 1, #seen, #all + 1, all)
        end
        if lt.dist.rank() == 0 then print(table.concat(all, " ")) end
      end
      trainer {deterministic = "world"}:fit(net, noisy)
    ]]
    local wanted = run(1, script)
    assert.equal(4, select(2, wanted:gsub("0%.", "")))
    for _, n in ipairs { 2, 4 } do assert.equal(wanted, (run(n, script))) end
  end)
end)

describe("batches of another size on some ranks", function()
  it("are an error that says which rank has which, before any step", function()
    local SCRIPT <const> = [[
      local net, rank = Net(), lt.dist.rank
      function net:training_step() error "a step was run" end
      net.validation_step, net.predict_step = net.training_step, net.training_step
      net.%s = function() return loader(21, %s) end
      trainer {}:%s(net)
    ]]
    for _, case in ipairs {
      { "train_dataloader", "{batch_size = 2 + rank() % 2}", "fit",
        "batch_size = 2 on ranks 0, 2; batch_size = 3 on rank 1" },
      { "val_dataloader", "{global_batch_size = 4 + rank()}", "validate",
        "global_batch_size = 4 on rank 0; global_batch_size = 5 on rank 1; "
        .. "global_batch_size = 6 on rank 2" },
      { "predict_dataloader", "{batch_size = 2, drop_last = rank() > 0}", "predict",
        "batch_size = 2 on rank 0; batch_size = 2, drop_last = true on ranks 1, 2" },
      { "val_dataloader", "{batch_size = 2, tail = rank() == 2 and 'wrap' or 'split'}", "validate",
        "batch_size = 2 on ranks 0, 1; batch_size = 2, tail = 'wrap' on rank 2" },
    } do
      local status, _, err = start(3, SCRIPT:format(case[1], case[2], case[3]))
      assert.equal(1, status)
      assert.matches(case[1] .. ": the ranks would make different batches: " .. case[4]
        .. ": give all the same", err, 1, true)
      assert.not_matches("a step was run", err)
    end
  end)
end)

describe("data that some ranks do not have", function()
  local SCRIPT <const> = [[
    local net, rank = Net(), lt.dist.rank
    function net:training_step() error "a step was run" end
    function net:train_dataloader() return loader(8, {batch_size = 2}) end
    net.test_step = net.validation_step
    net.%s = function() return %s end
    trainer {num_sanity_val_steps = %d}:%s(net)
  ]]
  local ONE <const> = "rank() < 3 and loader(8, {batch_size = 2}) or nil"

  local function expect(wanted, hook, value, sanity_steps, fn)
    local status, _, err = start(4, SCRIPT:format(hook, value, sanity_steps, fn))
    assert.equal(1, status)
    assert.matches(("script.lua:31: %s: %s: %s must give the same number of loaders on every rank")
      :format(fn, wanted, hook), err, 1, true)
    assert.not_matches("a step was run", err)
  end

  it("is the same error in a later epoch, the first that validates", function()
    for _, hook in ipairs { "self.val_dataloader = nil", "function self:val_dataloader() end" } do
      local status, _, err = start(2, ([[
        local net = Net()
        function net:val_dataloader() return loader(4, {batch_size = 2}) end
        function net:setup() if lt.dist.rank() == 1 then %s end end
        trainer {check_val_every_n_epoch = 2, max_epochs = 2, num_sanity_val_steps = 0}:fit(net,
          loader(8, {batch_size = 2}))
      ]]):format(hook))
      assert.equal(1, status)
      assert.matches("the ranks have other validation data: 1 loader on rank 0; none on rank 1",
        err, 1, true)
    end
  end)

  it("is an error that says which data, and which ranks", function()
    expect("the ranks have other training data: 1 loader on ranks 0-2; none on rank 3",
      "train_dataloader", ONE, 2, "fit")
    expect("the ranks have other test data: 1 loader on ranks 0-2; none on rank 3",
      "test_dataloader", ONE, 2, "test")
    for _, sanity_steps in ipairs { 0, 2 } do
      expect("the ranks have other validation data: 1 loader on ranks 0-2; none on rank 3",
        "val_dataloader", ONE, sanity_steps, "fit")
    end
    expect("the ranks have other validation data: none on ranks 0, 2; 2 loaders on ranks 1, 3",
      "val_dataloader", "rank() % 2 == 1 and {loader(3), loader(4)} or nil", 0, "fit")
  end)
end)

describe("a sampler that is not the same on all ranks", function()
  it("is an error that names it and the orders, before any step", function()
    local status, _, err = start(2, [[
      local function draw()
        local list = {}
        for i = 1, 6 do list[i] = (i + lt.dist.rank()) % 6 + 1 end
        return list
      end
      local net = Net()
      function net:training_step() error "a step was run" end
      trainer {}:fit(net, loader(6, {sampler = draw}))
    ]])
    assert.equal(1, status)
    assert.matches("train_dataloader: the ranks would read different orders: rank 0 has 6 samples "
      .. "beginning 2, 3, 4; rank 1 has 6 samples beginning 3, 4, 5: the sampler %(a function at "
      .. "script.lua:27%) must be the same on every rank", err)
    assert.not_matches("a step was run", err)
  end)

  over({ "mpi", "two hosts" }, "is one too, in a call that is guarded,", function(way)
    assert.equal("false\tthe ranks would read different orders: rank 0 has 4 samples beginning "
      .. "1, 2, 3; rank 1 has 4 samples beginning 2, 2, 3: the sampler\n",
      (scripts.over(way, 2, [[
        local ok, text = pcall(function()
          local sampler = {1 + lt.dist.rank(), 2, 3, 4}
          trainer {}:fit(Net(), loader(4, {sampler = function() return sampler end}))
        end)
        print(ok, text:match "the ranks would read different orders: .-: the sampler")
      ]])))
  end)

  it("is found in a later epoch too, and in validation", function()
    for call, good in pairs { ["fit(Net(), bad)"] = 1, ["validate(Net(), bad)"] = 0 } do
      local status, _, err = start(2, ([[
        local bad = loader(6, {batch_sampler = function(epoch)
          return {{1, 2}, {3, epoch < %d and 4 or 5 + lt.dist.rank()}}
        end})
        trainer {max_epochs = 2}:%s]]):format(good, call))
      assert.equal(1, status)
      assert.matches("the ranks would read different orders", err)
    end
  end)

  it("also when the data sets have other lengths", function()
    local status, _, err = start(2, [[
      local net = Net()
      function net:train_dataloader() return loader(6 + lt.dist.rank()) end
      trainer {}:fit(net)
    ]])
    assert.equal(1, status)
    assert.matches("rank 0 has 6 samples beginning 1, 2, 3; rank 1 has 7 samples .*: the data set "
      .. "must be the same on every rank", err)
  end)
end)

describe("the evaluation data of ranks", function()
  -- What is printed when the samples 1 .. count were seen once, for all counts.
  local function each_once(counts)
    local lines = {}
    for k, count in ipairs(counts) do
      local ids = {}
      for i = 1, count do ids[i] = i end
      lines[k] = table.concat(ids, " ") .. "\n"
    end
    return table.concat(lines)
  end

  over({ "shm", "two hosts" }, "may be gathered in a step, of ranks that have any,", function(way)
    local n = way == "shm" and 3 or 4
    assert.equal(each_once { 1, n - 1, n, n + 1, 2 * n + 1 }, (scripts.over(way, n, [[
      for _, count in ipairs {1, n - 1, n, n + 1, 2 * n + 1} do
        local net, all = Net(), {}
        function net:validation_step(batch)
          for _, i in ipairs(lt.dist.all_gather(batch[1], {cat = true}):tolist()) do
            all[#all + 1] = i
          end
        end
        trainer {}:validate(net, loader(count, {batch_size = 2}), {verbose = false})
        print(table.concat(all, " "))
      end
    ]])))
  end)

  it("needs cat = true to be gathered where ranks have unequal parts", function()
    local status, _, err = start(3, [[
      local net = Net()
      function net:validation_step(batch) lt.dist.all_gather(batch[1]) end
      trainer {}:validate(net, loader(4, {batch_size = 2}), {verbose = false})
    ]])
    assert.equal(1, status)
    assert.matches("cat = true", err)
  end)

  over({ "shm", "two hosts" }, "is seen once for any number of samples, in as many steps on each "
    .. "rank,", function(way)
    local n = way == "shm" and 3 or 4
    assert.equal(each_once { 1, n - 1, n, n + 1, n + 2, 2 * n + 1, 3 * n },
      (scripts.over(way, n, [[
        for _, count in ipairs {1, n - 1, n, n + 1, n + 2, 2 * n + 1, 3 * n} do
          local net, seen = Net(), {}
          function net:on_validation_end()
            local lists = lt.dist.all_gather(self.evaluated)
            for _, steps in ipairs(lists) do
              for _, step in ipairs(steps) do
                for i in step:match(":.*"):gmatch "%d+" do seen[#seen + 1] = tonumber(i) end
              end
              assert(#steps == #lists[1] or count < n)
            end
          end
          trainer {}:validate(net, loader(count, {batch_size = 2}), {verbose = false})
          table.sort(seen)
          print(table.concat(seen, " "))
        end
      ]])))
  end)
end)

describe("a rank whose slices have no sample, with deterministic = 'world',", function()
  it("is outside of the step", function()
    -- 4 slices of a batch of 4 and of one of 2: that one is rank 0's.
    assert.equal("0:1 0:2 1:5 1:6\n0:3 0:4\n2 1\n", run(2, [[
      local net, counts = Net(), {}
      function net:on_train_batch_end()
        table.insert(counts, lt.dist.all_reduce(1))
      end
      trainer {deterministic = "world"}:fit(net, loader(6, {global_batch_size = 4}))
      print(table.concat(counts, " "))
    ]]))
  end)
end)

describe("limited evaluation data of ranks", function()
  it("is what one process sees", function()
    -- 8 samples in batches of 5: 4 ranks share them as 4 and 4, but the first batch alone is 5.
    scripts.same [[
      local Net = lt.Module:extend "Net"
      function Net:validation_step(batch)
        self:log("most", batch[1]:to("f32"):amax(), {reduce_fx = "max"})
        self:log("count", batch[1]:numel(), {reduce_fx = "sum"})
      end
      local t = trainer {limit_val_batches = 1}
      t:validate(Net(), lt.data.DataLoader(lt.data.TensorDataset(lt.arange(8)),
        {global_batch_size = 5}))
      print(t.callback_metrics.most, t.callback_metrics.count)
    ]]
  end)
end)

describe("data that comes one after the other", function()
  local COUNT <const> = [[
    local Count = lt.data.IterableDataset:extend("Count")
    function Count:iterate()
      local i = (self.rank or 0) - (self.world or 1)
      return function()
        i = i + (self.world or 1)
        if i < 5 then return {i + 1} end
      end
    end
  ]]

  it("is read whole by every rank, with a warning", function()
    local out, err = run(2, COUNT .. [[
      trainer {}:fit(Net(), lt.data.DataLoader(Count(), {batch_size = 4}))
    ]])
    assert.equal("0:1,2,3,4 1:5\n0:1,2,3,4 1:5\n", out)
    assert.matches("every rank reads all of an object of class DataLoader", err)
  end)

  it("is shared when it shards itself, with any number of batches a rank", function()
    local out, err = run(2, COUNT .. [[
      function Count:shard(rank, world) self.rank, self.world = rank, world end
      trainer {}:fit(Net(), lt.data.DataLoader(Count(), {global_batch_size = 2}))
    ]])
    assert.equal("0:1 1:3 2:5\n0:2 1:4\n", out)
    assert.not_matches("every rank reads all", err)
  end)
end)
