-- spec/optim/averaged_model_spec.lua: averages of weights, and batch norm's statistics for them.

local error_of = require "spec.error_of"
local lt = require "ltrain"

local function net_of()
  lt.seed(2)
  return lt.nn.Sequential(lt.nn.Conv2d(1, 2, 3), lt.nn.BatchNorm2d(2))
end

local function set(net, value)
  lt.allow_update(function()
    for _, parameter in ipairs(net:parameters()) do parameter:fill_(value) end
  end)
end

describe("AveragedModel", function()
  local function path(options, values)
    local net = net_of()
    local averaged = lt.optim.AveragedModel(net, options)
    for _, value in ipairs(values) do
      set(net, value)
      averaged:update_parameters(net)
    end
    return averaged.module:parameters()[1]:flatten()[1]:item(), averaged, net
  end

  it("is the mean of the updates", function()
    assert.near(3, (path(nil, { 1.0, 2.0, 6.0 })), 1e-6)
  end)

  it("is an exponential moving average with a decay, which begins with the first", function()
    assert.near(1 * 0.81 + 2 * 0.09 + 6 * 0.1, (path({ decay = 0.9 }, { 1.0, 2.0, 6.0 })), 1e-6)
    assert.near(1 * 0.81 + 2 * 0.09 + 6 * 0.1,
      (path({ avg_fn = lt.optim.get_ema_avg_fn(0.9) }, { 1.0, 2.0, 6.0 })), 1e-6)
  end)

  it("leaves the model alone, and needs no gradients", function()
    local _, averaged, net = path({ decay = 0.5 }, { 1.0, 2.0 })
    assert.equal(2, net:parameters()[1]:flatten()[1]:item())
    assert.is_true(net:parameters()[1].requires_grad)
    assert.is_false(averaged:parameters()[1].requires_grad)
    assert.equal(2, averaged.n_averaged:item())
    averaged:eval()
    assert.same({ 3, 2, 2, 2 }, averaged(lt.ones(3, 1, 4, 4)).shape)
  end)

  it("keeps the last buffers, or averages them too", function()
    for _, use in ipairs { false, true } do
      local net = net_of()
      local averaged = lt.optim.AveragedModel(net, { use_buffers = use })
      for _, value in ipairs { 1.0, 3.0 } do
        lt.allow_update(function() net:buffers()[1]:fill_(value) end)
        averaged:update_parameters(net)
      end
      assert.near(use and 2 or 3, averaged.module:buffers()[1][1]:item(), 1e-6)
    end
  end)

  it("is saved and loaded as any module", function()
    local value, averaged, net = path({ decay = 0.5 }, { 1.0, 2.0 })
    local other = lt.optim.AveragedModel(net_of(), { decay = 0.5 })
    other:load_state_dict(averaged:state_dict())
    assert.equal(value, other.module:parameters()[1]:flatten()[1]:item())
    set(net, 8.0)
    averaged:update_parameters(net)
    other:update_parameters(net)
    assert.equal(lt.hash(averaged:state_dict()), lt.hash(other:state_dict()))
  end)

  it("keeps weights that two layers share as one", function()
    local net = lt.nn.Sequential(lt.nn.Linear(2, 2), lt.nn.Linear(2, 2))
    net[2].weight = net[1].weight
    local averaged = lt.optim.AveragedModel(net)
    assert.equal(#net:parameters(), #averaged.module:parameters())
    assert.equal(averaged.module[1].weight, averaged.module[2].weight)
  end)

  it("says what does not fit", function()
    assert.matches("optim%.AveragedModel: the first argument must be a module: got 3",
      error_of(lt.optim.AveragedModel, 3))
    local averaged = lt.optim.AveragedModel(net_of())
    assert.matches("AveragedModel: update_parameters: the model has other parameters",
      error_of(function() averaged:update_parameters(lt.nn.Linear(2, 2)) end))
  end)
end)

describe("update_bn", function()
  it("computes the statistics anew, as means over the batches", function()
    local norm = lt.nn.BatchNorm2d(1)
    lt.seed(4)
    local x = lt.randn(12, 1, 3, 3) * 2 + 5
    local loader = lt.data.DataLoader(lt.data.TensorDataset(x), { batch_size = 4 })
    lt.allow_update(function() norm.running_mean:fill_(100) end)
    norm:eval()
    lt.optim.update_bn(loader, norm)
    local mean, variance = 0, 0
    for k = 0, 2 do
      local part = x:narrow(1, 1 + 4 * k, 4)
      mean, variance = mean + part:mean():item() / 3, variance + part:var():item() / 3
    end
    assert.near(mean, norm.running_mean:item(), 1e-4)
    assert.near(variance, norm.running_var:item(), 1e-4)
    assert.is_false(norm.training)
    assert.equal(0.1, norm.momentum)
  end)
end)
