-- spec/break/protocol_spec.lua: what a script hands to the Trainer's protocol and must not: each is
-- refused with the script's line.
local console = require "ltrain.core.console"
local lt = require "ltrain"
local tiny = require "spec.trainer.tiny"

local say <const> = console.say
before_each(function() console.say = function() end end)
after_each(function() console.say = say end)

-- The error of a fit of two batches; `change(net)` before it.
local function refused(change, options, train)
  local net = tiny.Line()
  if change then change(net) end
  return tiny.error_of(function()
    tiny.trainer(options):fit(net, train or tiny.same(2))
  end)
end

-- A change that gives the net a scheduler.
local function scheduled(make)
  return function(net)
    function net:configure_optimizers()
      local optimizer = lt.optim.SGD(self:parameters(), { lr = 0.1 })
      return { optimizer = optimizer, lr_scheduler = { scheduler = make(optimizer),
        interval = "step" } }
    end
  end
end

describe("a scheduler", function()
  it("of LambdaLR names the function that returns no number", function()
    assert.matches("spec.lua:%d+: optim.LambdaLR: the function of .*protocol_spec.lua:%d+ must "
      .. "return a number: got nil after 1 steps$", refused(scheduled(function(optimizer)
        return lt.optim.LambdaLR(optimizer, function(n) if n == 0 then return 1.0 end end)
      end)))
  end)

  it("of one's own gives rates that are finite numbers", function()
    local Own = lt.optim.LRScheduler:extend("Own")
    for _, wrong in ipairs { "nan", "inf", "nil", "'x'" } do
      local values = { nan = 0 / 0, inf = 1 / 0, ["'x'"] = "x" }
      function Own.rate(_, base, n) return n == 0 and base or n > 0 and values[wrong] or nil end
      assert.matches("spec.lua:%d+: Own: the rate of group 1 after 1 steps must be a finite "
        .. "number: got " .. wrong, refused(scheduled(function(optimizer)
          return Own(optimizer)
        end)))
    end
  end)
end)

describe("a list of layers", function()
  it("has no gap", function()
    local a = lt.nn.ReLU()
    for _, make in ipairs {
      function() return lt.nn.Sequential(a, nil, a) end,
      function() return lt.nn.Sequential { [1] = a, [3] = a } end,
      function() return lt.nn.Sequential(a, nil) end,
      function() return lt.nn.ModuleList { a, nil, a } end,
    } do
      assert.matches("nn.%w+: element 2 must be a module: got nil$", tiny.error_of(make))
    end
    local net = lt.nn.Sequential(a, a, a, a)
    net[2] = nil
    assert.matches("Sequential: element 2 is nil", tiny.error_of(net, lt.ones(1)))
  end)
end)

describe("a limit", function()
  it("is a number that is one", function()
    for _, name in ipairs { "limit_train_batches", "limit_val_batches", "limit_test_batches",
      "limit_predict_batches", "overfit_batches" } do
      assert.matches(name .. " must be an integer %(batches%) or a fraction from 0.0 to 1.0: "
        .. "got nan$",
        tiny.error_of(lt.Trainer, { [name] = 0 / 0 }))
    end
    assert.matches("val_check_interval must be .*: got nan$",
      tiny.error_of(lt.Trainer, { val_check_interval = 0 / 0 }))
  end)
end)

describe("a loader", function()
  it("that gives nothing at all is not an epoch", function()
    local where = "protocol_spec.lua:%d+: fit: train_dataloader has no batches: the function of "
      .. ".*protocol_spec.lua:%d+ returned nothing, or an iterator that gave nothing$"
    assert.matches(where, refused(nil, nil, function() end))
    assert.matches(where, refused(nil, nil, function() return function() end end))
    assert.matches("fit: train_dataloader has no batches: an object of class DataLoader gave none$",
      refused(nil, nil, lt.data.DataLoader(function() return function() end end)))
  end)

  it("of validation, test and predict neither", function()
    for word, name in pairs { validate = "val", test = "test", predict = "predict" } do
      local net, trainer = tiny.Line(), tiny.trainer()
      net.validation_step, net.test_step = function() end, function() end
      assert.matches(("%s: %s_dataloader has no batches: the function"):format(word, name),
        tiny.error_of(trainer[word], trainer, net, function() end))
    end
  end)
end)

describe("a logged name", function()
  it("clashes with what another is shown as", function()
    local function log_both(first, second)
      return refused(function(net)
        function net:training_step(x)
          self:log(first, 1, { on_step = true, on_epoch = true })
          self:log(second, 2)
          return self:loss(x)
        end
      end)
    end
    assert.matches("protocol_spec.lua:%d+: log: 'q' and 'q_step' would both be shown as 'q_step': "
      .. "rename one of them$", log_both("q", "q_step"))
    assert.matches("log: 'q' and 'q_epoch' would both be shown as 'q_epoch'",
      log_both("q", "q_epoch"))
  end)

  it("holds no control characters; what is shown anyway has them as Lua writes them", function()
    assert.matches([[log: the name must be without control characters: got 'a\10b\27%[2J'$]],
      refused(function(net)
        function net:training_step() self:log("a\nb\27[2J", 1) end
      end))
    local raw, bar = console.raw, {}
    console.raw = function(text) bar[#bar + 1] = text end
    local net = tiny.Line()
    function net:on_train_batch_end() self.trainer.progress_bar_metrics["a\n\27"] = "b\27" end
    tiny.trainer({ enable_progress_bar = true }):fit(net, tiny.same(1))
    console.raw = raw
    assert.matches([[a\10\27=b\27]], table.concat(bar))
    assert.is_nil(table.concat(bar):find("a\n", 1, true))
  end)

  it("may be as long as it likes in the table of an evaluation", function()
    local print_, lines = console.print, {}
    console.print = function(text) lines[#lines + 1] = text end
    local net, name = tiny.Line(), ("n"):rep(120)
    function net:validation_step() self:log(name, 1) end
    tiny.trainer():validate(net, tiny.same(1))
    console.print = print_
    assert.matches(name .. " +1$", lines[1])
  end)
end)

describe("hyper-parameters", function()
  it("that are saved twice are merged, the later over the earlier", function()
    local Base = lt.Module:extend("Base")
    function Base:init(o) self:save_hyperparameters({ width = o.width, depth = 1 }) end
    local Below = Base:extend("Below")
    function Below:init(o)
      Base.init(self, o)
      self:save_hyperparameters({ depth = 2, rate = 0.5 })
    end
    assert.same({ width = 8, depth = 2, rate = 0.5 }, Below({ width = 8 }).hparams)
  end)
end)

-- Values that are none of what is asked for.
local function wrong_values()
  return { 0 / 0, true, -1, 0.5, "x", {}, { 1 }, { a = 1 }, io.stdout, lt.Callback(),
    coroutine.create(function() end), setmetatable({}, {}) }
end

-- A place of the protocol: fn(value) hands the value over. Whatever comes of it, an error names a
-- line of the script.
local PLACES <const> = {
  ["a hook of the module, in mid-run"] = function(value)
    local net = tiny.Line()
    function net:on_train_batch_end() self.on_train_batch_end = value end
    function net:on_before_backward() self.on_before_backward = value end
    tiny.trainer():fit(net, tiny.same(3))
  end,
  ["a method of a callback"] = function(value)
    for _, name in ipairs { "state_key", "state_dict", "on_train_start" } do
      local callback = lt.Callback()
      callback[name] = value
      local trainer = tiny.trainer { callbacks = { callback } }
      trainer:fit(tiny.Line(), tiny.same(1))
    end
  end,
  ["a hook of the data module"] = function(value)
    for _, name in ipairs { "setup", "prepare_data", "teardown", "on_before_batch_transfer" } do
      tiny.trainer():fit(tiny.Line(), { [name] = value,
        train_dataloader = function() return tiny.same(1) end })
    end
  end,
  ["what configure_callbacks returns"] = function(value)
    local net = tiny.Line()
    function net.configure_callbacks() return value end
    tiny.trainer():fit(net, tiny.same(1))
  end,
  ["schedulers"] = function(value)
    local net = tiny.Line()
    function net:configure_optimizers()
      return { lt.optim.SGD(self:parameters(), { lr = 0.1 }) }, value
    end
    tiny.trainer():fit(net, tiny.same(1))
  end,
  ["methods of an optimizer"] = function(value)
    for _, name in ipairs { "zero_grad", "state_dict", "step", "param_groups" } do
      local net = tiny.Line()
      function net:configure_optimizers()
        local optimizer = lt.optim.SGD(self:parameters(), { lr = 0.1 })
        rawset(optimizer, name, value)
        return optimizer
      end
      tiny.trainer():fit(net, tiny.same(1))
    end
  end,
  ["the state of a scheduler"] = function(value)
    local scheduler = lt.optim.StepLR(lt.optim.SGD(tiny.Line():parameters(), { lr = 0.1 }), 2)
    for _, key in ipairs { "base_lrs", "last_epoch" } do
      local state = scheduler:state_dict()
      state[key] = value
      assert.has_error(function() scheduler:load_state_dict(state) end)
    end
    scheduler:load_state_dict(value)
  end,
  ["a loss"] = function(value)
    for _, manual in ipairs { false, true } do
      local net = tiny.Line()
      net.automatic_optimization = not manual
      function net:training_step()
        if manual then self:manual_backward(value) end
        return value
      end
      tiny.trainer():fit(net, tiny.same(1))
    end
  end,
  ["an optimizer of a manual step"] = function(value)
    for _, name in ipairs { "toggle_optimizer", "clip_gradients" } do
      local net = tiny.Line()
      net.automatic_optimization = false
      net.training_step = function(self) self[name](self, value, 1.0) end
      tiny.trainer():fit(net, tiny.same(1))
    end
  end,
  ["what an object that loads returns"] = function(value)
    for _, name in ipairs { "length", "batches" } do
      local loader = setmetatable({ batches = function() return function() end end }, {})
      loader[name] = function() return value end
      tiny.trainer():fit(tiny.Line(), loader)
    end
  end,
  ["methods of a logger"] = function(value)
    for _, name in ipairs { "log_metrics", "log_hyperparams", "save", "finalize", "begin" } do
      local logger = lt.Logger()
      logger[name] = value
      tiny.trainer({ logger = logger }):fit(tiny.Line(), tiny.same(1))
    end
  end,
  ["the list of callbacks, in mid-run"] = function(value)
    local net = tiny.Line()
    function net:on_train_batch_end() self.trainer.callbacks = value end
    tiny.trainer():fit(net, tiny.same(2))
  end,
  ["what a metric computes"] = function(value)
    local net, metric = tiny.Line(), lt.metrics.Mean()
    metric.compute = function() return value end
    function net:training_step(x)
      self:log("metric", metric, { on_epoch = true })
      return self:loss(x)
    end
    tiny.trainer():fit(net, tiny.same(1))
  end,
  ["the options of a logged value"] = function(value)
    local net = tiny.Line()
    function net:training_step() self:log("value", 1, value) end
    tiny.trainer():fit(net, tiny.same(1))
  end,
  ["a logged value"] = function(value)
    local net = tiny.Line()
    function net:training_step() self:log("value", value) end
    tiny.trainer():fit(net, tiny.same(1))
  end,
}

describe("a value that is none of what is asked for is refused at a line of the script:", function()
  for name, fn in pairs(PLACES) do
    it(name, function()
      local refusals = 0
      for _, value in ipairs(wrong_values()) do
        local ok, message = pcall(fn, value)
        if not ok then
          refusals = refusals + 1
          assert.matches("^%S*spec/%S*%.lua:%d+: ", message)
        end
      end
      assert.is_true(refusals > 6, refusals)
    end)
  end
end)
