-- spec/cuda/linalg_spec.lua: linear algebra of tensors on a GPU, which the CPU computes.
local both = require "spec.cuda.both"
local lt = require "ltrain"

describe("linalg on cuda", function()
  both.it("gives what the CPU gives, on the GPU, with gradients", function()
    local function results(device)
      local x = (lt.randn(2, 3, 3):to(device) + lt.eye(3, { device = device }) * 4)
        :detach():requires_grad_()
      local y = lt.linalg.solve(x, lt.ones({ 2, 3, 1 }, { device = device }))
      local loss = y:sum() + lt.linalg.det(x):sum() + lt.linalg.svdvals(x):sum()
        + lt.linalg.cholesky(x:matmul(x:transpose(2, 3))):sum()
      loss:backward()
      return { y:detach(), loss:detach(), x.grad }
    end
    lt.seed(2)
    local want = results "cpu"
    lt.seed(2)
    local got = results "cuda"
    assert.equal("cuda", (got[1].device:match "^%a+"))
    for k, t in ipairs(want) do both.close(got[k], t, 1e-4, tostring(k)) end
  end)
end)
