-- spec/core/callback_spec.lua: the protocols Callback, Logger and Strategy.

local lt = require "ltrain"

describe("Callback", function()
  it("has no hooks, no state, and the name of its class as key", function()
    local Mine = lt.Callback:extend("Mine")
    local callback = Mine()
    assert.is_nil(callback.on_train_start)
    assert.is_nil(callback:state_dict())
    assert.equal("Mine", callback:state_key())
  end)

  it("is made of a plain table by adopt", function()
    local callback = lt.Callback.adopt { on_train_start = function() return 5 end }
    assert.equal(5, callback:on_train_start())
    assert.equal("Callback", callback:state_key())
    assert.is_true(rawequal(callback, lt.Callback.adopt(callback)))
  end)

  it("refuses anything else", function()
    local ok, message = pcall(lt.Callback.adopt, "text")
    assert.is_false(ok)
    assert.matches("a callback must be an object of a subclass of lt.Callback or a plain table "
      .. "of hooks: "
      .. "got 'text'", message)
  end)
end)

describe("Logger", function()
  it("saves when it is finalized", function()
    local Mine, saved = lt.Logger:extend("Mine"), 0
    function Mine.save() saved = saved + 1 end
    Mine():finalize("success")
    assert.equal(1, saved)
  end)
end)

describe("Strategy", function()
  it("is one process: every answer is its own", function()
    local strategy = lt.Strategy()
    assert.same({ 1, 0, true }, { strategy.world_size, strategy.global_rank,
                                  strategy.is_global_zero })
    assert.equal(3, strategy:reduce(3, "mean"))
    assert.equal("x", strategy:broadcast("x"))
    assert.same({ 7 }, strategy:all_gather(7))
    assert.is_true(strategy:reduce_boolean(true))
  end)
end)
