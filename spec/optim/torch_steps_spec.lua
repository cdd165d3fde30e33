-- spec/optim/torch_steps_spec.lua: every optimizer against PyTorch's over 100 steps, and its state
-- in the middle of them (torch_steps.py says how the numbers were made).
-- tags: slow

local lt = require "ltrain"
local recorded = require "spec.recorded"

local CASES <const> = recorded "spec/optim/torch_steps.jsonl"
local SHAPES <const> = { { 3, 4 }, { 5 } }
local TOLERANCE <const> = { f64 = 1e-11, f32 = 3e-5, bf16 = 1 / 64, f16 = 1 / 512 }

-- Another device than the CPU takes the same steps: there fewer say it.
local on_cpu <const> = lt.zeros(1).device == "cpu"
local TIMES <const> = on_cpu and { 1, 9, 90 } or { 1, 9 }
local HALF <const>, REST <const> = on_cpu and 12 or 4, on_cpu and 8 or 3

-- The numbers of torch_steps.py.
local function generator()
  local x = 12345
  return function()
    x = (x * 1103515245 + 12345) % (1 << 31)
    return x / 2 ^ 30 - 1
  end
end

local function tensor(next_number, shape, dtype)
  local values, n = {}, 1
  for _, size in ipairs(shape) do n = n * size end
  for i = 1, n do values[i] = next_number() end
  return lt.tensor(values, { dtype = dtype }):reshape(shape)
end

-- Steps from..to of a run that begins with `saved` (nil: at the first step).
local Run = {}
Run.__index = Run

local function start(name, dtype, options)
  local run = setmetatable({ next = generator(), params = {}, dtype = dtype }, Run)
  for i = 1, name == "Muon" and 1 or 2 do
    run.params[i] = lt.parameter(tensor(run.next, SHAPES[i], dtype))
  end
  run.optimizer = lt.optim[name](run.params, options)
  return run
end

function Run:step(times)
  for _ = 1, times do
    for i, parameter in ipairs(self.params) do
      parameter.grad = tensor(self.next, SHAPES[i], self.dtype)
    end
    self.optimizer:step()
  end
end

function Run:values()
  local list = {}
  for _, parameter in ipairs(self.params) do
    local flat = parameter:detach():to("f64"):reshape(-1):tolist()
    table.move(flat, 1, #flat, #list + 1, list)
  end
  return list
end

local function text_of(options)
  local words = {}
  for name, value in pairs(options) do
    words[#words + 1] = ("%s = %s"):format(name,
      type(value) == "table" and table.concat(value, " ") or tostring(value))
  end
  table.sort(words)
  return table.concat(words, ", ")
end

local function add_steps(case)
  local name, dtype, options = case.class, case.dtype, case.options
  describe(("%s in %s {%s}"):format(name, dtype, text_of(options)), function()
    it("has PyTorch's parameters after 1, 10 and, on the CPU, 100 steps", function()
      local run = start(name, dtype, options)
      for k, times in ipairs(TIMES) do
        run:step(times)
        local got = run:values()
        for i, want in ipairs(case.after[k]) do
          assert.near(want, got[i], TOLERANCE[dtype] * math.max(1, math.abs(want)))
        end
      end
    end)

    it("resumes in the middle with the same bits, also in another run", function()
      local whole, half, other = start(name, dtype, options), start(name, dtype, options),
        start(name, dtype, {})
      whole:step(HALF + REST)
      half:step(HALF)
      other.next = half.next
      lt.allow_update(function()
        for i, parameter in ipairs(half.params) do other.params[i]:copy_(parameter) end
      end)
      other.optimizer:load_state_dict(half.optimizer:state_dict())
      other:step(REST)
      assert.same(whole:values(), other:values())
    end)
  end)
end

-- The loss of torch_steps.py.
local function closure_of(run, targets, options)
  return function()
    run.optimizer:zero_grad()
    local loss = 0.1 * (run.params[1]:sum() - run.params[2]:sum()) ^ 2
    for i, parameter in ipairs(run.params) do
      loss = loss + ((parameter ^ 2 - targets[i]) ^ 2):sum()
    end
    if options.maximize then loss = -loss end
    loss:backward()
    return loss
  end
end

local function add_lbfgs(case)
  local options = case.options
  describe(("LBFGS {%s}"):format(text_of(options)), function()
    local function fresh(from)
      local run, targets = start("LBFGS", "f64", options), {}
      for i = 1, 2 do targets[i] = tensor(run.next, SHAPES[i], "f64"):abs() + 0.5 end
      if from then
        lt.allow_update(function()
          for i, parameter in ipairs(from.params) do run.params[i]:copy_(parameter) end
        end)
        run.optimizer:load_state_dict(from.optimizer:state_dict())
      end
      return run, closure_of(run, targets, options)
    end

    it("has PyTorch's parameters and calls the closure as often", function()
      local run, closure = fresh()
      local at = { [1] = 1, [3] = 2, [6] = 3 }
      for step = 1, 6 do
        run.optimizer:step(closure)
        local k = at[step]
        if k then
          assert.equal(case.evaluations[k], run.optimizer.state[run.params[1]].func_evals)
          for i, value in ipairs(run:values()) do assert.near(case.after[k][i], value, 1e-9) end
        end
      end
    end)

    it("resumes in the middle with the same bits", function()
      local whole, closure = fresh()
      for _ = 1, 2 do whole.optimizer:step(closure) end
      local other, again = fresh(whole)
      whole.optimizer:step(closure)
      other.optimizer:step(again)
      assert.same(whole:values(), other:values())
    end)
  end)
end

for _, case in ipairs(CASES) do
  if case.class == "LBFGS" then add_lbfgs(case) else add_steps(case) end
end
