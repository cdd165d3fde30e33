-- spec/parallel/fit_spec.lua: fits under ModelParallelStrategy are those of one rank, and resume
-- from their checkpoints on other meshes.
-- tags: slow, third
local child = require "spec.cli.child"
local scripts = require "spec.parallel.small_models"

local function prints(wanted, script, folder)
  assert.equal(wanted, (scripts.output(nil, ("local folder = %q "):format(folder or "")
    .. scripts.FIT .. script)))
end

describe("a fit under ModelParallelStrategy", function()
  it("is that of one rank to 10 digits, on 2 and on 2 x 2 ranks", function()
    prints("same same\n" .. ("same same\n"):rep(3), [[
      for _, name in ipairs(NAMES) do
        local wanted, two, four = fit(name, 1), fit(name, 2), fit(name, 4)
        print((two == wanted and "same" or two) .. " " .. (four == wanted and "same" or four))
      end
    ]])
  end)

  it("leaves the module and its optimizer whole", function()
    prints("same\n16 8\n1\n", [[
      local _, one = fit("gpt2", 1)
      local _, net, t = fit("gpt2", 2)
      local ids = lt.randint(0, 16, {2, 8})
      local a = one.net(ids:to(one.device)):sum():item()
      local b = net.net(ids:to(net.device)):sum():item()
      print(math.abs(a - b) < 1e-9 * math.abs(a) and "same" or a - b)
      print(table.concat(net.net.lm_head.weight.shape, " "))
      print(#t:validate(net, lt.data.DataLoader(lt.data.TensorDataset(ids, lt.ones(2, 3, 8, 8)),
        {batch_size = 2}), {verbose = false}))
    ]])
  end)

  it("accumulates gradients as one rank does", function()
    prints("same same\n", [[
      local o = {accumulate_grad_batches = 2}
      local wanted = fit("gpt2", 1, o, {batch = 4})
      local two, four = fit("gpt2", 2, o, {batch = 4}), fit("gpt2", 4, o, {batch = 4})
      print((two == wanted and "same" or two) .. " " .. (four == wanted and "same" or four))
    ]])
  end)

  it("begins with parameters of the meta device as with others", function()
    prints("same\n", [[
      local Later = Net:extend("Later")
      function Later:init(name) self.name = name end
      function Later:configure_model()
        lt.seed(11)
        self.net = lt.models.gpt2 {vocab_size = 16, n_positions = 8, n_embd = 8, n_layer = 2,
          n_head = 4, dropout = 0, device = "meta"}
        if self.device_mesh then lt.parallelize(self.net, self.device_mesh) end
      end
      local function digits_4(text) return (text:gsub("(%d%.%d%d%d)%d*", "%1")) end
      local wanted, got = fit("gpt2", 1, nil, {class = Later}), fit("gpt2", 2, nil, {class = Later})
      print(digits_4(got) == digits_4(wanted) and "same" or got .. "\n" .. wanted)
    ]])
  end)

  it("skips a step whose gradients are not finite, on all ranks", function()
    prints("same\n", [[
      local Bad = Net:extend("Bad")
      function Bad:training_step(batch, i)
        local loss = Net.training_step(self, batch)
        return i == 1 and loss * math.huge or loss
      end
      local o = {nonfinite = "skip", max_epochs = 1}
      local wanted, got = fit("llama", 1, o, {class = Bad}), fit("llama", 2, o, {class = Bad})
      print(got:gsub(" inf", "") == wanted:gsub(" inf", "") and "same" or got .. "\n" .. wanted)
    ]])
  end)

  it("refuses an optimizer that computes with whole matrices", function()
    local status, _, err = scripts.run(nil, scripts.FIT .. [[
      function Net:configure_optimizers() return lt.optim.Adafactor(self:parameters()) end
      fit("llama", 2)
    ]])
    assert.equal(1, status)
    assert.matches("strategies.ModelParallelStrategy: .*Adafactor.* computes with whole "
      .. "parameters, and a rank steps parts of them", err)
  end)
end)

describe("stage 1 of ModelParallelStrategy", function()
  it("trains as one rank, with half of the optimizer's state on each of two groups", function()
    prints("same\nsame\n2.0\n", [[
      local counts = {}
      function Net:on_train_batch_end()
        local n = 0
        for _, slots in pairs(self:optimizers().state) do n = n + slots.exp_avg:numel() end
        counts[#counts + 1] = n
      end
      for _, name in ipairs {"gpt2", "llama"} do
        local wanted, got = fit(name, 1), fit(name, 4, nil, {stage = 1})
        print(got == wanted and "same" or got .. "\n" .. wanted)
      end
      counts = {}
      fit("llama", 4)
      local whole = counts[1]
      counts = {}
      fit("llama", 4, nil, {stage = 1})
      print(whole / counts[1])
    ]])
  end)
end)

describe("checkpoints of ModelParallelStrategy", function()
  it("resume on other meshes, whole and sharded, in mid-window", function()
    local folder = child.folder()
    prints(("same same same\n"):rep(5), [[
      local o = {accumulate_grad_batches = 2}
      local wanted, paths = fit("gpt2", 1, o, {batch = 4}), {}
      local function save(ranks, kind, stage)
        local path = ("%s/%d%s%d"):format(folder, ranks, kind or "", stage or 0)
        local Saves = lt.Callback:extend "Saves"
        Saves.all_ranks = true
        function Saves:on_train_batch_end(t, _, _, _, i)
          if t.current_epoch == 1 and i == 0 then t:save_checkpoint(path) end
        end
        fit("gpt2", ranks, {callbacks = {Saves()}, accumulate_grad_batches = 2},
          {state_dict_type = kind, batch = 4, stage = stage})
        paths[#paths + 1] = path
      end
      save(1) save(2, "full") save(2, "sharded") save(4, "sharded") save(4, "sharded", 1)
      for _, path in ipairs(paths) do
        local line = {}
        for i, ranks in ipairs {1, 2, 4} do
          local got = fit("gpt2", ranks, o, {ckpt_path = path, batch = 4, stage = 1})
          line[i] = got == wanted and "same" or got .. "\n" .. wanted .. "\n"
        end
        print(table.concat(line, " "))
      end
    ]], folder)
    child.remove(folder)
  end)
end)
