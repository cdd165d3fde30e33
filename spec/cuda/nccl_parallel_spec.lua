-- spec/cuda/nccl_parallel_spec.lua: models that are divided among GPUs, whose bytes NCCL moves,
-- train as on one GPU.
-- tags: slow, third, unsanitized
local models = require "spec.parallel.small_models"
local net = require "spec.parallel.pipeline_net"

-- What the script prints on two GPUs is what it prints on one.
local function same(scripts, script)
  local wanted = scripts.output(1, script)
  local out, err = scripts.output(2, script)
  assert.matches("over shm and nccl", err)
  assert.not_equal("", wanted)
  assert.equal(wanted, out)
end

describe("models divided among GPUs train as on one", function()
  for _, name in ipairs { "gpt2", "llama" } do
    it("tensor parallel: " .. name, function()
      same(models, models.FIT .. ("print((fit(%q, n)))"):format(name))
    end)
  end

  it("context parallel", function()
    same(models, models.FIT .. [[
      local Each = Net:extend "Each" -- its loss has no neighbours of a position
      function Each:training_step(batch)
        return lt.cross_entropy(self.net(batch[1]):flatten(1, 2), batch[1]:flatten())
      end
      Each.validation_step = nil
      local strategy = n > 1 and lt.strategies.ModelParallelStrategy {tensor_parallel_size = 1,
        context_parallel_size = 2} or nil
      local _, net = fit("llama", n, {strategy = strategy},
        {context_parallel_size = n, class = Each})
      print(norms_of(net:state_dict()))
    ]])
  end)

  it("in stages of a pipeline", function()
    same(net.scripts, [[
      local function digits(list)
        local texts = {}
        for name, x in pairs(list) do
          texts[#texts + 1] = ("%s=%.9g"):format(name, x:square():sum():item())
        end
        table.sort(texts)
        return table.concat(texts, " ")
      end
      print(digits((fit(n == 1 and "single_device" or pipeline(), n)):state_dict()))
    ]])
  end)
end)
