-- spec/apps/prompt/terminal_spec.lua: the prompt on a terminal: keys are pressed, screens are read.
-- tags: slow
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
  it("evaluates lines; Ctrl-C drops a line, Ctrl-D leaves", function()
    local screens, status = run [[
ready
send 20 + 3\r
see 23
ready
send x = 5
see x = 5
send \x03
see ^C
ready
send tostring(x)\r
see nil
ready
screen last
send \x04
end]]
    assert.equal(0, status)
    assert.equal("> 20 + 3\n23\n> x = 5^C\n> tostring(x)\nnil\n>", tail(screens.last, 6))
  end)

  it("is woken by a signal that the kernel gave to another thread", function()
    local calls <const> = { x86_64 = 234, aarch64 = 131 } -- tgkill
    local machine = io.popen("uname -m"):read()
    if not calls[machine] or not os.execute "command -v perl >/dev/null" then
      pending "no perl here that knows tgkill"
    end
    child.with_files({}, function(folder)
      child.write(folder .. "/pool.lua", ([[
        require "ltrain".rand(1000, 1000):exp() -- its threads stay, and take signals
        local pid = math.tointeger(io.open("/proc/self/stat"):read("n"))
        os.execute(("(until [ -e typed ]; do sleep 0.05; done; sleep 0.5; "
          .. "T=$(ls /proc/%%d/task | tail -n 1); "
          .. "[ $T != %%d ] && perl -e \"syscall(%d, %%d, $T, 2)\") >/dev/null 2>&1 &")
          :format(pid, pid, pid))
        function typed() io.open("typed", "w"):close() end]]):format(calls[machine]))
      run([[
ready
send typed()\r
ready
send x = 5
see ^C
ready
send \x04
end]], { dir = folder, args = "-i pool.lua", env = { OMP_NUM_THREADS = "2" } })
    end)
  end)

  it("colours keywords, strings, numbers and known globals", function()
    run [[
ready
painted cc
send return print, nothing, "text", 12
painted ccmmmmmm bbbbb, nothing, gggggg, cc]]
  end)

  it("colours nothing where NO_COLOR is set", function()
    local screens = run([[
ready
send return print, 12
see print, 12
send  --
see 12 --
colours all]], { env = { NO_COLOR = "1" } })
    assert.equal("> return print, 12 --", tail(screens.all, 1))
  end)

  it("keeps an entry of several lines whole: edited, recalled, remembered", function()
    child.with_files({}, function(folder)
      local screens = run([[
ready
send for i = 1, 2 do\r
see do
send print(i * 111)\r
see 111)
send end\r
see 222
ready
send \x0c
gone 222
send \e[A
see 111)
send \e[A\x01\e[C\e[C--seen\x05--end
see (i * 111)--end
screen recalled
send \x03
see ^C]], { folder = folder })
      assert.equal("> for i = 1, 2 do\n|   --seenprint(i * 111)--end\n| end",
        tail(screens.recalled, 3))
      screens = run([[
ready
send \e[A
see 111)
send --
see end--
screen again]], { folder = folder })
      assert.equal("> for i = 1, 2 do\n|   print(i * 111)\n| end--", tail(screens.again, 3))
    end)
  end)

  it("indents lines by their blocks, and ends blocks in their column", function()
    local screens = run [[
ready
send f = function(x)\r
see |
send return {\r
see return {
send x,\r
see x,
send }\r
see }
send end
see end
send \r
ready
screen block]]
    assert.equal("> f = function(x)\n|   return {\n|     x,\n|   }\n| end\n>",
      tail(screens.block, 6))
  end)

  it("begins a line within an entry by Alt-Enter", function()
    local screens = run [[
ready
send 20, \e\r30
see 30
screen made
send \r
see 20      30]]
    assert.equal("> 20,\n| 30", tail(screens.made, 2))
  end)

  it("edits an entry that is taller than the window where the cursor is", function()
    local lines = {}
    for i = 1, 60 do lines[i] = ("x%d = %d"):format(i, i) end
    local screens = run([[
ready
send \e[200~]] .. table.concat(lines, "\\r") .. [[\e[201~
see x60 = 60
send ]] .. ("\\e[A"):rep(30) .. [[+1
see x30 = 30+1
screen above
send \r
see x60 = 60
ready
send x29, x30, x31\r
see 31      31
screen done]], { rows = 10 })
    assert.equal("| x30 = 30+1\n| x31 = 31", screens.above:match "^[^\n]*\n[^\n]*")
    assert.equal("> x29, x30, x31\n29      31      31",
      screens.done:match "(> x29.-31      31)")
  end)

  it("takes the terminal again after Ctrl-Z and fg", function()
    local screens = run([[
see $
send ltrain\r
ready
send for i = 1, 2 do\r
see |
send print(i * 111)
see 111)
send \e[A\x1a
see Stopped
send fg\r
twice print(i * 111)
send \e[B\r
send end
see end
send \r
see 222
ready
send \x04
see $
screen all]], { program = "bash --norc -i", env = { PS1 = "$ " }, rows = 14 })
    assert.matches("> for i = 1, 2 do\n|   print(i * 111)\n| end\n111\n222", screens.all, 1, true)
  end)

  it("keeps what is new under the entries that are recalled", function()
    local screens = run [[
ready
send 1 + 1\r
see 2
ready
send new\e[B\e[B entry
see new entry
send \e[A\e[A\e[A --
see 1 --
send \e[B\e[B\e[B\e[B!
see new entry!
screen last]]
    assert.equal("> new entry!", tail(screens.last, 1))
  end)

  it("takes what is pasted as one entry", function()
    local screens = run [[
ready
send \e[200~for i = 1, 2 do\r\tprint(i * 111)\rend\r\e[201~
see end
screen pasted
send \r
see 222
ready
screen done]]
    assert.equal("> for i = 1, 2 do\n|     print(i * 111)\n| end", tail(screens.pasted, 3))
    assert.equal("111\n222\n>", tail(screens.done, 3))
  end)

  it("returns from an endless loop by Ctrl-C, with its state alive", function()
    local screens, status = run [[
ready
send x = 41\r
see x = 41
ready
send "no".."w"\r
see now
ready
send print("go" .. "ing") while true do end\r
see going
send \x03
see interrupted
ready
send x + 1\r
see 42
ready
screen last
send :quit\r
end]]
    assert.equal(0, status)
    assert.matches("interrupted\n> x + 1\n42\n>", screens.last, 1, true)
  end)

  it("returns from a loop that catches errors by a second Ctrl-C", function()
    local screens, status = run [[
ready
send x, n = 41, 0\r
ready
send function f() n = n + 1 print(n .. "th") while true do end end\r
ready
send while true do pcall(f) end\r
see 1th
send \x03
see 2th
send \x03
see interrupted
ready
send x + 1\r
see 42
ready
send print(2 .. "nd") while true do end\r
see 2nd
send \x03
ready
send "still " .. "there"\r
see still there
ready
screen last
send \x04
end]]
    assert.equal(0, status)
    assert.matches("stdin:1: interrupted\n> x + 1\n42\n> print", screens.last, 1, true)
  end)

  it("returns from a fit by Ctrl-C, with the model as it was", function()
    child.with_files({}, function(folder)
      child.write(folder .. "/fit.lua", [[
        local lt = require "ltrain"
        net = lt.nn.Linear(2, 1)
        function net:training_step(batch, i)
          if i == 3 and not quiet then print("third" .. " batch") end
          return lt.mse_loss(self(batch[1]), batch[2])
        end
        function net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.1}) end
        local x = lt.ones(64, 2)
        data = lt.data.DataLoader(lt.data.TensorDataset(x, lt.ones(64, 1)))
        trainer = lt.Trainer{max_epochs = -1, logger = false, enable_checkpointing = false,
          enable_model_summary = false, enable_progress_bar = false}
      ]])
      local screens = run([[
ready
send :load fit.lua\r
see load
ready
send trainer:fit(net, data)\r
see third batch
send \x03
see interrupted
ready
send trainer.global_step > 3\r
see true
ready
send trainer.max_epochs, quiet = 1, true\r
send "loss " .. net:training_step({lt.ones(1, 2), lt.ones(1, 1)}, 0):item() // 1\r
see loss 0
ready
screen last
send \x04
end]], { dir = folder })
      assert.matches("interrupted", screens.last, 1, true)
      assert.matches("loss 0.0", screens.last, 1, true)
    end)
  end)

  it("reads UTF-8, and draws again in a window of another size", function()
    local screens = run([[
ready
send t = {"größe", "中文"} t[1], t[2]
see 中文
send \x7f\x7f\x7f\x7f
gone t[2]
size 20 10
send  --x
see 文"} t[1],  --x
see > t = {"größe", "中
screen narrow
size 60 20
send y
see > t = {"größe", "中文"} t[1],  --xy
screen wide]], { columns = 60, rows = 20 })
    assert.equal('> t = {"größe", "中\n  文"} t[1],  --x', tail(screens.narrow, 2))
    assert.equal('> t = {"größe", "中文"} t[1],  --xy', tail(screens.wide, 1))
  end)

  it("edits an entry that is longer than a row", function()
    local screens = run([[
ready
send local a = "0123456789012345678901234567890123456789"
see 6789"
send \x01
send --
see --local a = "012345678901234
see 5678901234567890123456789"
screen long]], { columns = 30, rows = 10 })
    assert.equal('> --local a = "012345678901234\n  5678901234567890123456789"',
      tail(screens.long, 2))
  end)

  it("reads plain lines where TERM is dumb", function()
    local screens, status = run([[
ready
send for i = 1, 2 do\r
see >>
send print(i * 111) end\r
see 222
ready
send "do".."ne"\r
see done
ready
colours last
send \x04
end]], { env = { TERM = "dumb" } })
    assert.equal(0, status)
    assert.equal("> for i = 1, 2 do\n>> print(i * 111) end\n111\n222\n> \"do\"..\"ne\"\ndone",
      (screens.last:match "(> for.*done)"))
  end)

  it("edits on a terminal that libedit does not know, with a history that is not a file", function()
    child.with_files({}, function(folder)
      child.shell("mkdir -p ltrain && mkfifo ltrain/history", { dir = folder })
      local screens, status = run([[
ready
send 1 + 1\r
see 2
ready
send \e[A --
see 1 --
screen last
send \x03
ready
send \x04
end]], { env = { TERM = "unheard-of" }, folder = folder })
      assert.equal(0, status)
      assert.equal("> 1 + 1\n2\n> 1 + 1 --", tail(screens.last, 3))
    end)
  end)

  it("has vi's keys where ~/.editrc asks for them", function()
    child.with_files({}, function(folder)
      child.write(folder .. "/.editrc", "bind -v\n")
      local screens = run([[
ready
send 1 + 12
see 1 + 12
send \ex\r
see 2
ready
send \e[A\e[H0 + \r
see > 0 + 1 + 1
ready
screen last]], { folder = folder, env = { HOME = folder } })
      assert.equal("> 1 + 1\n2\n> 0 + 1 + 1\n2\n>", tail(screens.last, 5))
    end)
  end)

  it("waits for another prompt that is writing the history", function()
    if not os.execute "command -v flock >/dev/null" then return pending "flock is missing" end
    child.with_files({}, function(folder)
      child.shell([[
        mkdir ltrain
        (flock 9; touch held; sleep 1; printf '_HiStOrY_V2_\nfirst\n' >&9) 9>>ltrain/history &
        while ! [ -e held ]; do sleep 0.05; done
      ]], { dir = folder })
      run([[
ready
send 1 + 1\r
see 2
ready
send \x04
end]], { folder = folder })
      local file <close> = assert(io.open(folder .. "/ltrain/history"))
      assert.equal("_HiStOrY_V2_\nfirst\n1\\040+\\0401\n", file:read "a")
    end)
  end)

  it("shares its history with the prompts of other terminals", function()
    child.with_files({}, function(folder)
      run([[
ready
send "from " .. "one"\r
see from one
ready
send \x04
end]], { folder = folder })
      run([[
ready
send "from " .. "two"\r
see from two
ready
send \x04
end]], { folder = folder })
      local file <close> = assert(io.open(folder .. "/ltrain/history"))
      assert.matches('"from\\040"\\040..\\040"one"\n"from\\040"\\040..\\040"two"\n', file:read "a",
        1, true)
    end)
  end)
end)
