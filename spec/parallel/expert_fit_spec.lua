-- spec/parallel/expert_fit_spec.lua: fits whose experts are divided among ranks are those of one
-- rank, and resume on other numbers.
-- tags: half, slow
local child = require "spec.cli.child"
local luassert = require "luassert"
local scripts = require("spec.dist.trained").with [[
local nn = lt.nn
local Net = lt.Module:extend "Net"
function Net:init(o)
  self.o = o or {}
  self.first, self.moe = nn.Linear(5, 4), nn.MoE(4, 6, 4, {bias = true})
  self.more, self.last = nn.MoE(4, 6, 2, {top_k = 1, activation = "gelu"}), nn.Linear(4, 1)
  self:to "f64"
end
function Net:configure_model()
  local mesh = self.device_mesh
  if not mesh or mesh:size() == 1 or rawget(self, "_divided") then return end
  lt.parallelize(self, mesh:sub "expert_parallel", {moe = lt.parallel.ExpertParallel(),
    more = lt.parallel.ExpertParallel()})
end
function Net:forward(x)
  x = self.first(x)
  x = x + self.moe(x)
  return self.last(x + self.more(x))
end
function Net:training_step(batch)
  local loss = (self(batch[1]) - 1):square():mean() + 0.1 * self.moe.z_loss
  self:log("loss", loss, {on_step = false, on_epoch = true, sync_dist = true})
  return loss
end
function Net:validation_step(batch) self:log("val", self(batch[1]):square():mean()) end
function Net:configure_optimizers() return lt.optim.AdamW(self:parameters(), {lr = 0.02}) end
lt.seed(5)
local x = lt.randn(32, 5):to "f64"
local function loader()
  return lt.data.DataLoader(lt.data.TensorDataset(x), {global_batch_size = 8, shuffle = true})
end
local function strategy(o)
  local all = {tensor_parallel_size = 1}
  for key, value in pairs(o) do all[key] = value end
  return lt.strategies.ModelParallelStrategy(all)
end
local function fit(ranks, o, options, path)
  lt.seed(1)
  local net, all = Net(), {devices = ranks, max_epochs = 2, gradient_clip_val = 0.3,
    strategy = o and strategy(o) or "single_device"}
  for key, value in pairs(options or {}) do all[key] = value end
  local t = trainer(all)
  t:fit(net, loader(), loader(), path and {ckpt_path = path})
  return net, t
end
-- How far weights, the optimizer's state and metrics are from those of another fit.
local function apart(a, s, b, t)
  local most = 0
  local function compare(one, other)
    for key, value in pairs(one) do
      if lt.is_tensor(value) then
        local by = (value - other[key]):abs():max():item()
        most = by == by and math.max(most, by) or math.huge
      elseif type(value) == "table" then compare(value, other[key]) end
    end
  end
  compare(a:state_dict(), b:state_dict())
  compare(s.optimizers[1]:state_dict().state, t.optimizers[1]:state_dict().state)
  for _, name in ipairs {"loss", "val"} do
    most = math.max(most, math.abs(s.callback_metrics[name] - t.callback_metrics[name]))
  end
  return most < 1e-9
end
]]

local function prints(wanted, script, folder)
  local out = scripts.output(nil, ("local folder = %q "):format(folder or "") .. script)
  luassert.equal(wanted, (out:gsub("\t", " ")))
end

describe("expert_parallel_size", function()
  it("trains to the weights, state and metrics of one rank", function()
    prints("true true\n", [[
      local a, s = fit(1)
      local results = {}
      for i, case in ipairs {{2, {expert_parallel_size = 2}},
        {4, {expert_parallel_size = 2, data_parallel_size = 2}}} do
        local b, t = fit(case[1], case[2])
        results[i] = apart(a, s, b, t)
      end
      print(table.unpack(results))
    ]])
  end)

  it("does so where experts are sharded among the ranks that have the same", function()
    prints("true true true\ntrue true true\ntrue\n", [[
      local a, s = fit(1)
      for _, case in ipairs {{2, {expert_parallel_size = 2}},
        {4, {expert_parallel_size = 2, data_parallel_size = 2}}} do
        local results = {}
        for stage = 1, 3 do
          case[2].stage = stage
          local b, t = fit(case[1], case[2])
          results[stage] = apart(a, s, b, t)
        end
        print(table.unpack(results))
      end
      local b, t = fit(4, {expert_parallel_size = 2, data_parallel_size = 2, stage = 3,
        units = {nn.MoE}, reshard_after_forward = false})
      print(apart(a, s, b, t))
    ]])
  end)

  it("gives each rank its experts, and a whole module at the end", function()
    prints("2 4\n", [[
      local seen
      function Net:on_train_batch_end() seen = self.moe.w1.shape[1] end
      local net = fit(2, {expert_parallel_size = 2})
      print(seen, net.moe.w1.shape[1])
    ]])
  end)

  it("accumulates gradients, and resumes in mid-window on other numbers of ranks", function()
    local folder = child.folder()
    prints("true true true\ntrue true true\n", [[
      local a, s = fit(1, nil, {accumulate_grad_batches = 2})
      local function save(ranks, o)
        local path = folder .. "/" .. ranks .. ".ckpt"
        function Net:on_train_batch_end(_, _, i)
          if i == 2 and self.current_epoch == 0 then self.trainer:save_checkpoint(path) end
        end
        fit(ranks, o, {accumulate_grad_batches = 2})
        Net.on_train_batch_end = nil
        return path
      end
      for _, path in ipairs {save(2, {expert_parallel_size = 2}),
        save(4, {expert_parallel_size = 2, data_parallel_size = 2, stage = 3})} do
        local results = {}
        for i, case in ipairs {{1}, {2, {expert_parallel_size = 2}},
          {4, {expert_parallel_size = 2, data_parallel_size = 2, stage = 2}}} do
          local b, t = fit(case[1], case[2], {accumulate_grad_batches = 2}, path)
          results[i] = apart(a, s, b, t)
        end
        print(table.unpack(results))
      end
    ]], folder)
    child.remove(folder)
  end)
end)

-- Experts between matrices that other ranks divide.
local WIDE <const> = [[
local Narrow = Net
Net = Narrow:extend "Wide"
function Net:init(o)
  Narrow.init(self, o)
  self.up, self.down = nn.Linear(4, 6), nn.Linear(6, 4)
  self:to "f64"
end
function Net:configure_model()
  Narrow.configure_model(self)
  local mesh = self.device_mesh
  if not mesh or mesh:size "tensor_parallel" == 1 then return end
  lt.parallelize(self, mesh, {first = lt.parallel.ColwiseParallel {output_layouts =
    lt.parallel.Replicate()}, up = lt.parallel.ColwiseParallel(),
    down = lt.parallel.RowwiseParallel()})
end
function Net:forward(x)
  x = self.first(x)
  x = x + self.moe(x) + self.down(self.up(x):tanh())
  return self.last(x + self.more(x))
end
]]

describe("expert_parallel_size beside tensor_parallel_size", function()
  local MESHES <const> = [[
    local MESHES = {{4, {expert_parallel_size = 2, tensor_parallel_size = 2}},
      {8, {expert_parallel_size = 2, tensor_parallel_size = 2, data_parallel_size = 2}}}
  ]]

  it("trains to the weights, state and metrics of one rank", function()
    prints("true\ntrue\n", WIDE .. MESHES .. [[
      local a, s = fit(1)
      for _, mesh in ipairs(MESHES) do
        local b, t = fit(mesh[1], mesh[2])
        print(apart(a, s, b, t))
      end
    ]])
  end)

  it("does so with each stage of sharding", function()
    prints("true true true\ntrue true true\n", WIDE .. MESHES .. [[
      local a, s = fit(1)
      for _, mesh in ipairs(MESHES) do
        local results = {}
        for stage = 1, 3 do
          mesh[2].stage = stage
          local b, t = fit(mesh[1], mesh[2])
          results[stage] = apart(a, s, b, t)
        end
        print(table.unpack(results))
      end
    ]])
  end)

  it("makes experts on the meta device alike on the ranks that have them", function()
    prints("true\n", WIDE .. [[
      local divide = Net.configure_model
      function Net:init(o) self.o = o or {} end
      function Net:configure_model()
        if rawget(self, "first") then return end
        local _ <close> = lt.device "meta"
        self.first, self.moe = nn.Linear(5, 4), nn.MoE(4, 6, 4, {bias = true})
        self.more, self.last = nn.MoE(4, 6, 2, {top_k = 1, activation = "gelu"}), nn.Linear(4, 1)
        self.up, self.down = nn.Linear(4, 6), nn.Linear(6, 4)
        self:to "f64"
        divide(self)
      end
      local a, s = fit(1)
      local b, t = fit(4, {expert_parallel_size = 2, tensor_parallel_size = 2, stage = 3})
      print(apart(a, s, b, t))
    ]])
  end)

  it("accumulates gradients, and resumes in mid-window on other meshes", function()
    local folder = child.folder()
    prints("true true true\ntrue true true\n", WIDE .. [[
      local options = {accumulate_grad_batches = 2}
      local a, s = fit(1, nil, options)
      local function save(ranks, o)
        local path = folder .. "/" .. ranks .. (o.stage or "") .. ".ckpt"
        function Net:on_train_batch_end(_, _, i)
          if i == 2 and self.current_epoch == 0 then self.trainer:save_checkpoint(path) end
        end
        fit(ranks, o, options)
        Net.on_train_batch_end = nil
        return path
      end
      for _, path in ipairs {save(4, {expert_parallel_size = 2, tensor_parallel_size = 2}),
        save(4, {expert_parallel_size = 2, tensor_parallel_size = 2, stage = 2,
          state_dict_type = "sharded"})} do
        local results = {}
        for i, case in ipairs {{1}, {2, {expert_parallel_size = 2}},
          {4, {expert_parallel_size = 2, tensor_parallel_size = 2, stage = 1}}} do
          local b, t = fit(case[1], case[2], options, path)
          results[i] = apart(a, s, b, t)
        end
        print(table.unpack(results))
      end
    ]], folder)
    child.remove(folder)
  end)
end)

describe("lt.dist.ddp of divided experts", function()
  it("steps as one process with all experts", function()
    prints("true true\n", [[
      local function steps(net, x, weigh)
        local optimizer = lt.optim.SGD(net:parameters(), {lr = 0.1})
        for _ = 1, 3 do
          net:zero_grad()
          local loss = (net(x) - 1):square():mean()
          if weigh then net:backward(loss, x.shape[1]) net:sync() else loss:backward() end
          optimizer:step()
        end
      end
      local wanted
      do
        lt.seed(3)
        wanted = nn.MoE(5, 6, 4):to "f64"
        steps(wanted, x)
      end
      local function as_one(ranks, rows)
        return lt.dist.launch(ranks, function(rank)
          lt.seed(3)
          local net = nn.MoE(5, 6, 4):to "f64"
          local mesh = lt.dist.mesh({ranks // 2, 2}, {"data", "expert"})
          lt.parallelize(net, mesh:sub "expert", lt.parallel.ExpertParallel())
          local own = x:narrow(1, rows[rank + 1] + 1, rows[rank + 2] - rows[rank + 1])
          steps(lt.dist.ddp(net, ranks > 2 and {part_group = mesh:group "data"} or nil), own, true)
          local apart = (net.router.weight - wanted.router.weight):abs():max():item()
          local first = 2 * mesh:rank "expert" + 1
          apart = apart + (net.w1 - wanted.w1:narrow(1, first, 2)):abs():max():item()
          return lt.dist.all_reduce(apart) < 1e-9
        end)
      end
      print(as_one(2, {0, 12, 32}), as_one(4, {0, 9, 12, 20, 32}))
    ]])
  end)

  it("refuses experts that other ranks have too, without part_group", function()
    local status, _, err = scripts.run(nil, [[
      lt.dist.launch(4, function()
        local net, mesh = nn.MoE(5, 6, 4), lt.dist.mesh({2, 2}, {"data", "expert"})
        lt.parallelize(net, mesh:sub "expert", lt.parallel.ExpertParallel())
        lt.dist.ddp(net)
      end)
    ]])
    luassert.equal(1, status, err)
    luassert.matches("dist.ddp: w1 is divided among 2 of 4 ranks: give part_group", err)
  end)
end)

describe("clip_grad_norm_ of experts and matrices", function()
  it("counts each parameter once", function()
    prints("true\n", [[
      print(lt.dist.launch(4, function()
        lt.seed(3)
        local net = Net()
        local elements = net:num_parameters()
        local mesh = lt.dist.mesh({2, 2}, {"expert_parallel", "tensor_parallel"})
        lt.parallelize(net, mesh:sub "expert_parallel", {moe = lt.parallel.ExpertParallel()})
        lt.parallelize(net, mesh, {first = lt.parallel.ColwiseParallel()})
        for _, p in ipairs(net:parameters()) do p.grad = lt.ones_like(p) * 2 end
        local norm = nn.utils.clip_grad_norm_(net:parameters(), 1.0):item()
        return math.abs(norm - 2 * math.sqrt(elements)) < 1e-9
          and math.abs(net.moe.w1.grad:max():item() - 2 / norm) < 1e-4
      end))
    ]])
  end)
end)
