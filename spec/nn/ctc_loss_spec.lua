-- spec/nn/ctc_loss_spec.lua: connectionist temporal classification.
-- The recorded numbers are PyTorch's: spec/parity compares many more.
local error_of = require "spec.error_of"
local lt = require "ltrain"

local F = lt.nn.functional

-- The probability of a target by adding up all alignments of T steps, one after the other.
local function by_alignments(log_probs, target, blank)
  local t, classes = log_probs.shape[1], log_probs.shape[2]
  local x, total = log_probs:tolist(), 0
  local path = {}
  local function collapsed()
    local list, last = {}, nil
    for _, id in ipairs(path) do
      if id ~= last and id ~= blank then list[#list + 1] = id end
      last = id
    end
    return table.concat(list, " ")
  end
  local wanted = table.concat(target, " ")
  local function walk(step, sum)
    if step > t then
      if collapsed() == wanted then total = total + math.exp(sum) end
      return
    end
    for id = 0, classes - 1 do
      path[step] = id
      walk(step + 1, sum + x[step][id + 1])
    end
    path[step] = nil
  end
  walk(1, 0)
  return -math.log(total)
end

local function logits(...)
  local n = 1
  for _, size in ipairs{...} do n = n * size end
  return (lt.arange(n):to("f64") * 0.71):sin():mul(2):reshape{...}
end

describe("ctc_loss", function()
  local x = logits(3, 5, 4):log_softmax(-1)
  local targets = lt.tensor{{1, 2, 2}, {3, 0, 0}, {1, 3, 0}} -- 0: behind their ends
  local steps, lengths = lt.tensor{5, 4, 2}, lt.tensor{3, 1, 2}

  it("is minus the logarithm of the sum over all alignments", function()
    local loss = F.ctc_loss(x, targets, steps, lengths, {reduction = "none"}):tolist()
    assert.near(by_alignments(x[1], {1, 2, 2}, 0), loss[1], 1e-12)
    assert.near(by_alignments(x[2]:narrow(1, 1, 4), {3}, 0), loss[2], 1e-12)
    assert.near(by_alignments(x[3]:narrow(1, 1, 2), {1, 3}, 0), loss[3], 1e-12)
    local other = F.ctc_loss(x, lt.tensor{{0, 2}, {3, 3}, {1, 3}}, steps, lt.tensor{2, 2, 2},
      {blank = 2, reduction = "none"}):tolist()
    assert.near(by_alignments(x[2]:narrow(1, 1, 4), {3, 3}, 2), other[2], 1e-12)
  end)

  it("reduces as PyTorch does: the mean is of the losses per label", function()
    local each = F.ctc_loss(x, targets, steps, lengths, {reduction = "none"})
    assert.near((each / lengths):mean():item(),
      F.ctc_loss(x, targets, steps, lengths):item(), 1e-12)
    assert.near(each:sum():item(),
      F.ctc_loss(x, targets, steps, lengths, {reduction = "sum"}):item(), 1e-12)
  end)

  it("takes targets one after the other, and a single sequence", function()
    local each = F.ctc_loss(x, targets, steps, lengths, {reduction = "none"}):tolist()
    local flat = lt.tensor{1, 2, 2, 3, 1, 3}
    assert.same(each, F.ctc_loss(x, flat, steps, lengths, {reduction = "none"}):tolist())
    local one = F.ctc_loss(x[1], lt.tensor{1, 2, 2}, lt.tensor(5), lt.tensor(3),
      {reduction = "none"})
    assert.same({}, one.shape)
    assert.near(each[1], one:item(), 1e-12)
  end)

  it("has a derivative by what log_softmax is made of", function()
    for _, reduction in ipairs{"mean", "sum", "none"} do
      assert.is_true(lt.gradcheck(function(y)
        return F.ctc_loss(y:log_softmax(-1), targets, steps, lengths, {reduction = reduction})
      end, logits(3, 5, 4):requires_grad_()))
    end
  end)

  it("gives infinity where a target is too long, or 0 without a gradient", function()
    local y = logits(2, 2, 4):log_softmax(-1):detach():requires_grad_()
    local function loss(zero)
      return F.ctc_loss(y, lt.tensor{{1, 1}, {2, 0}}, lt.tensor{2, 2}, lt.tensor{2, 1},
        {reduction = "none", zero_infinity = zero})
    end
    assert.equal(1 / 0, loss(false)[1]:item())
    assert.equal(0, loss(true)[1]:item())
    loss(true):sum():backward()
    assert.equal(0, y.grad[1]:abs():amax():item())
    assert.is_true(y.grad[2]:abs():amax():item() > 0)
  end)

  it("takes empty targets, and inputs of no steps", function()
    local y = logits(1, 3, 2):log_softmax(-1)
    local loss = F.ctc_loss(y, lt.tensor{{1}}, lt.tensor{3}, lt.tensor{0}, {reduction = "none"})
    assert.near(-(y[1]:sum(1))[1]:item(), loss[1]:item(), 1e-12)
    local none = F.ctc_loss(y, lt.tensor{{1}}, lt.tensor{0}, lt.tensor{0}, {reduction = "none"})
    assert.equal(0, none[1]:item())
  end)

  it("refuses what does not fit, with the shapes", function()
    local message = error_of(function() F.ctc_loss(x, lt.tensor{{1}, {1}}, steps, lengths) end)
    assert.matches("ctc_loss: log_probs of [3, 5, 4], targets of [2, 1] and lengths of [3] and [3] "
      .. "do not fit", message, 1, true)
    message = error_of(function()
      F.ctc_loss(x, lt.tensor{1, 2}, steps, lengths)
    end)
    assert.matches("ctc_loss: targets of [2] for target_lengths whose sum is 6", message, 1, true)
    message = error_of(function()
      F.ctc_loss(x, targets, lt.tensor{6, 5, 5}, lengths):sum():item()
    end)
    assert.matches("ctc_loss: .*length of 6 is out of 0%.%.5", message)
    message = error_of(function()
      F.ctc_loss(x, lt.tensor{{4, 0, 0}, {1, 0, 0}, {1, 0, 0}}, steps, lengths):sum():item()
    end)
    assert.matches("ctc_loss: .*4 is out of 0%.%.3", message)
    message = error_of(function() F.ctc_loss(x, targets, steps, lengths, {blank = 4}) end)
    assert.matches("ctc_loss: blank must be in 0..3: got 4", message, 1, true)
  end)
end)

describe("nn.CTCLoss", function()
  it("is ctc_loss with its options", function()
    local x = logits(2, 6, 3):log_softmax(-1)
    local targets, steps, lengths = lt.tensor{{1, 2}, {2, 2}}, lt.tensor{6, 6}, lt.tensor{2, 2}
    local loss = lt.nn.CTCLoss{reduction = "sum", blank = 0}
    assert.equal(F.ctc_loss(x, targets, steps, lengths, {reduction = "sum"}):item(),
      loss(x, targets, steps, lengths):item())
  end)
end)
