-- spec/core/call_form_spec.lua: constructors take arguments by place, by name, or both.
local error_of = require "spec.error_of"
local lt = require "ltrain"
local nn, optim = lt.nn, lt.optim

local function shown(list)
  local out = {}
  for k, layer in ipairs(list) do out[k] = tostring(layer) end
  return out
end

-- That calls of one layer are alike.
local function alike(...)
  local list = shown { ... }
  for k = 2, #list do assert.equal(list[1], list[k]) end
end

describe("a constructor's arguments", function()
  it("go by place, by name, or both", function()
    alike(nn.Conv2d(3, 8, 3, { stride = 2, padding = 1 }), nn.Conv2d(3, 8, 3, 2, 1),
      nn.Conv2d(3, 8, 3, 2, { padding = 1 }),
      nn.Conv2d { in_channels = 3, out_channels = 8, kernel_size = 3, stride = 2, padding = 1 },
      nn.Conv2d(3, { out_channels = 8, kernel_size = 3, stride = 2, padding = 1 }))
    alike(nn.Dropout(0.1), nn.Dropout { p = 0.1 })
    alike(nn.Flatten(3), nn.Flatten { start_dim = 3 })
    alike(nn.MaxPool2d(3, 2), nn.MaxPool2d(3, { stride = 2 }))
    alike(nn.LSTM(4, 8, 2), nn.LSTM(4, 8, { num_layers = 2 }))
    alike(nn.LayerNorm({ 2, 3 }, 1e-3), nn.LayerNorm({ 2, 3 }, { eps = 1e-3 }))
    alike(nn.Linear(2, 3, false), nn.Linear(2, 3, { bias = false }))
    alike(nn.AdaptiveAvgPool2d { false, 7 }, nn.AdaptiveAvgPool2d { output_size = { false, 7 } })
  end)

  it("are those of optimizers and schedulers too", function()
    local p = { lt.parameter(lt.ones(1)) }
    assert.equal(0.5, optim.SGD(p, 0.5, 0.9).param_groups[1].lr)
    assert.equal(0.9, optim.SGD(p, 0.5, 0.9).param_groups[1].momentum)
    local o = optim.Adam(p, { lr = 1 })
    assert.equal(7, optim.StepLR(o, { step_size = 7, gamma = 0.5 }).step_size)
    assert.equal(0.5, optim.StepLR(o, 7, 0.5).gamma)
  end)

  it("are those of a loader too", function()
    local loader = lt.data.DataLoader({ 1, 2, 3 }, 2, true, { drop_last = true })
    assert.equal(1, #loader)
    assert.equal(2, loader.batch_size)
    assert.is_true(loader.shuffle)
  end)

  it("skip an option where nil stands in its place", function()
    alike(nn.Conv2d(1, 2, 3, nil, 1), nn.Conv2d(1, 2, 3, { padding = 1 }))
  end)

  it("are not given twice, and none is one too many", function()
    assert.matches("Conv2d: stride is given by place and by name",
      error_of(nn.Conv2d, 3, 8, 3, 1, { stride = 2 }))
    assert.matches("Flatten: one argument too many: 4", error_of(nn.Flatten, 2, 3, 4))
    assert.matches("Dropout: one argument too many: 2", error_of(nn.Dropout, 0.1, 2))
    assert.matches("nn.Conv2d: unknown option 'paddin'; did you mean 'padding'",
      error_of(nn.Conv2d, { in_channels = 1, out_channels = 1, kernel_size = 1, paddin = 1 }))
  end)

  it("of a class below are those of its own init", function()
    local Net = nn.Linear:extend("Net")
    function Net:init(o) nn.Linear.init(self, o.size, 4) end
    assert.equal("Net(5, 4)", tostring(Net { size = 5 }))
    local Same = nn.Linear:extend("Same")
    assert.equal("Same(5, 4)", tostring(Same { in_features = 5, out_features = 4 }))
  end)

  it("are named by errors where another library's names stand in their places", function()
    for wanted, call in pairs {
      ["Dropout: unknown option 'rate'; did you mean 'p'?"] = { nn.Dropout, { rate = 0.1 } },
      ["Linear: unknown option 'n_features'; did you mean 'in_features'?"] =
        { nn.Linear, { n_features = 3, out_features = 2 } },
      ["Linear: unknown option 'units'; did you mean 'out_features'?"] =
        { nn.Linear, 3, { units = 2 } },
      ["BatchNorm2d: unknown option 'epsilon'; did you mean 'eps'?"] =
        { nn.BatchNorm2d, 3, { epsilon = 1 } },
      ["LSTM: unknown option 'weights_only'; files of tensors and plain values are all that is "
        .. "read: leave it out"] = { nn.LSTM, 2, 3, { weights_only = true } },
    } do
      assert.matches(wanted, error_of(table.unpack(call)), 1, true)
    end
  end)
end)

describe("an option of an operation under another library's name", function()
  local x, q = lt.ones(2, 3), lt.ones(1, 1, 2, 2)
  it("is not dropped in a list of dims", function()
    assert.matches("sum: a list of dims has the option 'keepdim': give it in a table after it",
      error_of(x.sum, x, { 1, keepdim = true }), 1, true)
    assert.same({ 1, 1 }, x:sum({ 1, 2 }, { keepdim = true }).shape)
  end)
  for wanted, call in pairs {
    ["sum: unknown option 'axis'; did you mean 'dims'?"] = { x.sum, x, { axis = 1 } },
    ["softmax: unknown option 'axis'; did you mean 'dim'?"] = { x.softmax, x, { axis = 1 } },
    ["std: unknown option 'ddof'; did you mean 'correction'?"] = { x.std, x, { ddof = 1 } },
    ["sort: unknown option 'reverse'; did you mean 'descending'?"] =
      { x.sort, x, { reverse = true } },
    ["scaled_dot_product_attention: unknown option 'attn_mask'; did you mean 'mask'?"] =
      { q.scaled_dot_product_attention, q, q, q, { attn_mask = lt.ones(2, 2) } },
    ["scaled_dot_product_attention: unknown option 'is_causal'; did you mean 'causal'?"] =
      { q.scaled_dot_product_attention, q, q, q, { is_causal = true } },
  } do
    it("is answered with ours: " .. wanted:match "^.-'.-'", function()
      assert.matches(wanted, error_of(table.unpack(call)), 1, true)
    end)
  end
end)
