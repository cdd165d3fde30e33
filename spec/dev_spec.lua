-- spec/dev_spec.lua: ./dev installs what is missing through sudo, and says what it could not.
--
-- In a folder with a copy of the script and programs that stand for id, sudo, apt-get, dpkg-query
-- and the linters.
-- tags: slow
local child = require "spec.cli.child"

local ROOT <const> = os.getenv("LT_ROOT") or "."

local FAKES <const> = {
  id = "echo 1000",
  -- As sudo's env_reset: what is not on its line does not arrive.
  sudo = 'echo "sudo $*" >>LOG\n[ -e DIR/refuse ] && echo "sudo: no" >&2 && exit 1\n'
    .. 'exec env -i PATH="DIR/bin:/usr/bin:/bin" "$@"',
  ["apt-get"] = 'echo "apt-get $* ($DEBIAN_FRONTEND)" >>LOG\n'
    .. 'case "$*" in *ccache*) exit 100 ;; update) [ ! -e DIR/offline ] || exit 100 ;; esac',
  ["dpkg-query"] = 'shift 2\nfor p in "$@"; do\n  grep -qx "$p" DIR/lacking || '
    .. 'echo "installed $p"\ndone',
  luacheck = "", ["lua5.4"] = "",
}

-- What ./dev has set for this run, and is not for that of the copy.
local CLEAN <const> = "env -u LT_BUILD -u LT_SANITIZE -u LT_EXHAUSTIVE"

local INSTALL <const> = "env DEBIAN_FRONTEND=noninteractive apt-get install -y "
  .. "--no-install-recommends "

local function lines(path)
  local list = {}
  local file = io.open(path)
  if file == nil then return list end
  for line in file:lines() do list[#list + 1] = line end
  file:close()
  return list
end

describe("./dev as a user who is not root", function()
  local dir

  before_each(function()
    dir = child.folder()
    assert(os.execute(("mkdir %s/bin && cp '%s/dev' %s"):format(dir, ROOT, dir)))
    for name, text in pairs(FAKES) do
      child.write(dir .. "/bin/" .. name,
        "#!/bin/sh\n" .. text:gsub("DIR", dir):gsub("LOG", dir .. "/log") .. "\n")
    end
    child.write(dir .. "/log", "")
    assert(os.execute(("chmod a+x %s/bin/*"):format(dir)))
  end)

  after_each(function() child.remove(dir) end)

  -- `./dev lint` where `lacking` is not installed: exit status, what it said, what was called.
  local function lint(lacking)
    child.write(dir .. "/lacking", lacking:gsub(" ", "\n") .. "\n")
    local _, _, status = os.execute(
      ("PATH=%s/bin:/usr/bin:/bin timeout 20 %s/dev lint >%s/said 2>&1"):format(dir, dir, dir))
    return status, table.concat(lines(dir .. "/said"), "\n"), lines(dir .. "/log")
  end

  it("builds once at a time in a folder", function()
    child.write(dir .. "/lacking", "\n")
    child.write(dir .. "/bin/cmake", ("#!/bin/sh\ntouch '%s/build/build.ninja'\n"):format(dir))
    child.write(dir .. "/bin/ninja", ("#!/bin/sh\nmkdir '%s/busy' || exit 9\nsleep 0.2\n"
      .. "rmdir '%s/busy'\n"):format(dir, dir))
    assert(os.execute(("chmod a+x %s/bin/*"):format(dir)))
    local run = ("%s PATH=%s/bin:$PATH timeout 20 %s/dev build ltrain"):format(CLEAN, dir, dir)
    assert.is_true(os.execute(("{ %s & a=$!; %s; b=$?; wait $a && exit $b; } >%s/said 2>&1")
      :format(run, run, dir)), table.concat(lines(dir .. "/said"), "\n"))
  end)

  it("installs for --exhaustive what the named tests need", function()
    for name, text in pairs { cmake = ("touch '%s/build/build.ninja'"):format(dir), ninja = "" } do
      child.write(("%s/bin/%s"):format(dir, name), "#!/bin/sh\n" .. text .. "\n")
    end
    child.write(dir .. "/lacking", "chromium-headless-shell\nqemu-user\n")
    assert(os.execute(("chmod a+x %s/bin/* && mkdir %s/spec"):format(dir, dir)))
    local function installed(text)
      child.write(dir .. "/log", "")
      child.write(dir .. "/spec/a_spec.lua", text)
      assert.is_true(os.execute(("%s PATH=%s/bin:$PATH timeout 20 "
        .. "%s/dev test --exhaustive spec/a_spec.lua >%s/said 2>&1"):format(CLEAN, dir, dir, dir)),
        table.concat(lines(dir .. "/said"), "\n"))
      local log = table.concat(lines(dir .. "/log"), "\n")
      return log:find("chromium", 1, true) ~= nil, log:find("qemu", 1, true) ~= nil
    end
    assert.same({ false, false }, { installed "-- needs neither" })
    assert.same({ true, false }, { installed 'require "spec.apps.dashboard.browser"' })
    assert.same({ false, true }, { installed "-- runs qemu-aarch64" })
  end)

  it("shows what the compiler warns of, and nothing else of a build that succeeds", function()
    child.write(dir .. "/lacking", "\n")
    child.write(dir .. "/bin/cmake", ("#!/bin/sh\ntouch '%s/build/build.ninja'\n"):format(dir))
    child.write(dir .. "/bin/ninja", "#!/bin/sh\necho '[1/2] Building a.o'\n"
      .. "echo 'a.c:3:1: warning: unused'\necho '  3 | x;'\necho '[2/2] Building b.o'\n")
    assert(os.execute(("chmod a+x %s/bin/*"):format(dir)))
    local _, out = child.shell(("%s PATH=%s/bin:$PATH timeout 20 "
      .. "%s/dev build ltrain 2>&1"):format(CLEAN, dir, dir))
    assert.matches("a.c:3:1: warning: unused\n  3 | x;\n", out, 1, true)
    assert.is_nil(out:find("Building", 1, true))
  end)

  it("asks for nothing where all is there", function()
    local status, said, log = lint("")
    assert.same({0, "", {}}, {status, said, log})
  end)

  it("installs through sudo", function()
    local status, said, log = lint("lua-check zlib1g-dev")
    assert.equal(0, status)
    assert.equal("dev: installing Debian packages: zlib1g-dev lua-check", said)
    assert.same({
      "sudo env true", "sudo env DEBIAN_FRONTEND=noninteractive apt-get update",
      "apt-get update (noninteractive)",
      "sudo " .. INSTALL .. "zlib1g-dev lua-check",
      "apt-get install -y --no-install-recommends zlib1g-dev lua-check (noninteractive)",
    }, log)
  end)

  it("continues with the lists that are there, and without what is optional", function()
    child.write(dir .. "/offline", "")
    local status, said = lint("lua-check ccache")
    assert.equal(0, status)
    assert.truthy(said:find("apt-get update failed, trying with the lists that are here", 1, true))
    assert.truthy(said:find("dev: continuing without: ccache", 1, true))
  end)

  it("says what to do where sudo refuses", function()
    child.write(dir .. "/refuse", "")
    local status, said, log = lint("lua-check")
    assert.equal(2, status)
    assert.truthy(said:find("sudo: no", 1, true))
    assert.truthy(said:find("dev: not installed: lua-check (become root: "
      .. "apt-get install lua-check)", 1, true), said)
    assert.equal(1, #log)
  end)

  it("says what to do without sudo", function()
    assert(os.remove(dir .. "/bin/sudo"))
    if os.execute("PATH=/usr/bin:/bin command -v sudo >/dev/null") then
      print("# dev_spec: sudo is installed here: its absence is not tried")
      return
    end
    local status, said, log = lint("lua-check")
    assert.same({2, {}}, {status, log})
    assert.truthy(said:find("dev: not installed: lua-check (become root: "
      .. "apt-get install lua-check)", 1, true), said)
  end)
end)

describe("./dev run", function()
  it("builds what the program opens at run time, too", function()
    local build = os.getenv("LT_BUILD")
    if not build then pending("LT_BUILD names no build folder") end
    local list <close> = assert(io.popen(("ninja -C '%s' -t inputs ltrain"):format(build)))
    local inputs = list:read("a")
    assert.truthy(inputs:find("liblua", 1, true), inputs)
    local mpi = io.open(build .. "/backends/ltrain_mpi.so")
    if not mpi then
      print("# dev_spec: this build has no MPI")
      return
    end
    mpi:close()
    assert.truthy(inputs:find("backends/ltrain_mpi.so", 1, true), inputs)
  end)
end)

describe("./dev test", function()
  local folder

  before_each(function() folder = child.folder() end)
  after_each(function() child.remove(folder) end)

  -- The runner that ./dev test starts, on a path: whether all passed, and what it printed.
  local function run(path)
    local build = os.getenv("LT_BUILD")
    if not build then pending("LT_BUILD names no build folder") end
    local pipe <close> = assert(io.popen(("cd '%s'; env -u LT_TEST_TOTALS lua5.4 "
      .. "tools/run_specs.lua '%s' %s 2>&1; echo $?"):format(ROOT, build, path)))
    local out, status = pipe:read("a"):match("^(.-)(%d+)\n$")
    return status == "0", out
  end

  it("takes a folder for all specs that are below it", function()
    assert(os.execute(("mkdir -p %s/a/b"):format(folder)))
    for i, name in ipairs { "one_spec", "a/two_spec", "a/b/three_spec", "a/no" } do
      child.write(("%s/%s.lua"):format(folder, name), ([[
        it("is %d", function() assert.equal("%s", "%s") end)]]):format(i, name,
        name == "a/no" and "" or name))
    end
    local ok, out = run(folder)
    assert.truthy(ok, out)
    assert.matches("\n3 passed, 0 failed\n$", out)
    assert.matches("\n2 passed, 0 failed\n$", (select(2, run(folder .. "/a/"))))
  end)

  it("fails where cases of a file did not run", function()
    child.write(folder .. "/some_spec.lua", [[
      it("runs", function() end)
      describe("a describe", function()
        setup(function() error "broken" end)
        it("runs not", function() end)
        pending("later")
      end)]])
    local ok, out = run(folder)
    assert.is_false(ok)
    assert.matches("not ok: of 3 cases 1 ran\n", out, 1, true)
  end)

  it("refuses what is not there", function()
    assert.same({ false, "test: no such file or folder: spec/nowhere\n" }, { run "spec/nowhere" })
    assert.same({ false, ("test: no spec and no C test below %s\n"):format(folder) },
      { run(folder) })
  end)
end)
