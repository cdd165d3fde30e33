-- spec/data/scaler_spec.lua: features on one scale, categories as ids and columns, and their state.

local lt = require "ltrain"
local error_of = require "spec.error_of"
local has = require "spec.has"

local nan <const> = 0 / 0

describe("data.Scaler", function()
  it("gives the training data mean 0 and standard deviation 1", function()
    local x = lt.randn(200, 3) * lt.tensor { 1, 10, 100 } + lt.tensor { 5, -5, 0.5 }
    local scaler = lt.data.Scaler(3):fit(x)
    local y = scaler(x):double()
    for k = 1, 3 do
      local column = y:narrow(2, k, 1)
      assert.near(0, column:mean():item(), 1e-5)
      assert.near(1, (column * column):mean():item(), 1e-4)
    end
    assert.is_true(lt.allclose(x, scaler:inverse(scaler(x)), { atol = 1e-4 }))
  end)

  it("brings features to 0..1 with min_max, and NaN to fill", function()
    local x = lt.tensor { { 1, nan, 5 }, { 3, 30, 5 }, { 2, 10, 5 } }
    local scaler = lt.data.Scaler(3, { mode = "min_max", fill = -1 }):fit(x)
    assert.same({ { 0.5, -1, 0 }, { -1, 0.5, 1 } },
      scaler(lt.tensor { { 2, nan, 5 }, { nan, 20, 6 } }):tolist())
  end)

  it("leaves NaN out, and NaN without fill", function()
    local scaler = lt.data.Scaler(1):fit(lt.tensor { { 1 }, { nan }, { 3 } })
    local y = scaler(lt.tensor { { 3 }, { nan } }):tolist()
    assert.equal(1, y[1][1])
    assert.is_true(y[2][1] ~= y[2][1])
  end)

  it("is saved with the model that has it", function()
    local scaler = lt.data.Scaler(1):fit(lt.tensor { { 1.0 }, { 5.0 } })
    local net = lt.nn.ModuleDict { scaler = scaler }
    local other = lt.nn.ModuleDict { scaler = lt.data.Scaler(1) }
    other:load_state_dict(net:state_dict())
    assert.equal(1, other.scaler(lt.tensor { { 5.0 } }):item())
    assert.equal(0, #net:parameters())
  end)

  it("refuses to scale before it was fitted, other features, and one without values", function()
    has(error_of(function() lt.data.Scaler(1)(lt.ones(1, 1)) end),
      "Scaler: the scaler has not been fitted")
    has(error_of(function() lt.data.Scaler(2):fit(lt.ones(1, 3)) end),
      "Scaler:fit: needs a tensor [..., 2], got a tensor [1, 3]")
    has(error_of(function() lt.data.Scaler(2):fit(lt.tensor { { 1, nan } }) end),
      "Scaler:fit: feature 2 has no value")
  end)
end)

describe("data.OrdinalEncoder", function()
  local trees = lt.csv.table { { "kind", { "oak", "", "ash" } }, { "year", { 1990, 2000, 1990 } } }

  it("gives ids of the categories of the training data, -1 for others", function()
    local encoder = lt.data.OrdinalEncoder { "kind", "year" }:fit(trees)
    assert.same({ { "ash", "oak" }, { "1990", "2000" } }, encoder:lists())
    assert.same({ 2, 2 }, encoder:sizes())
    assert.same({ { 1, 0 }, { -1, 1 }, { 0, 0 } }, encoder(trees):tolist())
    assert.same({ { -1, 1 } }, encoder { kind = { "elm" }, year = { 2000 } }:tolist())
  end)

  it("refuses categories that it does not know where it is told to", function()
    local encoder = lt.data.OrdinalEncoder({ "kind" }, { unknown = "error" }):fit(trees)
    assert.same({ { -1 } }, encoder { kind = { "" } }:tolist())
    has(error_of(function() encoder { kind = { "oak", "elm" } } end),
      "OrdinalEncoder: 'elm' is not a category of column 'kind' in row 2")
  end)

  it("is saved with the model, however many categories there are", function()
    local net = lt.nn.Sequential(lt.data.OrdinalEncoder { "kind" }:fit(trees))
    local other = lt.nn.Sequential(lt.data.OrdinalEncoder { "kind" })
    local path = os.tmpname()
    assert(lt.save(path, net:state_dict()))
    other:load_state_dict(assert(lt.load(path)))
    os.remove(path)
    assert.same({ { 1 } }, other[1] { kind = { "oak" } }:tolist())
    has(error_of(function()
      lt.nn.Sequential(lt.data.OrdinalEncoder { "kind" }):load_state_dict {}
    end), "missing: 0.categories")
  end)

  it("says what it was not given", function()
    has(error_of(lt.data.OrdinalEncoder), "OrdinalEncoder: needs a list of names of columns, got")
    has(error_of(function() lt.data.OrdinalEncoder { "x" } { x = {} } end),
      "it has not been fitted")
    has(error_of(function() lt.data.OrdinalEncoder { "kinds" }:fit(trees) end),
      "there is no column 'kinds'; did you mean 'kind'?")
    has(error_of(function() lt.data.OrdinalEncoder { "x" }:fit { x = { "" } } end),
      "OrdinalEncoder:fit: column 'x' has no value")
  end)
end)

describe("data.OneHotEncoder", function()
  it("gives a column to each category", function()
    local t = { a = { "x", "y" }, b = { "p", "q", "r" } }
    local encoder = lt.data.OneHotEncoder { "a", "b" }:fit(t)
    assert.same({ { 0, 1, 1, 0, 0 }, { 0, 0, 0, 0, 1 } },
      encoder { a = { "y", "z" }, b = { "p", "r" } }:tolist())
  end)
end)
