-- spec/callbacks/progress_bar_spec.lua: what a run shows, at every width, with a terminal and
-- without.
local child = require "spec.cli.child"
local tiny = require "spec.trainer.tiny"
local written = require "spec.callbacks.written"

-- A net that logs `metrics` in training, for the bar, and `values` in validation.
local function net_with(metrics, values)
  local net = tiny.Line()
  function net:training_step(x)
    self:log_dict(metrics, { prog_bar = true })
    return self:loss(x)
  end
  if values then
    function net:validation_step() self:log_dict(values) end
  end
  return net
end

local function fit(width, net, options)
  local o = { enable_progress_bar = true, max_epochs = 2 }
  for name, value in pairs(options or {}) do o[name] = value end
  return written(width, function() tiny.trainer(o):fit(net, tiny.same(4), tiny.same(2)) end)
end

-- Everything that was on the screen in one piece.
local function shown(text)
  local lines = {}
  for line in text:gsub("\27%[K", ""):gmatch "[^\r\n]+" do lines[#lines + 1] = line end
  return lines
end

local function has_line(text, wanted)
  for _, line in ipairs(shown(text)) do
    if line:find(wanted) then return true end
  end
  error(("no line is %q in:\n%s"):format(wanted, text))
end

local METRICS <const> = { acc = 0.5336, loss = 0.2512, grad_norm = 12345.678, lr = 1.25e-5 }

describe("ProgressBar", function()
  it("writes two lines an epoch where there is no terminal", function()
    local text = fit(nil, net_with({ loss = 0.25 }, { val_loss = 0.5, val_acc = 0.5336 }))
    local lines = shown(text)
    assert.equal(4, #lines)
    assert.matches("^epoch 0 |####################| 4/4 %[.-%] loss=0.25$", lines[1])
    assert.equal("epoch 0, step 3, validation: val_acc=0.5336 val_loss=0.5", lines[2])
    assert.matches("^epoch 1 ", lines[3])
    assert.equal("epoch 1, step 7, validation: val_acc=0.5336 val_loss=0.5", lines[4])
  end)

  it("shows what the module logs when the epoch ends", function()
    local net = net_with { shown = 0.25 }
    function net:on_train_epoch_end() self:log("late", 2.5, { prog_bar = true }) end
    assert.matches("^epoch 0 [^\n]* late=2.5 shown=0.25\n", fit(nil, net))
  end)

  it("stays within the terminal, whatever its width, and cuts no number", function()
    local whole = {}
    for name, value in pairs(METRICS) do whole[("%s=%.4g"):format(name, value)] = true end
    whole["val_acc=0.5336"], whole["val_class=0.1429"] = true, true
    for _, width in ipairs { 24, 40, 59, 60, 80, 103, 120, 200 } do
      local text = fit(width, net_with(METRICS, { val_acc = 0.5336, val_class = 1 / 7 }))
      for _, line in ipairs(shown(text)) do
        assert.is_true(#line < width or #line < 30 and line:find "^epoch %d, step" ~= nil, line)
        for word in line:gmatch "%a[%w_]*=%S*" do assert.is_true(whole[word], line) end
      end
      for name, value in pairs(METRICS) do -- all of them in the lines that stay
        assert.matches(("%s=%.4g"):format(name, value):gsub("%p", "%%%0"),
          text:match "\27%[K(epoch 0[^\r]*)\nepoch 0, step 3, validation:")
      end
    end
  end)

  it("gives up the bar first, then the rate, the times, whole metrics", function()
    local text <const> = "acc=0.5336 grad_norm=1.235e+04 lr=1.25e-05 loss=0.2512"
    local progress_line = require "ltrain.callbacks.progress_line"
    local task = { title = "epoch 3", done = 100, skipped = 0, total = 400, elapsed = 10, bar = 8 }
    local metrics = {}
    for metric in text:gmatch "%S+" do metrics[#metrics + 1] = metric end
    for width, line in pairs {
      [200] = "epoch 3 |##......| 100/400 [00:10<00:30, 10 it/s] " .. text,
      [104] = "epoch 3 |##......| 100/400 [00:10<00:30, 10 it/s] " .. text,
      [103] = "epoch 3 |##.....| 100/400 [00:10<00:30, 10 it/s] " .. text,
      [99] = "epoch 3 |#..| 100/400 [00:10<00:30, 10 it/s] " .. text,
      [98] = "epoch 3 100/400 [00:10<00:30, 10 it/s] " .. text,
      [92] = "epoch 3 100/400 [00:10<00:30] " .. text,
      [83] = "epoch 3 100/400 " .. text,
      [69] = "epoch 3 100/400 acc=0.5336 grad_norm=1.235e+04 lr=1.25e-05 ...",
      [30] = "epoch 3 100/400 acc=0.5336 ...",
      [29] = "epoch 3 100/400 [00:10<00:30]",
      [19] = "epoch 3 100/400",
      [14] = "100/400",
      [6] = "",
    } do
      assert.equal(line, progress_line.text(task, metrics, width))
    end
    assert.equal("épo 1/∞", progress_line.text({ title = "épo", done = 1, skipped = 0, total = 1,
      elapsed = 0, bar = 0 }, {}, 7):gsub("1/1", "1/∞"))
  end)

  it("shows validation in place of the epoch, then the epoch again; its metrics below", function()
    local text = fit(70, net_with({ loss = 0.25 }, { val_loss = 0.5 }), { max_epochs = 1 })
    assert.matches("sanity check |#*%.*| 2/2.*epoch 0.*validation |#*| 2/2.*epoch 0"
      .. ".*loss=0.25\nepoch 0, step 3, validation: val_loss=0.5\n$", text)
  end)

  it("knows how many batches the sanity check has", function()
    local text = fit(70, net_with({}, { val_loss = 0.5 }), { num_sanity_val_steps = 1 })
    has_line(text, "^sanity check |[#.]*| 0/1 ")
    text = fit(70, net_with({}, { val_loss = 0.5 }), { num_sanity_val_steps = -1 })
    has_line(text, "^sanity check |[#.]*| 2/2 ")
  end)

  it("puts validations within the epoch above it, each once", function()
    for _, width in ipairs { false, 70 } do
      local text = fit(width or nil, net_with({ loss = 0.25 }, { val_loss = 0.5 }),
        { max_epochs = 1, val_check_interval = 2 }):gsub("[\r\n]epoch 0 [^\r\n]*\r", "\r")
      assert.equal(1, select(2, text:gsub("epoch 0, step 1, validation: val_loss=0.5\n", "")))
      assert.equal(1, select(2, text:gsub("epoch 0, step 3, validation: val_loss=0.5\n", "")))
      assert.matches("step 1, .*\n.*epoch 0 |#*| 4/4 .*\nepoch 0, step 3, ", text)
    end
  end)

  it("shows a metric of validation once where it is in the bar too", function()
    local net = net_with { loss = 0.25 }
    function net:validation_step() self:log("val_loss", 0.5, { prog_bar = true }) end
    local lines = shown(fit(nil, net))
    assert.matches("%] loss=0.25$", lines[1])
    assert.equal("epoch 0, step 3, validation: val_loss=0.5", lines[2])
    has_line(fit(100, net), "^epoch 1 .* loss=0.25 val_loss=0.5$")
  end)

  it("reports the last validation of a fit that an error ends", function()
    local net = net_with({ loss = 0.25 }, { val_loss = 0.5 })
    function net.on_train_epoch_end() error "no" end
    local text = written(nil, function()
      pcall(function()
        tiny.trainer({ enable_progress_bar = true }):fit(net, tiny.same(4), tiny.same(2))
      end)
    end)
    assert.matches("epoch 0, step 3, validation: val_loss=0.5\n$", text)
  end)

  it("lets messages stand above it", function()
    local net = net_with {}
    function net:on_train_batch_end() self.trainer:print() end
    assert.matches("\r\27%[K\repoch", fit(70, net))
  end)

  it("lets a script's print stand above it, on a terminal of any width", function()
    local folder = child.folder()
    child.write(folder .. "/s.lua", [[
local lt = require "ltrain"
local print, write = print, io.write
local net = lt.nn.Linear(1, 1)
function net:training_step(x, i)
  self:log_dict({ acc = 0.5336, loss = 0.2512 }, { prog_bar = true })
  print("step", i)
  write("part, ")
  write("end ", i, "\n")
  return self(x[1]):mean()
end
function net:validation_step() self:log("val_loss", 0.5) end
function net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.1}) end
local loader = lt.data.DataLoader(lt.data.TensorDataset(lt.ones(4, 1)))
local options = {max_epochs = 1, logger = false, enable_checkpointing = false,
  enable_model_summary = false}
local data = {train = loader, val = loader}
if ... ~= "fit" then return {model = net, data = data, trainer = options} end
lt.Trainer(options):fit(net, data)
]])
    for _, line in ipairs { "ltrain run s.lua", "ltrain s.lua fit" } do
      for _, width in ipairs { 40, 200 } do
        local status, text = child.on_terminal(line,
          { dir = folder, columns = width, env = { TERM = "xterm" } })
        if not status then return pending "script is missing" end
        for i = 0, 3 do
          assert.matches(("\27[Kstep\t%d\r\n"):format(i), text, 1, true)
          assert.matches(("\27[Kpart, end %d\r\n"):format(i), text, 1, true)
        end
        assert.matches("\nepoch 0, step 3, validation:%s+val_loss=0.5\r\n", text)
        for _, one in ipairs(shown(text)) do
          assert.is_true(one:find "^ltrain: " ~= nil or #one < width, one)
        end
      end
    end
    child.remove(folder)
  end)
end)
