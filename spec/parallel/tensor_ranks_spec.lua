-- spec/parallel/tensor_ranks_spec.lua: tensor parallel ranks beside context parallel ones, under
-- mpirun, and when one of them fails.
-- tags: slow
local job = require "spec.dist.job"
local scripts = require "spec.parallel.small_models"

-- Each position has a target of its own, so that sequences may be divided.
local ALONE <const> = scripts.FIT .. [[
  local Alone = Net:extend("Alone")
  function Alone:training_step(batch)
    local loss = lt.cross_entropy(self.net(batch[1]):flatten(1, 2), ((batch[1] * 3 + 1) % 16)
      :flatten())
    self:log("loss", loss, {on_epoch = true, on_step = false})
    return loss
  end
  function Alone:validation_step(batch) self:log("val", self:training_step(batch)) end
]]

describe("tensor parallel ranks", function()
  it("beside context parallel ones train as one rank", function()
    assert.equal("same\nsame\n", (scripts.output(nil, ALONE .. [[
      for _, name in ipairs {"gpt2", "llama"} do
        local wanted = fit(name, 1, nil, {class = Alone})
        local got = fit(name, 4, nil, {class = Alone, context_parallel_size = 2, stage = 1})
        print(got == wanted and "same" or got .. "\n" .. wanted)
      end
    ]])))
  end)

  if job.can "mpi" then
    it("train under mpirun as when forked", function()
      local script <const> = scripts.FIT .. [[
        local ranks = n or lt.dist.world_size()
        print((fit("llama", ranks)))
      ]]
      assert.equal(scripts.output(4, script), (scripts.over("mpi", 4, script)))
    end)
  end

  it("end with the rank that fails, and leave a module that says so", function()
    local status, out, err = scripts.run(nil, scripts.FIT .. [[
      local kept
      local Fails = Net:extend("Fails")
      function Fails:training_step(batch, i)
        kept = self
        if i == 1 and dist.rank() == 1 then error "rank 1 stops" end
        return Net.training_step(self, batch)
      end
      print(pcall(fit, "llama", 2, nil, {class = Fails}))
      print(pcall(kept.net.forward, kept.net, lt.zeros({1, 4}, {dtype = "i64"})))
    ]])
    assert.equal(0, status, err)
    assert.matches("^false\trank 1: .*rank 1 stops\nfalse\t", out)
    assert.matches("parameter 'model.embed_tokens.weight' is incomplete: a run under "
      .. "strategies.ModelParallelStrategy failed, and the other ranks ended with their parts", out)
  end)

  it("that have other batches are reported", function()
    local status, _, err = scripts.run(nil, scripts.FIT .. [[
      local Other = Net:extend("Other")
      function Other:training_step(batch)
        if dist.rank() == 1 then batch = {batch[1]:narrow(1, 1, 4), batch[2]} end
        return Net.training_step(self, batch)
      end
      fit("llama", 2, nil, {class = Other})
    ]])
    assert.equal(1, status)
    assert.matches("ranks disagree at collective %d+ of the group of ranks 0, 1: rank 0: "
      .. "all_reduce sum %[8, 8, 16%] f64 at .*; rank 1: all_reduce sum %[4, 8, 16%] f64", err)
  end)

  it("refuse callbacks that need whole parameters", function()
    local status, _, err = scripts.run(nil, scripts.FIT .. [[
      fit("llama", 2, {callbacks = {lt.callbacks.EMAWeightAveraging {decay = 0.5}}})
    ]])
    assert.equal(1, status)
    assert.matches("strategies.ModelParallelStrategy: the callback EMAWeightAveraging needs whole "
      .. "parameters, of which a rank has parts: remove it", err)
  end)

  it("refuse dropout of attention in divided sequences", function()
    local status, _, err = scripts.run(nil, ALONE .. [[
      function Alone:init(name) self.name, self.net = name, make(name, 0.1) end
      fit("gpt2", 4, nil, {class = Alone, context_parallel_size = 2})
    ]])
    assert.equal(1, status)
    assert.matches("attention: dropout of the weights of some heads needs whole sequences", err)
  end)
end)
