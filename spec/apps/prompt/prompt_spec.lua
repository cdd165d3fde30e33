-- spec/apps/prompt/prompt_spec.lua: the prompt, fed through a pipe and through a terminal.
-- tags: slow
local child = require "spec.cli.child"

-- What the prompt answers to lines, without its greeting and its marks.
local function answers(lines, options)
  options = options or {}
  options.stdin = table.concat(lines, "\n") .. "\n"
  local status, out, err = child.run({ "-i" }, options)
  assert.equal(0, status)
  return out:gsub("^ltrain [^\n]*\n", ""):gsub(">> ", ""):gsub("> ", ""), err
end

describe("the prompt", function()
  it("prints the values of expressions", function()
    assert.equal("2\nab\t1.5\tnil\n", (answers { "1 + 1", "'ab', 1.5, nil" }))
  end)

  it("prints nothing for statements, and keeps globals", function()
    assert.equal("5\n", (answers { "x = 5", "x" }))
  end)

  it("takes = in front of an expression", function()
    assert.equal("2\n", (answers { "=1 + 1" }))
  end)

  it("prints tensors as print does, tables with what is in them", function()
    assert.equal("tensor([0., 0.])\n", (answers { "lt.zeros(2)" }))
    assert.equal('{1, "two", {3}, a = true, t = tensor [2, 3] f32}\n',
      (answers { "{1, 'two', {3}, a = true, t = lt.zeros(2, 3)}" }))
  end)

  for _, line in ipairs { ":help", ":help Trainer", ":help DataLoader", ":help Module",
    ":help lt.nn.Linear", ":help cross_entropy", ":help conv2d", ":help lt", ":help zeros",
    ":help ConfusionMatrix", ":help training_step", "lt.nn.LSTM(16, 32, {bidirectional = true})",
    "lt.nn.TransformerEncoderLayer(64, 4)", "lt.randn(3, 40)", "lt.randn(2, 3, 48):to 'f64'",
    "lt.randint(0, 100000, {3, 30})", "lt.nn", ":mem",
    "lt.optim.Adam(lt.nn.Linear(2, 2):parameters())",
    "{a_long_name_of_a_field_in_a_table = ('text '):rep(30), b = {1, 2, 3}}" } do
    it("keeps 80 columns: " .. line, function()
      local out, err = answers { "lt.seed(1)", line }
      assert.equal("", err)
      for row in out:gmatch "[^\n]+" do assert.is_true(utf8.len(row) <= 80, row) end
    end)
  end

  it("breaks help between words", function()
    local words = {}
    for word in (answers { ":help Trainer.max_epochs" }):gmatch "%S+" do words[word] = true end
    for word in (answers { ":help Trainer" }):match "\n  max_epochs\n(.-)\n  %a":gmatch "%S+" do
      assert.is_true(words[word], word)
    end
  end)

  it("shows the first of many entries", function()
    local out = answers { "local t = {} for i = 1, 30 do t[i] = i end return t" }
    assert.matches("20,\n ... 10 more}\n", out, 1, true)
  end)

  it("continues reading until a statement is complete", function()
    assert.equal("1\n2\n", (answers { "for i = 1, 2 do", "print(i)", "end" }))
    assert.equal("3\n", (answers { "1 +", "2" }))
  end)

  it("survives errors and reports them with their line", function()
    local out, err = answers { "error('no')", "x.y.z", "x +* 1", "7" }
    assert.equal("7\n", out)
    assert.equal("stdin:1: no\nstdin:1: attempt to index a nil value (global 'x')\n"
      .. "stdin:1: syntax error near '+'\n", err)
  end)

  it("survives errors of values that cannot be shown", function()
    local out, err = answers { "setmetatable({}, {__tostring = function() error('hm') end})", "1" }
    assert.equal("1\n", out)
    assert.matches("stdin:1: hm", err, 1, true)
  end)

  it("notes once that locals do not last", function()
    local out = answers { "local x = 1 return x", "local x = 1", "local y = 2" }
    assert.equal("1\n(a local lasts for its line only: leave out `local` to keep it)\n", out)
  end)

  it("returns after an interrupt", function()
    local out, err = answers {
      "io.popen('kill -INT ' .. require 'ltrain.c'.runtime.pid()):close() while true do end", "8" }
    assert.equal("8\n", out)
    assert.equal("stdin:1: interrupted\n", err)
  end)

  it("knows `lt`, which scripts have to require", function()
    assert.equal(0, (child.run { "-e", "assert(lt.Module)" }))
    local folder = child.folder()
    child.write(folder .. "/s.lua", "assert(lt == nil)")
    assert.equal(0, (child.run { folder .. "/s.lua" }))
    child.remove(folder)
  end)
end)

local MODEL <const> = [[
local lt = require "ltrain"
local Net = lt.Module:extend("Net")
function Net:init() self.layer = lt.nn.Linear(4, 2) end
function Net:forward(x)
  local y = self.layer(x)
  return y
end
function Net:word() return "old" end
net = Net()
optimizer = lt.optim.Adam(net:parameters(), {lr = 0.1})
rate = 0.5
function twice(x) return 2 * x end
function net:training_step(batch) return self(batch[1]):sum() end
function net:configure_optimizers() return optimizer end
lt.seed(0)
lt.Trainer{max_epochs = 1, logger = false, enable_checkpointing = false,
  enable_model_summary = false, enable_progress_bar = false}:fit(net, {{lt.zeros(1, 4)}})
]]

describe("values at the prompt", function()
  it("shows tables within tables, those within themselves cut short", function()
    assert.equal("{a = {b = {{...}}}}\n", (answers { "{a = {b = {{{1}}}}}" }))
    assert.equal("{me = {...}}\n", (answers { "local t = {} t.me = t return t" }))
  end)

  it("shows a module as a tree, with shapes and counts", function()
    local out = answers { "lt.nn.Sequential(lt.nn.Linear(4, 2), lt.nn.ReLU())" }
    assert.equal("Sequential           10\n  [1]  Linear(4, 2)  10  weight [2, 4], bias [2]\n"
      .. "  [2]  ReLU()\n10 parameters, all trainable\n", out)
  end)

  it("shows the ends of long texts and of tensors with many lines", function()
    local out = answers { "('x'):rep(100000)", "lt.zeros(1000, 1)" }
    assert(#out < 12000, #out)
    assert.matches("... 96000 more bytes", out, 1, true)
    assert.matches("... 941 more lines ...", out, 1, true)
  end)

  it("shows keys of all types, and tables with metatables by what is in them", function()
    assert.equal("{[1.5] = 2}\n{[true] = 3}\n", (answers { "{[1.5] = 2}", "{[true] = 3}" }))
    assert.equal('{[2] = "b", a = {5}}\n', (answers { "{[2] = 'b', a = {5}}" }))
    assert.equal("{1, 2}\n{7}\n", (answers {
      "setmetatable({1, 2}, {__index = function() error 'index' end, __len = error})",
      "setmetatable({7}, {__pairs = function() error 'pairs' end})" }))
  end)

  it("shows what a part of the library has", function()
    local out = answers { "lt.optim", "lt" }
    assert.matches("^{ASGD, Adadelta, Adafactor, .-\n{.- more}\n$", out)
  end)

  it("writes no control characters of a text to the terminal", function()
    assert.equal("a\\x00b\\x1b[2J\\xff\tc\nd\nä\n",
      (answers { [["a\0b\27[2J\255\tc\nd"]], '"ä"' }))
  end)

  it("calls the last value _", function()
    assert.equal("2\n4\n4\n", (answers { "1 + 1", "_ + _", "x = 1", "_" }))
  end)
end)

describe("commands of the prompt", function()
  it("explains classes, functions, operations, hooks and itself", function()
    local out = answers { ":help nn.Linear", ":help x:sum", ":help lt.csv.read",
      ":help training_step", ":help :mem", ":help" }
    assert.matches("lt.nn.Linear(in_features, out_features, options)\n  y = x W^T + b.", out, 1,
      true)
    assert.matches("boolean; default true: whether it has b", out, 1, true)
    assert.matches("lt.sum(x, {...})", out, 1, true)
    assert.matches("lt.csv.read(path, options)", out, 1, true)
    assert.matches("training_step(batch, batch_idx)", out, 1, true)
    assert.matches(":mem [DEVICE]\n  the tensors that are alive", out, 1, true)
    assert.matches(":quit", out, 1, true)
  end)

  it("has help for every name of the library", function()
    local lines = { "h = require 'ltrain.apps.prompt.help'; s = {env = _G, host = {upvalue = "
      .. "debug.getupvalue}, commands = {}}",
      "for _, room in ipairs {'nn', 'optim', 'data', 'metrics', 'callbacks', 'loggers'} do "
      .. "for _, name in pairs(lt[room]) do local text, why = h.on(s, room .. '.' .. name) "
      .. "if not text then print(why) end end end",
      "for _, row in ipairs(lt.ops()) do if not row.hidden and not h.on(s, row.name) then "
      .. "print(row.name) end end" }
    local out, err = answers(lines)
    assert.equal("", err)
    assert.equal("", out)
  end)

  it("has help for the functions of lt, what tensors and a Trainer have, and options", function()
    local out, err = answers {
      "h = require 'ltrain.apps.prompt.help'; n = require 'ltrain.apps.prompt.members'",
      "s = {env = _G, host = {upvalue = debug.getupvalue}, commands = {}}",
      "for name in pairs(n.fields(lt)) do if name:find '^%a' and not h.on(s, 'lt.' .. name) then "
      .. "print('lt.' .. name) end end",
      "x = lt.ones(1)  for name in pairs(n.fields(x)) do if not h.on(s, 'x:' .. name) then "
      .. "print('x:' .. name) end end",
      "t = lt.Trainer{logger = false}  for name in pairs(n.fields(t)) do if name:find '^%a' and "
      .. "not h.on(s, 't.' .. name) then print('t.' .. name) end end",
      ":help zeros", ":help DataLoader", ":help Trainer.max_epochs" }
    assert.equal("", err)
    assert.matches("^lt.zeros%(shape%).-filled with 0.-\nlt.data.DataLoader%(dataset, options%)\n.-"
      .. "max_epochs: an option of Trainer\n  integer", out)
  end)

  it("has the options of a call of a layer, not the names that it refuses", function()
    local out <const> = answers { ":help nn.MultiheadAttention" }
    assert.matches("options of a call:\n  mask\n.-\n  key_mask\n.-\n  causal\n.-\n  cache\n", out)
    assert.is_nil(out:find("\n  key_padding_mask", 1, true)) -- a text may mention it
  end)

  it("names the nearest where nothing is known", function()
    local _, err = answers { ":help nn.Linaer", ":hepl" }
    assert.equal(":help: nothing is known of 'nn.Linaer'; did you mean 'Linear'?\n"
      .. ":hepl: no such command; did you mean 'help'?; :help lists them\n", err)
  end)

  it("times an expression", function()
    local out = answers { ":time 1 + 1", ":time error 'no'" }
    assert.matches("^2\n[%d.]+ %a+\n$", out)
  end)

  it("lists tensors by size, with their names and lines", function()
    child.with_files({ ["big.lua"] = "local lt = require 'ltrain'\n\nbig = lt.zeros(512, 1024)" },
      function(folder)
        local out = answers({ ":load big.lua", "small = lt.ones(300, 1024)", ":mem" },
          { dir = folder })
        assert.matches("    2.0 MiB  [512, 1024] f32  big  by full  at big.lua:3\n"
          .. "    1.2 MiB  [300, 1024] f32  small  by full  at stdin:1\ncpu: 3.2 MiB in 2", out,
          1, true)
      end)
  end)

  it("lists the tensors of one list in one row", function()
    local out = answers { "keep = {} for i = 1, 9 do keep[i] = lt.rand(10) end one = {lt.rand(7)}",
      ":mem" }
    assert.equal("      360 B  9 of [10] f32  keep[...]  by rand  at stdin:1\n"
      .. "       28 B  [7] f32  one[1]  by rand  at stdin:1\n", (out:gsub("cpu: .*", "")))
  end)

  it("loads a script, and reports what is wrong with it", function()
    child.with_files({ ["good.lua"] = "x = 5 return 7", ["bad.lua"] = "x = = 5" }, function(folder)
      local out, err = answers({ ":load good.lua", "x, _", ":load bad.lua", ":load none.lua" },
        { dir = folder })
      assert.equal("7\n5\t7\n", out)
      assert.equal(":load: bad.lua:1: unexpected symbol near '='\n"
        .. ":load: cannot open none.lua: No such file or directory\n", err)
    end)
  end)

  it("reloads code; weights, optimizer, other values and random numbers stay", function()
    child.with_files({ ["model.lua"] = MODEL,
      ["part.lua"] = "return {f = function() return 'old' end}" },
      function(folder)
        local out, err = answers({ ":load model.lua", "part = require 'part'",
          "hash, was, made = lt.hash(net:state_dict()), optimizer, getmetatable(net)",
          "lt.seed(1) first = lt.randn(1):item() lt.seed(1)",
          "for _, f in ipairs {'model', 'part'} do local h = io.open(f .. '.lua') local t = "
            .. "h:read 'a' h:close() h = io.open(f .. '.lua', 'w') h:write((t:gsub('old', 'new')"
            .. ":gsub('2 %* x', '3 * x'):gsub('0%.5', '0.25'))) h:close() end",
          ":reload", "net:word(), twice(1), part.f(), rate",
          "hash == lt.hash(net:state_dict()), was == optimizer, made == getmetatable(net)",
          "lt.randn(1):item() == first" }, { dir = folder })
        assert.equal("reloaded 2 files\nnew\t3\tnew\t0.5\ntrue\ttrue\ttrue\ntrue\n", out)
        assert.equal("", err)
      end)
  end)

  it("runs a file as far as its first loop; changes nothing where it fails before", function()
    child.with_files({ ["model.lua"] = MODEL }, function(folder)
      local out, err = answers({ ":load model.lua",
        "h = io.open('model.lua') t = h:read 'a' h:close() h = io.open('model.lua', 'w') "
          .. "h:write((t:gsub('old', 'new')), 'error \"late\"') h:close()",
        ":reload", "net:word(), twice(1)" }, { dir = folder })
      assert.equal("reloaded 1 file\nnew\t2\n", out)
      assert.equal("", err)
      out, err = answers({ ":load model.lua",
        "h = io.open('model.lua') t = h:read 'a' h:close() h = io.open('model.lua', 'w') "
          .. "h:write((t:gsub('new', 'newer'):gsub('rate =', 'x.y.z =')), '') h:close()",
        ":reload", "net:word(), twice(1)" }, { dir = folder })
      assert.equal("new\t2\n", out)
      assert.matches("model.lua:11: attempt to index a nil value (global 'x')", err, 1, true)
    end)
  end)

  it("shows all frames of the last error", function()
    local out = answers { ":bt", "lt.nn.Linear(2, 'x')", ":bt" }
    assert.matches("^no error yet\nstdin:1: nn.Linear: out_features must be an integer", out)
    assert.matches("ltrain.nn.Linear:%d+:", out)
  end)

  it("loads a script that takes flags as often as it is asked to", function()
    child.with_files({ ["s.lua"] = "local o = require 'ltrain'.args{lr = 1}\nprint(o.lr)\n" },
      function(folder)
        local out, err = answers({ ":load s.lua", ":load s.lua" }, { dir = folder })
        assert.equal("1\n1\n", out)
        assert.equal("", err)
      end)
  end)

  it("leaves by :quit", function()
    assert.equal("1\n", (answers { "1", ":quit", "2" }))
  end)
end)

describe("ltrain run -i", function()
  local SCRIPT <const> = [[
    local lt = require "ltrain"
    local net = lt.nn.Linear(2, 1)
    function net:training_step(batch) return lt.mse_loss(self(batch[1]), batch[2]) end
    function net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.1}) end
    local data = lt.data.DataLoader(lt.data.TensorDataset(lt.ones(4, 2), lt.ones(4, 1)))
    return {model = net, data = data, trainer = {max_epochs = 1, logger = false,
      enable_checkpointing = false, enable_progress_bar = false, enable_model_summary = false}}
  ]]

  it("opens the prompt after the fit, which knows model, data and trainer", function()
    child.with_files({ ["model.lua"] = SCRIPT }, function(folder)
      local status, out = child.run({ "run", "-i", "model.lua" }, { dir = folder,
        stdin = "trainer.global_step, #data\nmodel\n:quit\n" })
      assert.equal(0, status)
      assert.matches("4\t4\n", out, 1, true)
      assert.matches("3 parameters, all trainable", out, 1, true)
    end)
  end)

  it("opens it after an error too, which :bt shows", function()
    child.with_files({ ["bad.lua"] = "y = 3\nerror 'here'" }, function(folder)
      local _, out, err = child.run({ "run", "-i", "bad.lua" }, { dir = folder,
        stdin = "y\n:bt\n" })
      assert.equal("ltrain: bad.lua:2: here\n", err)
      assert.matches("> 3\n> bad.lua:2: here\nstack traceback:\n", out, 1, true)
      _, out = child.run({ "-i", "bad.lua" }, { dir = folder, stdin = "y\n:bt\n" })
      assert.matches("> 3\n> bad.lua:2: here\nstack traceback:\n", out, 1, true)
    end)
  end)
end)
