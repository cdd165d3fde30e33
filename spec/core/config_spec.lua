-- spec/core/config_spec.lua: options against their description.

local config = require "ltrain.core.config"

local SPEC <const> = {
  padding = { type = "pair", default = 0, min = 0 },
  mode = { type = "string", choices = { "min", "max" } },
  lr = { type = "number", required = true, above = 0 },
  size = { type = "integer|string" },
  bias = { type = "boolean", default = true },
  name = { check = function(value) if value == "x" then return "is not free" end end },
}

local function check(options)
  return config.check(options, SPEC, "nn.Conv2d")
end

describe("config.check", function()
  it("fills in defaults", function()
    assert.same({ padding = 0, lr = 1, bias = true }, check { lr = 1 })
  end)

  it("copies a default that is a table", function()
    local spec = { betas = { type = "table", default = { 0.9, 0.999 } } }
    config.check(nil, spec, "x").betas[1] = 5
    assert.same({ 0.9, 0.999 }, config.check(nil, spec, "x").betas)
  end)

  it("keeps false", function()
    assert.is_false(check { lr = 1, bias = false }.bias)
  end)

  it("does not change what it is given", function()
    local options = { lr = 1 }
    check(options)
    assert.same({ lr = 1 }, options)
  end)

  it("names the nearest option at the user's line", function()
    local _, message = pcall(function() check { lr = 1, paddin = 1 } end)
    assert.matches("spec/core/config_spec%.lua:%d+: nn%.Conv2d: unknown option 'paddin'; "
      .. "did you mean 'padding'%?$", message)
  end)

  it("says what to give in place of a name that is not taken", function()
    local spec <const> = { key_mask = { type = "tensor" },
                           key_padding_mask = { instead = "key_mask, its opposite" } }
    assert.same({}, config.check({}, spec, "x"))
    assert.error_matches(function() config.check({ key_padding_mask = 1 }, spec, "x") end,
      "x: key_padding_mask is not taken: give key_mask, its opposite$")
    assert.error_matches(function() config.check({ key_padding_mas = 1 }, spec, "x") end,
      "unknown option 'key_padding_mas'$")
  end)

  it("does not guess from afar", function()
    assert.error_matches(function() check { lr = 1, zzzz = 1 } end, "unknown option 'zzzz'$")
  end)

  it("names an option that is required", function()
    assert.error_matches(function() check {} end, "nn%.Conv2d: option 'lr' is required")
    assert.error_matches(function() check() end, "nn%.Conv2d: option 'lr' is required")
  end)

  it("names the type that is wanted and the value", function()
    assert.error_matches(function() check { lr = "1" } end, "lr must be a number: got '1'")
    assert.error_matches(function() check { lr = 1, size = 1.5 } end,
      "size must be an integer or a string: got 1.5")
  end)

  it("makes an integer of a whole float", function()
    assert.equal("integer", math.type(check { lr = 1, size = 3.0 }.size))
  end)

  it("takes a number or two for a pair", function()
    assert.equal(2, check { lr = 1, padding = 2 }.padding)
    assert.same({ 1, 2 }, check { lr = 1, padding = { 1, 2 } }.padding)
    assert.error_matches(function() check { lr = 1, padding = { 1, 2, 3 } } end,
      "padding must be an integer or {height, width}: got a table")
    assert.error_matches(function() check { lr = 1, padding = { 1, -2 } } end,
      "padding must be at least 0: got %-2")
  end)

  it("lists the choices", function()
    assert.error_matches(function() check { lr = 1, mode = "mim" } end,
      "mode must be 'min' or 'max': got 'mim'; did you mean 'min'%?")
  end)

  it("checks bounds, which NaN does not keep", function()
    assert.error_matches(function() check { lr = 0 } end, "lr must be above 0: got 0")
    assert.error_matches(function() check { lr = 0 / 0 } end, "lr must be above 0: got %-?nan")
  end)

  it("asks the row's own check", function()
    assert.error_matches(function() check { lr = 1, name = "x" } end,
      "nn%.Conv2d: name is not free")
  end)

  it("wants a plain table", function()
    assert.error_matches(function() check(5) end,
      "nn%.Conv2d: options must be a table, {lr = 5}: got 5")
  end)
end)

describe("config.argument", function()
  it("names the argument", function()
    assert.equal(3, config.argument(3, "integer", "nn.Linear", "in_features", { min = 1 }))
    assert.error_matches(function()
      config.argument(nil, "integer", "nn.Linear", "in_features")
    end, "nn%.Linear: in_features must be an integer: got nil")
    assert.error_matches(function()
      config.argument(0, "integer", "nn.Linear", "in_features", { min = 1 })
    end, "nn%.Linear: in_features must be at least 1: got 0")
  end)
end)
