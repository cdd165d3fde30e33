-- spec/parallel/pipeline_mesh_spec.lua: a pipeline whose stages are groups of ranks (tensor and
-- context parallel), with data parallel on a third dim, trains as one process.
-- tags: sixth, slow
local net = require "spec.parallel.pipeline_net"

-- Language models of 4 blocks. `same` compares fits by options of Pipeline: { name =, dropout =,
-- plan = options of its tensor_parallel_plan }.
local MODELS <const> = [[
local LM = lt.Module:extend("LM")
local MAKE = {
  gpt2 = function(o) return lt.models.gpt2 {vocab_size = 12, n_positions = 8, n_embd = 8,
    n_layer = 4, n_head = o.heads or 4, dropout = o.dropout or 0} end,
  llama = function() return lt.models.llama {vocab_size = 12, hidden_size = 16,
    intermediate_size = 12, num_hidden_layers = 4, num_attention_heads = 4,
    num_key_value_heads = 2} end,
}
function LM:init(o)
  self.o = o
  self.net = MAKE[o.name](o):to "f64"
end
function LM:configure_model()
  local mesh = self.device_mesh
  if not mesh then return end
  lt.parallelize(self.net, mesh, self.net:tensor_parallel_plan(self.o.plan or {}))
  self.divided = self.o.plan and self.o.plan.loss_parallel and mesh:size "tensor_parallel" > 1
    and lt.parallel.loss_parallel(mesh)
end
local function loss_of(self, batch)
  local ids, targets = batch[1], batch[2]
  local cross_entropy = self.divided or lt.cross_entropy
  return cross_entropy(self.net(ids):flatten(1, 2), targets:flatten())
end
function LM:training_step(batch)
  local loss = loss_of(self, batch)
  self:log("loss", loss, {on_step = false, on_epoch = true})
  return loss
end
function LM:validation_step(batch) self:log("val_loss", loss_of(self, batch)) end
function LM:configure_optimizers() return lt.optim.AdamW(self:parameters(), {lr = 0.01}) end
LOGGED = {"loss", "val_loss"}
do
  local ids = lt.randint(0, 12, {36, 8})
  function loader(o)
    local all = {global_batch_size = 8, shuffle = true, seed = 3}
    for name, value in pairs(o or {}) do all[name] = value end
    return lt.data.DataLoader(lt.data.TensorDataset(ids, ids:roll(1, 2)), all)
  end
end
local function model(o)
  o.class = LM
  return o
end
-- Two stages of groups of two ranks.
local function mesh(o)
  local all = {stages = 2, tensor_parallel_size = 2, split = {2}}
  for name, value in pairs(o or {}) do all[name] = value or nil end
  return all
end
local CLIP = {gradient_clip_val = 0.05}
]]

local HEAD <const> = MODELS:gsub("\n%s*%-%-[^\n]*", ""):gsub("%s*\n%s*", " ")

local function prints(wanted, script) return net.prints(wanted, HEAD .. script) end

local function fails(words, script) return net.fails(words, HEAD .. script) end

describe("Pipeline with stages of tensor parallel ranks trains as one process", function()
  it("in each schedule, with dropout, a shared matrix and clipping", function()
    prints("same same same same\n", [[
      local one, o = pipeline(), model {name = "gpt2", dropout = 0.25}
      print(same(4, mesh(), o, CLIP, one), same(4, mesh {schedule = "gpipe"}, o, CLIP, one),
        same(4, mesh {schedule = "interleaved", split = {1, 2, 3}}, o, CLIP, one),
        same(4, mesh {schedule = "zero_bubble"}, o, CLIP, one))
    ]])
  end)

  it("with data parallel on a third dim", function()
    prints("same same\n", [[
      print(same(8, mesh {microbatches = 2}, model {name = "gpt2", dropout = 0.25}, CLIP,
          pipeline()),
        same(8, mesh {microbatches = 2, schedule = "zero_bubble"}, model {name = "llama"}, CLIP))
    ]])
  end)

  for stage = 1, 3 do
    it(("with data parallel ranks that shard it, sharding_stage = %d"):format(stage), function()
      prints("same same\n", ([[
        local o = {sharding_stage = %d, microbatches = 2, units = 1}
        local by_time = {sharding_stage = %d, microbatches = 2, split = false, units = 1}
        print(same(8, mesh(o), model {name = "gpt2"}, CLIP),
          same(8, mesh(by_time), model {name = "llama"}, CLIP))
      ]]):format(stage, stage))
    end)
  end

  it("cut by measured time, on 2 and 3 stages", function()
    prints("same same same\n", [[
      local llama = model {name = "llama"}
      print(same(4, mesh {split = false}, llama, CLIP),
        same(6, mesh {split = false, stages = 3}, llama, CLIP),
        same(4, mesh {split = false}, llama, {accumulate_grad_batches = 2}))
    ]])
  end)

  it("with parts of sequences between the blocks, and a divided loss", function()
    prints("same same\n", [[
      local plan = {sequence_parallel = true, loss_parallel = true}
      print(same(4, mesh(), model {name = "gpt2", dropout = 0.25, plan = plan}, CLIP, pipeline()),
        same(4, mesh {schedule = "zero_bubble"}, model {name = "llama", plan = plan}, CLIP))
    ]])
  end)

  it("as a single stage", function()
    prints("same\n", [[
      print(same(2, mesh {stages = 1, split = false}, model {name = "llama"}, CLIP))
    ]])
  end)

  it("without a plan: its ranks compute the same", function()
    prints("same\n", [[
      LM.configure_model = nil
      print(same(4, mesh(), model {name = "llama"}, CLIP))
    ]])
  end)
end)

describe("collectives of a step that name no group", function()
  it("are among the ranks with its stage, also where only some have a sample", function()
    prints("2 2 1, 2 2 2\n", [[
      -- 17 samples in batches of 8: the last one has a sample for the first of two pipelines; in
      -- evaluation both have some.
      local ids = lt.randint(0, 12, {17, 8})
      function loader()
        return lt.data.DataLoader(lt.data.TensorDataset(ids, ids:roll(1, 2)),
          {global_batch_size = 8})
      end
      local seen, loss_of_batch = {training = {}, validation = {}}, LM.training_step
      -- On the last stage alone.
      function LM:training_step(batch)
        local loss = loss_of_batch(self, batch)
        table.insert(seen.training, lt.dist.all_reduce(1))
        return loss
      end
      function LM:validation_step(batch)
        self.net(batch[1])
        table.insert(seen.validation, lt.dist.all_reduce(1))
      end
      function LM:on_train_end() self.seen = lt.dist.all_gather(seen)[2] end
      local a = fit(pipeline(mesh {tensor_parallel_size = false, microbatches = 1}), 4,
        model {name = "llama"}, {max_epochs = 1, num_sanity_val_steps = 0, limit_val_batches = 3})
      print(table.concat(a.seen.training, " ") .. ", " .. table.concat(a.seen.validation, " "))
    ]])
  end)
end)

describe("differentiable collectives of a step", function()
  it("have the gradients of one stage, in each schedule and on each stage", function()
    prints("same same same same same same\n", [[
      -- Block `place` adds the mean over the ranks with its stage.
      local function mixing(place)
        local Mixing = Chain:extend "Mixing"
        function Mixing:init(o)
          Chain.init(self, o)
          local block = self.blocks[place]
          local forward = block.forward
          function block:forward(x)
            local y = forward(self, x)
            return y + lt.dist.all_reduce(y, {op = "mean"}) * 0.5
          end
        end
        return {class = Mixing}
      end
      -- Batches of 8 that pipelines of equally many samples share.
      function loader()
        return lt.data.DataLoader(lt.data.TensorDataset(x:narrow(1, 1, 32)),
          {global_batch_size = 8})
      end
      local found = {}
      for _, place in ipairs {1, 5} do
        local o = {stages = 1, microbatches = 2, data_parallel_size = 2}
        local a, t = fit(pipeline(o), 2, mixing(place))
        o.stages, o.split = 2, {2}
        for _, schedule in ipairs {"1f1b", "gpipe", "zero_bubble"} do
          o.schedule = schedule
          local b, u = fit(pipeline(o), 4, mixing(place))
          found[#found + 1] = is_equal(a, t, b, u) and "same" or "other"
        end
      end
      print(table.unpack(found))
    ]])
  end)
end)

describe("Pipeline with stages of context parallel ranks", function()
  it("trains as one process, with data or tensor parallel beside it too", function()
    prints("same same\n", [[
      local function context(o)
        o.context_parallel_size, o.tensor_parallel_size = 2, o.tensor_parallel_size or 1
        return mesh(o)
      end
      local gpt2, llama = model {name = "gpt2"}, model {name = "llama"}
      print(same(4, context {}, gpt2, CLIP),
        same(8, context {schedule = "zero_bubble", tensor_parallel_size = 2}, llama, CLIP))
    ]])
  end)

  it("does so with heads that are exchanged, in each schedule", function()
    prints("same same same same same\n", [[
      local function exchange(schedule, o)
        local all = {schedule = schedule, context_parallel_size = 2, tensor_parallel_size = 1,
          context_parallel_attention = "ulysses"}
        for name, value in pairs(o or {}) do all[name] = value end
        return mesh(all)
      end
      local gpt2 = model {name = "gpt2"}
      print(same(4, exchange "1f1b", gpt2, CLIP), same(4, exchange "gpipe", gpt2, CLIP),
        same(4, exchange("interleaved", {split = {1, 2, 3}}), gpt2, CLIP),
        same(4, exchange "zero_bubble", gpt2, CLIP),
        same(8, exchange("1f1b", {split = false, data_parallel_size = 2, sharding_stage = 3,
          units = 1}), gpt2, CLIP))
    ]])
  end)
end)

-- See pipeline_files_spec.lua.
local FILES <const> = ([[
  local read, parts = require "ltrain.files.checkpoint_file".read, require "ltrain.core.parts"
  local llama = model {name = "llama"}
  local function tensors(path)
    local saved = parts.whole(assert(read(path)))
    return {saved.state_dict, saved.optimizer_states[1]}
  end
  local function chained(list)
    local path
    for i, row in ipairs(list) do
      local _, t = fit(row[1], row[2], llama, {max_steps = row[3], max_epochs = 4},
        {ckpt_path = path})
      path = "after" .. i
      t:save_checkpoint(path)
    end
    return tensors(path)
  end
  local function near(a, b) return apart(a, b) < 1e-9 and apart(b, a) < 1e-9 end
]]):gsub("%s*\n%s*", " ")

describe("a checkpoint of Pipeline on a mesh", function()
  it("is that of one process, in mid-fit", function()
    prints("true\n", FILES .. [[
      for i, strategy in ipairs {"single_device", pipeline(mesh())} do
        function LM:on_train_epoch_end() self.trainer:save_checkpoint("mid" .. i) end
        fit(strategy, i == 1 and 1 or 4, llama, {max_epochs = 1})
      end
      print(near(tensors "mid1", tensors "mid2"))
    ]])
  end)

  it("resumes under tensor parallel and with other stages", function()
    prints("true true\n", FILES .. [[
      local tensor = {"model_parallel", tensor_parallel_size = 2}
      local whole = chained {{"single_device", 1, 7}}
      print(near(whole, chained {{pipeline(mesh()), 4, 2}, {tensor, 2, 5}, {pipeline(), 3, 7}}),
        near(whole, chained {{tensor, 2, 3}, {pipeline(mesh {split = false}), 4, 7}}))
    ]])
  end)

  it("resumes in parts, one a rank, on other meshes", function()
    prints("true\n", FILES .. [[
      local function sharded(o) return pipeline(mesh {state_dict_type = "sharded", split = o}) end
      print(near(chained {{"single_device", 1, 7}},
        chained {{sharded {1}, 4, 2}, {sharded(false), 4, 5}, {"ddp", 2, 7}}))
    ]])
  end)

  it("has the sum of a window of accumulation", function()
    prints("true true true\n", FILES .. [[
      local window = {accumulate_grad_batches = 3, max_epochs = 1}
      local function cut(first, ranks, second, more)
        local path = "cut" .. ranks .. more
        function LM:on_train_batch_end(_, _, i)
          if i == 1 and self.current_epoch == 0 then self.trainer:save_checkpoint(path) end
        end
        fit(first, ranks, llama, window)
        LM.on_train_batch_end = nil
        local net, t = fit(second, more, llama, window, {ckpt_path = path})
        return {net:state_dict(), t.optimizers[1]:state_dict()}
      end
      local net, t = fit("single_device", 1, llama, window)
      local whole, two = {net:state_dict(), t.optimizers[1]:state_dict()}, pipeline(mesh())
      print(near(whole, cut(two, 4, two, 8)), near(whole, cut(two, 4, "ddp", 2)),
        near(whole, cut("single_device", 1, pipeline(mesh {split = false}), 4)))
    ]])
  end)
end)

describe("Pipeline on a mesh", function()
  it("has a part of a stage on each rank, and is whole after the fit", function()
    prints("mesh(data_parallel = 1, pipeline_parallel = 2, context_parallel = 1, "
      .. "tensor_parallel = 2)\n6 6\n12\n", [[
      local seen
      function LM:on_train_batch_end(_, _, i)
        if i > 0 then return end
        local own, name = 0, "model.layers.%d.mlp.gate_proj"
        for k = 0, 3 do
          local weight = self.net:get_submodule(name:format(k)).weight
          if pcall(function() return weight:sum():item() end) then own = own + weight.shape[1] end
        end
        local all = lt.dist.all_gather(own // 2)
        if lt.dist.rank() == 0 then print(self.device_mesh) print(all[1], all[4]) end
      end
      local net = fit(pipeline(mesh()), 4, model {name = "llama"}, {max_epochs = 1})
      print(net.net.model.layers[4].mlp.gate_proj.weight.shape[1])
    ]])
  end)

  it("refuses sizes that do not divide", function()
    fails("strategies%.Pipeline: stages = 2, data_parallel_size = auto, tensor_parallel_size = 2: "
      .. "there are 6 ranks", [[ fit(pipeline(mesh()), 6, model {name = "llama"}) ]])
    fails("strategies%.Pipeline: stages = auto, data_parallel_size = auto, tensor_parallel_size = "
      .. "4: there are 2 ranks",
      [[ fit(pipeline {tensor_parallel_size = 4}, 2, model {name = "llama"}) ]])
    fails("parallelize: transformer%.h%.0%.attn: 1 heads %(n_head%) do not divide among 2 ranks",
      [[ fit(pipeline(mesh()), 4, model {name = "gpt2", heads = 1}) ]])
  end)

  it("refuses what needs whole parameters", function()
    fails("strategies%.Pipeline: .*Adafactor.* computes with whole parameters, and a rank steps "
      .. "parts of them", [[
      function LM:configure_optimizers() return lt.optim.Adafactor(self:parameters()) end
      fit(pipeline(mesh()), 4, model {name = "llama"})
    ]])
    fails("strategies%.Pipeline: the callback EMAWeightAveraging needs whole parameters", [[
      fit(pipeline(mesh()), 4, model {name = "llama"},
        {callbacks = {lt.callbacks.EMAWeightAveraging {decay = 0.9}}})
    ]])
  end)

  it("ends the job with one sentence when a rank fails, and the module says why", function()
    local err = fails("rank 3: script%.lua:%d+: lost its way", [[
      function LM:on_before_optimizer_step()
        if lt.dist.rank() == 3 then error "lost its way" end
      end
      fit(pipeline(mesh()), 4, model {name = "llama"})
    ]])
    assert.equal(1, select(2, err:gsub("lost its way", "")))
    prints("true\n", [[
      local kept
      function LM:on_train_batch_end(_, _, i)
        kept = self
        if i == 1 then error "here" end
      end
      pcall(fit, pipeline(mesh()), 4, model {name = "llama"})
      local _, message = pcall(function()
        return kept.net.model.layers[1].mlp.gate_proj.weight:sum():item()
      end)
      print(message:find "is incomplete: a run under strategies.Pipeline failed" ~= nil)
    ]])
  end)

  for _, row in ipairs { { 1, "first" }, { 2, "last" } } do
    it("ends the job when a rank of a stage is killed: of the " .. row[2] .. " one", function()
      local one <close> = net.scripts.start("shm", 4, HEAD .. ([[
        function LM:on_train_batch_start(_, i)
          if i == 2 and lt.dist.rank() == %d then
            os.execute("kill -KILL " .. lt.dist.world().pid)
          end
        end
        fit(pipeline(mesh()), 4, model {name = "llama"})
      ]]):format(row[1]))
      assert.truthy(one:wait_for("status", 30), "it does not end")
      assert.truthy(one:wait_gone(10), "processes are left")
      assert.not_equal(0, one:status())
      assert.matches("rank " .. row[1], one:read "err")
    end)
  end
end)
