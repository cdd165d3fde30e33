-- spec/apps/check/check_spec.lua: `ltrain check` as a command: files, arguments, signals, other
-- loops.
-- tags: unsanitized
local child = require "spec.cli.child"

describe("ltrain check", function()
  local folder

  before_each(function() folder = child.folder() end)
  after_each(function() child.remove((folder:gsub("/inner$", ""))) end)

  local function check(name, script, ...)
    child.write(("%s/%s"):format(folder, name), script)
    return child.run({ "check", name, ... }, { dir = folder })
  end

  it("changes no file: what a script writes it can read, and nothing is left", function()
    child.write(folder .. "/old.txt", "old")
    local status, out, err = check("files.lua", [[
      local lt = require "ltrain"
      local file = assert(io.open("new.txt", "w"))
      file:write("one\n")
      file:close()
      for line in io.lines("new.txt") do assert(line == "one") end
      local old = assert(io.open("old.txt", "a"))
      old:write(" and new")
      old:close()
      assert(io.open("old.txt"):read "a" == "old and new")
      assert(os.rename("new.txt", "other.txt"))
      assert(io.open("new.txt") == nil and io.open("other.txt"))
      assert(os.remove("old.txt"))
      assert(io.open("old.txt") == nil)
      assert(not io.open("nowhere/x.txt", "w"))
      assert(lt.save("weights.safetensors", {w = lt.ones(3)}))
      assert(lt.load("weights.safetensors").w:sum():item() == 3)
      assert(lt.image.write("x.png", lt.rand(3, 4, 4)))
      assert(lt.image.read("x.png"))
      os.execute("mkdir -p deep/er && touch deep/er/x")
      lt.csv.table{{"a", lt.ones(2)}}:write("deep/er/t.csv")
      assert(#assert(lt.csv.read("deep/er/t.csv")) == 2)
    ]])
    assert.equal(0, status, out .. err)
    local left = assert(io.popen("cd '" .. folder .. "' && find . | sort && cat old.txt")):read "a"
    assert.equal(".\n./files.lua\n./old.txt\nold", left)
    assert.matches("files.lua:19: a check starts no programs", out, 1, true)
  end)

  it("says on what it could not look, and that is not a finding", function()
    local status, out = check("exit.lua", "os.exit(3)\n")
    assert.equal(0, status)
    assert.matches("not checked: exit.lua:1: os.exit(3) ended the script", out, 1, true)
    status, out = check("nothing.lua", "local x = 1\nreturn x and nil\n")
    assert.equal(0, status)
    assert.matches("not checked: the script trains nothing", out, 1, true)
    status, out = check("reads.lua", "local x = io.popen('ls'):read 'a'\nprint(x)\n")
    assert.equal(0, status)
    assert.matches("not checked: reads.lua:1: a check starts no programs: 'ls'", out, 1, true)
  end)

  it("hands its arguments and flags to the script", function()
    local script = [[
      local lt = require "ltrain"
      local args = lt.args{lr = 0.1}
      assert(arg[1] == "x", "no argument")
      error(("lr is %g"):format(args.lr))
    ]]
    local _, out = check("args.lua", script, "--lr", "0.5", "--", "x")
    assert.matches("args.lua:4: error: lr is 0.5 [load]", out, 1, true)
    local status, _, err = check("args.lua", script, "--lrr", "0.5", "--", "x")
    assert.equal(2, status)
    assert.matches("unknown option --lrr; did you mean --lr?", err, 1, true)
  end)

  it("is refused without a script, and of what is not a file", function()
    local status, _, err = child.run({ "check", "absent.lua" }, { dir = folder })
    assert.equal(2, status)
    assert.matches("cannot open absent.lua", err, 1, true)
    status = child.run({ "check", "-" }, { dir = folder })
    assert.equal(2, status)
  end)

  -- Checks loop.lua and presses Ctrl-C when it has printed; status and report.
  local function interrupted(script)
    child.write(folder .. "/loop.lua", script)
    return child.shell([[
      env --default-signal=INT TMPDIR=. ltrain check loop.lua 2>../said &
      while ! grep -q begun ../said; do sleep 0.05; done
      kill -INT $!
      wait $! || { status=$?; rm ../said; exit $status; }
    ]], { dir = folder })
  end

  it("ends an endless script by Ctrl-C, with what it knows, and leaves nothing", function()
    folder = folder .. "/inner"
    assert(os.execute("mkdir '" .. folder .. "'"))
    local status, out = interrupted(
      "io.open('x', 'w'):write 'x'\nprint 'begun'\nwhile true do end\n")
    assert.equal(130, status, out)
    assert.matches("not checked: all that follows: loop.lua:3: interrupted", out, 1, true)
    local left = assert(io.popen("ls -A '" .. folder .. "'")):read "a"
    assert.equal("loop.lua\n", left)
  end)

  it("ends an endless training_step by Ctrl-C too", function()
    folder = folder .. "/inner"
    assert(os.execute("mkdir '" .. folder .. "'"))
    local status, out = interrupted [[
      local lt = require "ltrain"
      local net = lt.nn.Linear(2, 1)
      function net:training_step()
        print "begun"
        while true do end
      end
      function net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 1}) end
      return {model = net, data = {lt.ones(4, 2)}}
    ]]
    assert.equal(130, status, out)
    assert.matches("not checked: all that follows: loop.lua:5: interrupted", out, 1, true)
  end)

  it("goes through manual optimization, several optimizers, and data without a length", function()
    local status, out, err = check("gan.lua", [[
      local lt = require "ltrain"
      local nn = lt.nn
      local Gan = lt.Module:extend("Gan")
      function Gan:init()
        self.automatic_optimization = false
        self.make = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
        self.judge = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 1))
      end
      function Gan:training_step(batch)
        local makes, judges = table.unpack(self:optimizers())
        local n = #batch[1]
        local fake = self.make(lt.randn(n, 4))
        local ones, zeros = lt.ones(n, 1), lt.zeros(n, 1)
        local bce = lt.binary_cross_entropy_with_logits
        judges:zero_grad()
        self:manual_backward(bce(self.judge(batch[1]), ones)
          + bce(self.judge(fake:detach()), zeros))
        judges:step()
        makes:zero_grad()
        local loss = bce(self.judge(fake), ones)
        self:manual_backward(loss)
        makes:step()
        self:log("loss", loss)
      end
      function Gan:configure_optimizers()
        return {lt.optim.Adam(self.make:parameters(), {lr = 1e-3}),
          lt.optim.Adam(self.judge:parameters(), {lr = 1e-3})}
      end
      local function batches()
        return function() return {lt.randn(8, 2)} end
      end
      return {model = Gan(), data = {train = batches}, trainer = {max_steps = 100}}
    ]])
    assert.equal(0, status, out .. err)
    assert.matches("whether a batch can be learnt: manual optimization", out, 1, true)
    assert.matches("make.0%s+Linear%s+%[2, 4%] %-> %[2, 16%]", out)
  end)
end)
