-- spec/cli/prompt_spec.lua: the prompt, fed through a pipe and through a terminal.
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

  it("prints tensors as print does, tables one level deep", function()
    assert.equal("tensor([0., 0.])\n", (answers { "lt.zeros(2)" }))
    assert.equal('{1, "two", {...}, a = true, t = tensor [2, 3] f32}\n',
      (answers { "{1, 'two', {3}, a = true, t = lt.zeros(2, 3)}" }))
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
      "io.popen('kill -INT ' .. lt.runtime.pid()):close() while true do end", "8" }
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

  it("edits lines and keeps a history on a terminal; Ctrl-C drops a line, Ctrl-D leaves", function()
    local folder = child.folder()
    -- Each key is pressed when the prompts, or what came before it, are to be seen.
    child.write(folder .. "/keys", [[
      sees() {
        for _ in $(seq 400); do
          [ "$(grep -ao "$1" out | wc -l)" -lt "$2" ] || return 0
          sleep 0.05
        done
      }
      cd "$1"
      sees '> ' 1; printf '1+1\n'; sees '> ' 2; printf 'x = 5'; sees 'x = 5' 1; printf '\003'
      sees '> ' 3; printf 'tostring(x)\n'; sees '> ' 4; printf '40 + 3\0072\n'
      sees '> ' 5; printf '\004'
    ]])
    child.write(folder .. "/out", "")
    os.execute(("sh %s/keys %s | XDG_STATE_HOME=%s env --default-signal=INT timeout 30 script -qec "
      .. "%s /dev/null >>%s/out 2>&1"):format(folder, folder, folder,
      os.getenv("LTRAIN") or arg[-1], folder))
    local file <close> = assert(io.open(folder .. "/out"))
    local out = file:read("a"):gsub("\r", "")
    if out:find("failed to create pseudo-terminal", 1, true) then
      child.remove(folder)
      pending("no pseudo-terminals here")
      return
    end
    assert.matches("> 1+1\n2\n", out, 1, true)
    assert.matches("^C\n", out, 1, true)
    assert.matches("> tostring(x)\nnil\n", out, 1, true)
    local history <close> = assert(io.open(folder .. "/ltrain/history"))
    assert.matches("\n1+1\ntostring(x)\n", history:read("a"), 1, true)
    child.remove(folder)
  end)
end)
