-- spec/cuda/ctc_spec.lua: connectionist temporal classification of a GPU against the CPU's.
local both = require "spec.cuda.both"
local error_of = require "spec.error_of"
local lt = require "ltrain"

-- N, T, C, S
local CASES <const> = { { 1, 1, 2, 1 }, { 3, 7, 4, 3 }, { 2, 40, 3, 16 }, { 4, 33, 300, 5 },
  { 2, 300, 5, 140 }, { 2, 3, 4, 3 } }

local function results(case, options, dtype, device)
  local n, t, classes, s = table.unpack(case)
  lt.seed(5)
  local x = lt.randn(n, t, classes):to(dtype):log_softmax(-1):to(device):requires_grad_()
  local targets = lt.randint(0, classes, { n, s }):to(device)
  local steps = lt.randint(math.max(1, t // 2), t + 1, { n }):to(device)
  local lengths = lt.randint(0, s + 1, { n }):to(device)
  options.reduction = "none"
  local loss = lt.ctc_loss(x, targets, steps, lengths, options)
  loss:backward(lt.arange(1, n + 1):to(dtype):to(device))
  return { loss:detach(), x.grad }
end

describe("ctc_loss on cuda", function()
  for dtype, bound in pairs { f32 = 1e-5, f64 = 1e-11 } do
    both.it("gives the losses and gradients of the CPU in " .. dtype, function()
      for k, case in ipairs(CASES) do
        for _, options in ipairs { {}, { zero_infinity = true }, { blank = 1 } } do
          local want = results(case, options, dtype, "cpu")
          local got = results(case, options, dtype, "cuda")
          for i, t in ipairs(want) do both.close(got[i], t, bound, ("case %d, %d"):format(k, i)) end
        end
      end
    end)
  end

  both.it("refuses ids and lengths that are out of range", function()
    local x = lt.randn(1, 3, 4):to("cuda"):log_softmax(-1)
    local function loss(id, steps)
      return function()
        return lt.ctc_loss(x, lt.tensor({ { id } }):to "cuda", lt.tensor({ steps }):to "cuda",
          lt.tensor({ 1 }):to "cuda"):item()
      end
    end
    assert.matches("ctc_loss: a target or a length of 4 is out of 0..3", error_of(loss(4, 3)), 1,
      true)
    assert.matches("ctc_loss: a target or a length of 9 is out of 0..3", error_of(loss(1, 9)), 1,
      true)
  end)
end)
