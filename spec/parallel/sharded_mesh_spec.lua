-- spec/parallel/sharded_mesh_spec.lua: stages 2 and 3 of ModelParallelStrategy: gradients and
-- parameters sharded along a mesh, over parameters that are parts themselves. Fits are those of one
-- rank.
-- tags: sixth, slow
local child = require "spec.cli.child"
local job = require "spec.dist.job"
local lt = require "ltrain"
local scripts = require "spec.parallel.small_models"

local error_of = require("spec.trainer.tiny").error_of

local FIT <const> = scripts.SAME

local function prints(wanted, script, folder)
  assert.equal(wanted, (scripts.output(nil, ("local folder = %q "):format(folder or "") .. FIT
    .. script)))
end

local function refuses(text, script)
  local status, _, err = scripts.run(nil, FIT .. script)
  assert.equal(1, status)
  assert.matches(text, err)
  assert.truthy(select(2, err:gsub("\n", "\n")) <= 2, err) -- one sentence
end

for stage = 2, 3 do
  describe(("stage %d of a mesh"):format(stage), function()
    for _, name in ipairs { "gpt2", "llama" } do
      it("trains " .. name .. " as one rank, to 10 digits, on 2 x 2 ranks", function()
        prints("same\n", ("print(is_same(%q, 4, nil, {stage = %d}))"):format(name, stage))
      end)
    end

    it("trains bert and vit so", function()
      prints("same\nsame\n", ([[
        for _, name in ipairs {"bert", "vit"} do print(is_same(name, 4, nil, {stage = %d})) end
      ]]):format(stage))
    end)

    it("accumulates gradients, of shards and whole", function()
      prints("same\nsame\n", ([[
        local o = {accumulate_grad_batches = 2}
        for _, how in ipairs {"shards", "whole"} do
          print(is_same("gpt2", 4, o, {stage = %d, batch = 4, sharding = {accumulate = how}}))
        end
      ]]):format(stage))
    end)

    it("trains beside context parallel", function()
      prints("same\n", ([[
        print(is_same("gpt2", 4, nil, {stage = %d, class = Alone, context_parallel_size = 2,
          tensor_parallel_size = 1}))
      ]]):format(stage))
    end)

    it("trains with a last batch that has samples for some ranks alone", function()
      prints("same\n", ([[
        local whole = lt.data.TensorDataset
        function lt.data.TensorDataset(ids, images)
          return whole(lt.cat {ids, ids:narrow(1, 1, 1)}, lt.cat {images, images:narrow(1, 1, 1)})
        end
        print(is_same("llama", 4, nil, {stage = %d}))
      ]]):format(stage))
    end)

    it("skips a step whose gradients are not finite, on all ranks", function()
      prints("same\n", ([[
        local Bad = Net:extend("Bad")
        function Bad:training_step(batch, i)
          local loss = Net.training_step(self, batch)
          return i == 1 and loss * math.huge or loss
        end
        local o = {nonfinite = "skip", max_epochs = 1}
        local wanted = fit("llama", 1, o, {class = Bad})
        local got = fit("llama", 4, o, {class = Bad, stage = %d})
        print(got:gsub(" inf", "") == wanted:gsub(" inf", "") and "same" or got .. "\n" .. wanted)
      ]]):format(stage))
    end)

    it("steps by a scaled loss", function()
      prints("same\n", ([[
        local function scaled(ranks, stage)
          return fit("llama", ranks, {precision = "16-mixed", max_epochs = 1}, {stage = stage})
        end
        local wanted, got = scaled(4, 1), scaled(4, %d)
        local function digits_3(text) return (text:gsub("(%%d%%.%%d%%d)%%d*", "%%1")) end
        print(digits_3(got) == digits_3(wanted) and "same" or got .. "\n" .. wanted)
      ]]):format(stage))
    end)
  end)
end

describe("stage 3 of a mesh", function()
  it("keeps gathered parameters, and small ones, as it is told", function()
    prints("same\nsame\n", [[
      print(is_same("llama", 4, nil, {stage = 3, sharding = {reshard_after_forward = false}}))
      print(is_same("gpt2", 4, nil, {stage = 3, sharding = {keep_below = 20}}))
    ]])
  end)

  it("has a quarter of a matrix on each of 2 x 2 ranks, and none between steps", function()
    prints("32 of 128 elements\nfalse\n16 8\n", [[
      local text
      function Net:on_train_batch_end()
        local weight = self.net.lm_head.weight
        local shard = self.trainer.strategy.sharding.sharded.shards.of[weight]
        text = ("%d of 128 elements\n%s"):format(shard.n, (pcall(weight.sum, weight)))
      end
      local _, net = fit("gpt2", 4, nil, {stage = 3})
      print(text)
      print(table.concat(net.net.lm_head.weight.shape, " "))
    ]])
  end)

  it("begins with parameters of the meta device as with others, and loads weights into them",
    function()
      local folder = child.folder()
      prints("same\nsame\n", [[
        local Later = Net:extend("Later")
        function Later:init(name) self.name = name end
        function Later:configure_model()
          if self.net then return end
          lt.seed(11)
          self.net = lt.models.gpt2 {vocab_size = 16, n_positions = 8, n_embd = 8, n_layer = 2,
            n_head = 4, dropout = 0, device = "meta"}
          if self.device_mesh then lt.parallelize(self.net, self.device_mesh) end
        end
        local function digits_4(text) return (text:gsub("(%d%.%d%d%d)%d*", "%1")) end
        local function compare(a, b)
          print(digits_4(a) == digits_4(b) and "same" or a .. "\n" .. b)
        end
        local wanted, _, t = fit("gpt2", 1, nil, {class = Later})
        compare(wanted, (fit("gpt2", 4, nil, {class = Later, stage = 3})))
        local path = folder .. "/sharded"
        local Saves = lt.Callback:extend "Saves"
        Saves.all_ranks = true
        function Saves:on_train_epoch_end(t)
          if t.current_epoch == 0 then t:save_checkpoint(path) end
        end
        fit("gpt2", 4, {callbacks = {Saves()}},
          {class = Later, stage = 3, state_dict_type = "sharded"})
        compare(wanted, (fit("gpt2", 4, nil, {class = Later, stage = 3, ckpt_path = path})))
      ]], folder)
      child.remove(folder)
    end)

  it("validates, tests and predicts without a fit, and leaves the module whole", function()
    prints("same\tsame\t16 8\n", [[
      lt.seed(3)
      local ids = lt.randint(0, 16, {8, 8})
      local loader = lt.data.DataLoader(lt.data.TensorDataset(ids, lt.ones(8, 3, 8, 8)),
        {batch_size = 4})
      function Net:predict_step(batch) return self.net(batch[1]) end
      local function results(ranks)
        local net = Net "gpt2"
        local t = trainer {devices = ranks, strategy = ranks == 1 and "single_device"
          or lt.strategies.ModelParallelStrategy {tensor_parallel_size = 2, stage = 3, units = 1}}
        local val = t:validate(net, loader, {verbose = false})[1].val
        local sum = 0
        for _, y in ipairs(t:predict(net, loader)) do sum = sum + y:square():sum():item() end
        return digits(val), digits(sum), net
      end
      local val, sum = results(1)
      local got, total, net = results(4)
      print(got == val and "same" or got, total == sum and "same" or total,
        table.concat(net.net.lm_head.weight.shape, " "))
    ]])
  end)

  it("averages weights where none is cut", function()
    prints("same\n", [[
      local function averaged(ranks, strategy)
        local net = Net "llama"
        lt.seed(12)
        local data = lt.data.TensorDataset(lt.randint(0, 16, {16, 8}), lt.randn(16, 3, 8, 8))
        local t = trainer {devices = ranks, max_epochs = 2, strategy = strategy,
          callbacks = {lt.callbacks.EMAWeightAveraging {decay = 0.5}}}
        t:fit(net, lt.data.DataLoader(data, {batch_size = 8 // ranks}))
        return norms_of(net:state_dict())
      end
      local wanted = averaged(1, "single_device")
      local got = averaged(4, lt.strategies.ModelParallelStrategy {tensor_parallel_size = 1,
        stage = 3, units = 1})
      print(got == wanted and "same" or got .. "\n" .. wanted)
    ]])
  end)

  it("trains on 2 x 2 x 2 ranks as one does", function()
    prints("same\n", [[
      print(is_same("gpt2", 8, nil, {stage = 3, class = Alone, context_parallel_size = 2}))
    ]])
  end)
end)

describe("checkpoints of stages 2 and 3 of a mesh", function()
  it("resume on other meshes and on one rank, whole and sharded, in mid-window", function()
    local folder = child.folder()
    prints(("same same same\n"):rep(5), [[
      local o = {accumulate_grad_batches = 2}
      local wanted, paths = fit("gpt2", 1, o, {batch = 4}), {}
      local function save(ranks, more)
        local path = ("%s/%d"):format(folder, #paths)
        local Saves = lt.Callback:extend "Saves"
        Saves.all_ranks = true
        function Saves:on_train_batch_end(t, _, _, _, i)
          if t.current_epoch == 1 and i == 0 then t:save_checkpoint(path) end
        end
        more.batch = 4
        fit("gpt2", ranks, {callbacks = {Saves()}, accumulate_grad_batches = 2}, more)
        paths[#paths + 1] = path
      end
      save(1, {})
      save(4, {stage = 3})
      save(4, {stage = 3, state_dict_type = "sharded"})
      save(4, {stage = 2, state_dict_type = "sharded"})
      save(4, {stage = 2, tensor_parallel_size = 1, state_dict_type = "sharded"})
      for _, path in ipairs(paths) do
        local line = {}
        for i, case in ipairs {{1, {}}, {4, {stage = 3}},
          {4, {stage = 2, tensor_parallel_size = 1}}} do
          case[2].ckpt_path, case[2].batch = path, 4
          local got = fit("gpt2", case[1], o, case[2])
          line[i] = got == wanted and "same" or got .. "\n" .. wanted .. "\n"
        end
        print(table.concat(line, " "))
      end
    ]], folder)
    child.remove(folder)
  end)

  it("have f32 shards of weights in 16 bits", function()
    local folder = child.folder()
    prints("same same same\n", [[
      local Half = Net:extend("Half")
      function Half:init(name)
        Net.init(self, name)
        self.net:to "bf16"
      end
      function Half:training_step(batch) return self.net(batch[1]):to "f32":square():mean() end
      function Half:validation_step() end
      local Saves, path = lt.Callback:extend "Saves", nil
      Saves.all_ranks = true
      function Saves:on_train_epoch_end(t)
        if t.current_epoch == 0 then t:save_checkpoint(path) end
      end
      local line = {}
      for stage = 1, 3 do
        path = folder .. "/" .. stage
        local more = {class = Half, stage = stage, state_dict_type = "sharded"}
        local wanted = fit("llama", 4, {callbacks = {Saves()}}, more)
        more.ckpt_path = path
        local got = fit("llama", 4, nil, more)
        line[stage] = got == wanted and "same" or got .. "\n" .. wanted
      end
      print(table.concat(line, " "))
    ]], folder)
    child.remove(folder)
  end)

  it("have parts of fewer elements than there are ranks", function()
    local folder = child.folder()
    prints("same\n", [[
      local Small = Net:extend("Small") -- a column of 2 elements on 4 ranks
      function Small:init()
        lt.seed(4)
        self.a, self.b = lt.nn.Linear(1, 2), lt.nn.Linear(2, 2)
        self:to "f64"
      end
      function Small:configure_model()
        local P = lt.parallel
        if self.device_mesh then
          lt.parallelize(self, self.device_mesh, {a = P.ColwiseParallel(), b = P.RowwiseParallel()})
        end
      end
      function Small:training_step(batch)
        return (self.b(self.a(batch[2]:flatten(2):narrow(2, 1, 1)):tanh()) - 1):square():mean()
      end
      function Small:validation_step() end
      local Saves = lt.Callback:extend "Saves"
      Saves.all_ranks = true
      function Saves:on_train_epoch_end(t)
        if t.current_epoch == 0 then t:save_checkpoint(folder .. "/small") end
      end
      local wanted = fit("", 1, nil, {class = Small})
      fit("", 8, {callbacks = {Saves()}}, {class = Small, stage = 3})
      local got = fit("", 1, nil, {class = Small, ckpt_path = folder .. "/small"})
      print(got == wanted and "same" or got .. "\n" .. wanted)
    ]], folder)
    child.remove(folder)
  end)
end)

describe("what a mesh cannot shard", function()
  it("is said when the strategy is made", function()
    local MP <const> = lt.strategies.ModelParallelStrategy
    assert.matches("stage must be 0, 1, 2 or 3: got 4", error_of(MP, { stage = 4 }))
    assert.matches("strategies.ModelParallelStrategy: ddp_comm_hook = 'powerSGD' needs whole "
      .. "gradients, which stage = 3 divides: write 'bf16', or stage = 1",
      error_of(MP, { stage = 3, ddp_comm_hook = "powerSGD" }))
  end)

  it("is said when the fit begins", function()
    refuses("deterministic = 'world' needs whole gradients, which stage = 2 divides: write "
      .. "stage = 1", [[ fit("llama", 4, {deterministic = "world"}, {stage = 2}) ]])
    refuses("configure_ddp of the module reduces whole gradients, which stage = 3 divides", [[
      function Net:configure_ddp() end
      fit("llama", 4, nil, {stage = 3})
    ]])
    refuses("the callback EMAWeightAveraging needs whole parameters, of which a rank has parts", [[
      fit("llama", 4, {callbacks = {lt.callbacks.EMAWeightAveraging {decay = 0.5}}}, {stage = 3})
    ]])
  end)

  it("is a layer that does not divide, which is named", function()
    refuses("parallelize: net: 1 outputs are too few for 2 ranks", [[
      function Net:init() self.name, self.net = "gpt2", lt.nn.Linear(8, 1):to "f64" end
      function Net:configure_model()
        lt.parallelize(self, self.device_mesh, {net = lt.parallel.ColwiseParallel()})
      end
      fit("gpt2", 4, nil, {stage = 3})
    ]])
  end)
end)

describe("a rank that is killed on a mesh", function()
  for name, what in pairs { gather_shards = "in a gather", reduce_shards = "in a reduction" } do
    it(what .. " of stage 3 ends the others, and is named", function()
      local one <close> = scripts.start("shm", 4, (FIT .. [[
        local c = require "ltrain.c"
        local real = c.dist.NAME
        local is_due = false
        function Net:on_train_batch_start(_, i)
          is_due = i == 1 and dist.rank() == 3
          if is_due then pid(3) end
        end
        function c.dist.NAME(...)
          if is_due then mark "here" busy(30) end
          return real(...)
        end
        fit("llama", 4, nil, {stage = 3})
      ]]):gsub("NAME", name))
      assert.truthy(one:wait_for("here", 30), one:read "err")
      assert.truthy(job.signal("KILL", one:pid(3)))
      assert.truthy(one:wait_gone(15), "processes are left")
      assert.equal(137, one:status())
      assert.matches("rank 3 %(pid %d+[^)]*%) was ended by SIGKILL", one:read "err")
    end)
  end
end)
