-- spec/parallel/uneven_spec.lua: matrices that ranks divide into parts of which the last one is
-- smaller: a vocabulary of 17, layers of 13 features.
-- tags: half, slow
local child = require "spec.cli.child"
local scripts = require "spec.parallel.small_models"

-- Like small_models.lua, with sizes that neither 2 nor 4 divide; plans take PLAN.
local UNEVEN <const> = scripts.SAME .. [[
  local DROPOUT, PLAN = 0, {}
  MAKE = {
    gpt2 = function() return lt.models.gpt2 {vocab_size = 17, n_positions = 8, n_embd = 8,
      n_layer = 2, n_head = 4, dropout = DROPOUT} end,
    llama = function() return lt.models.llama {vocab_size = 17, hidden_size = 16,
      intermediate_size = 13, num_hidden_layers = 2, num_attention_heads = 4,
      num_key_value_heads = 4} end,
    bert = function() return lt.models.bert {vocab_size = 17, hidden_size = 8,
      num_hidden_layers = 2, num_attention_heads = 4, intermediate_size = 13,
      max_position_embeddings = 8, dropout = DROPOUT} end,
    vit = function() return lt.models.vit {image_size = 8, patch_size = 4, num_layers = 2,
      num_heads = 4, hidden_dim = 8, mlp_dim = 13, num_classes = 17, dropout = DROPOUT} end,
  }
  function Net:configure_model()
    local mesh = self.device_mesh
    if not mesh or mesh:size() == 1 then return end
    lt.parallelize(self.net, mesh, self.name == "vit" and self.net:tensor_parallel_plan()
      or self.net:tensor_parallel_plan(PLAN))
    self.cross_entropy = PLAN.loss_parallel and lt.parallel.loss_parallel(mesh)
  end
  function Net:training_step(batch)
    local loss = loss_of(self.name, self.net, batch[1], batch[2], self.cross_entropy)
    self:log("loss", loss, {on_epoch = true, on_step = false})
    return loss
  end
  function Net:validation_step(batch)
    self:log("val", loss_of(self.name, self.net, batch[1], batch[2], self.cross_entropy))
  end
]]

local function prints(wanted, script, folder)
  assert.equal(wanted, (scripts.output(nil, ("local folder = %q "):format(folder or "") .. UNEVEN
    .. script)))
end

describe("parts of which the last one is smaller", function()
  for _, name in ipairs { "gpt2", "llama", "bert", "vit" } do
    it("train " .. name .. " as one rank, to 10 digits, on 2 and on 4 ranks", function()
      prints("same\nsame\n", ([[
        for ranks = 2, 4, 2 do
          print(is_same("%s", ranks, nil, {tensor_parallel_size = ranks}))
        end
      ]]):format(name))
    end)
  end

  it("train with dropout, parts of positions and a divided loss", function()
    prints("same\nsame\nsame\n", [[
      DROPOUT = 0.2
      print(is_same("vit", 4, nil, {tensor_parallel_size = 4}))
      PLAN = {sequence_parallel = true, loss_parallel = true}
      for _, name in ipairs {"gpt2", "llama"} do
        print(is_same(name, 4, nil, {tensor_parallel_size = 4}))
      end
    ]])
  end)

  it("train with each stage on a mesh", function()
    prints("same\nsame\nsame\n", [[
      for stage = 1, 3 do print(is_same("gpt2", 4, nil, {stage = stage})) end
    ]])
  end)

  it("train in a pipeline, beside data parallel", function()
    prints("same\n", [[
      local function in_pipeline(name, ranks)
        local made = lt.strategies.ModelParallelStrategy
        function lt.strategies.ModelParallelStrategy()
          return lt.strategies.Pipeline {stages = 2, tensor_parallel_size = 2, microbatches = 2,
            sharding_stage = 1}
        end
        local got = fit(name, ranks, nil, {batch = 16})
        lt.strategies.ModelParallelStrategy = made
        return got
      end
      local wanted, got = fit("llama", 1), in_pipeline("llama", 8)
      print(got == wanted and "same" or got .. "\n" .. wanted)
    ]])
  end)

  it("are in checkpoints, which resume on other meshes", function()
    local folder = child.folder()
    prints("same\nsame\nsame\nsame\nsame\nsame\n", [[
      local Cut = Net:extend "Cut"
      local path
      function Cut:on_train_batch_end(_, _, i)
        if i == 1 and self.current_epoch == 0 then self.trainer:save_checkpoint(path) end
      end
      local wanted = fit("gpt2", 1)
      local saved = {{tensor_parallel_size = 4}, {stage = 3, state_dict_type = "sharded"}}
      for i, more in ipairs(saved) do
        path, more.class = folder .. "/" .. i, Cut
        fit("gpt2", 4, nil, more)
        for _, case in ipairs {{1, {}}, {2, {}}, {4, {tensor_parallel_size = 4, stage = 1}}} do
          case[2].ckpt_path = path
          local got = fit("gpt2", case[1], nil, case[2])
          print(got == wanted and "same" or got .. "\n" .. wanted)
        end
      end
    ]], folder)
    child.remove(folder)
  end)

  it("are made on the meta device", function()
    prints("same\n", [[
      local Meta = Net:extend "Meta"
      function Meta:init(name) self.name = name end
      function Meta:configure_model()
        if rawget(self, "net") then return end
        do
          local _ <close> = lt.device "meta"
          lt.seed(11)
          self.net = MAKE[self.name]():to "f64"
        end
        Net.configure_model(self)
      end
      print(is_same("gpt2", 4, nil, {class = Meta, stage = 3}))
    ]])
  end)
end)

describe("loss_parallel of classes that do not divide", function()
  it("is the cross-entropy of all, with its gradient, and refuses other targets", function()
    prints("true true true true true true\n", [[
      print(lt.dist.launch(4, function()
        local mesh, cuts = lt.dist.mesh({4}, {"tensor"}), require "ltrain.core.cuts"
        local from, n = cuts.place(17, 4, dist.rank())
        lt.seed(4)
        local all = lt.randn(5, 17):to "f64"
        local target = lt.tensor({0, 16, -100, 14, 15}, {dtype = "i64"})
        local loss, found = P.loss_parallel(mesh), {}
        for i, o in ipairs {{}, {reduction = "sum"}, {label_smoothing = 0.1},
          {reduction = "none", label_smoothing = 0.3}} do
          local whole = all:clone():requires_grad_(true)
          local part = all:narrow(2, from + 1, n):clone():requires_grad_(true)
          local wanted, got = lt.cross_entropy(whole, target, o), loss(part, target, o)
          wanted:sum():backward()
          got:sum():backward()
          found[i] = tostring(lt.allclose(got, wanted, {rtol = 1e-12})
            and lt.allclose(part.grad, whole.grad:narrow(2, from + 1, n), {rtol = 1e-10}))
        end
        for i, id in ipairs {17, -1} do
          local ok, message = pcall(loss, all:narrow(2, from + 1, n), lt.full({5}, id,
            {dtype = "i64"}))
          found[4 + i] = tostring(not ok and message:find "index" ~= nil)
        end
        return table.concat(found, " ")
      end))
    ]])
  end)
end)
