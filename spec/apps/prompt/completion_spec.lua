-- spec/apps/prompt/completion_spec.lua: what the prompt on a terminal completes, and hints at.
local child = require "spec.cli.child"
local terminal = require "spec.cli.terminal"

local function run(plan, options)
  local screens, status = terminal.run(plan, options)
  if not screens then pending "no pseudo-terminals here" end
  return screens, status
end

-- The last lines of a screen.
local function tail(text, n)
  local lines = {}
  for line in (text .. "\n"):gmatch "(.-)\n" do lines[#lines + 1] = line end
  return table.concat(lines, "\n", math.max(1, #lines - n + 1))
end

describe("the prompt on a terminal", function()
  it("completes globals, fields and methods", function()
    local screens = run [[
ready
send lt.nn.Lin\t
see lt.nn.Linear
send \x03
see Linear^C
ready
send x = lt.zeros(2)\r
see > x = lt.zeros(2)
ready
send "made" .. 1\r
see made1
ready
send x:requires_g\t
see x:requires_grad_
send \x03
see grad_^C
ready
send colle\t
see > collectgarbage
send \x03
see garbage^C
ready
send "fun".."ctions" while fal\t
see while false
screen all]]
    assert.matches("> x:requires_grad_^C\n> collectgarbage^C\n", screens.all, 1, true)
  end)

  it("completes names of options in tables of constructors, and lists several", function()
    local screens = run [[
ready
send lt.Trainer{max_\t
see max_steps
see max_time
send ep\t
see max_epochs =   integer
screen list
send \x03
see = ^C
ready
send lt.data.DataLoader(x, {ba\t
see {batch_
send size = 2, sh\t
see shuffle =   boolean]]
    assert.matches("> lt.Trainer{max_\nmax_epochs  max_steps   max_time\n", screens.list, 1, true)
    assert.matches("\n> lt.Trainer{max_epochs = ", screens.list, 1, true)
    assert.matches("integer ≥ -1: epochs to train", screens.list, 1, true)
  end)

  it("completes files in strings and commands", function()
    child.with_files({}, function(folder)
      child.write(folder .. "/a_long_name.csv", "")
      local screens = run([[
ready
send lt.csv.read("a_lo\t
see csv"
screen file
send \x03
see ^C
ready
send :rel\t
see > :reload
screen command]], { dir = folder })
      assert.equal('> lt.csv.read("a_long_name.csv"', tail(screens.file, 1))
      assert.equal("> :reload", tail(screens.command, 1))
    end)
  end)

  it("completes what calls give, hooks, modules, words of options, the last value", function()
    child.with_files({}, function(folder)
      child.write(folder .. "/my_layers.lua", "")
      run([[
ready
send lt.zeros(2):to("cpu"):requires_g\t
see requires_grad_
send \x03
see ^C
ready
send lt.nn.Linear(2, 3):named_par\t
see named_parameters
send \x03
see parameters^C
ready
send Net = lt.Module:extend "Net"\r
ready
send function Net:training_step_\t
see Net:training_step_end
send \x03
see end^C
ready
send require "my_la\t
see "my_layers"
send \x03
see "^C
ready
send lt.Trainer{precision = "bf16-t\t
see "bf16-true"
send \x03
see true"^C
ready
send lt.zeros(2, {dev\t
see {device =
send \x03
see = ^C
ready
send {first_one = 1}\r
see {first_one
ready
send _.fir\t
see _.first_one]], { dir = folder })
    end)
  end)

  it("hints at the only word that fits, taken with the right arrow, and at arguments", function()
    local screens = run [[
ready
send lt.nn.Lin
painted ccbb.nn.Linddd
send \e[C(
see in_features, out_features, options)
screen call]]
    assert.equal("> lt.nn.Linear(  in_features, out_features, options)", tail(screens.call, 1))
  end)

  it("ends a note that has no room between words", function()
    local screens = run [[
ready
send lt.Trainer{accelerator =
see string or object
screen note]]
    local note = tail(screens.note, 1):match "=  (.*)$"
    local whole = select(2, child.run({ "-i" }, { stdin = ":help Trainer.accelerator\n" }))
    local words = {}
    for word in whole:gmatch "%S+" do words[word] = true end
    for word in note:gmatch "%S+" do assert.is_true(words[word], note) end
    assert.is_true(#note > 20, note)
  end)

  it("runs none of the script's code for a completion", function()
    run [[
ready
send t = setmetatable({}, {__index = function() os.exit(9) end})\r
see > t =
send "m".."ade"\r
see made
ready
send t.abc\t
see > t.abc
send \x03
see abc^C
ready
send "still ".."there"\r
see still there]]
  end)
end)
