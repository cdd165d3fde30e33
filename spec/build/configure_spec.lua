-- spec/build/configure_spec.lua: a configuration that lacks something names Debian's packages.
-- tags: half, slow, unsanitized
local child = require "spec.cli.child"
local shell = require "spec.build.shell"

local ROOT <const> = os.getenv("LT_ROOT")

describe("a configuration", function()
  -- What cmake says, on one line; its exit status. `check(folder)`: before the folder goes.
  local function configure(environment, options, folder, check)
    if not ROOT then pending("LT_ROOT names no source") end
    folder = folder or child.folder()
    local status, out = shell.run("%s cmake -G Ninja -S '%s' -B %s %s", environment, ROOT, folder,
      options)
    if check then check(folder) end
    child.remove(folder)
    return status, (out:gsub("%s+", " "))
  end

  it("names all that is not there, and the packages that have it", function()
    local status, out = configure("PKG_CONFIG_LIBDIR=/nowhere", "-DLT_DNNL_INCLUDE=")
    assert.equal(1, status)
    assert.matches("not found: jansson, oneDNN, Lua 5.4, libedit (Debian: apt-get install "
      .. "libjansson-dev libdnnl-dev liblua5.4-dev libedit-dev)", out, 1, true)
  end)

  it("removes the emulated cuda of an earlier one: the specs would run on it", function()
    local folder = child.folder()
    local stale = folder .. "/spec/cuda/backends/ltrain_cuda.so"
    shell.need("mkdir -p %s/spec/cuda/backends && touch %s", folder, stale)
    configure("PKG_CONFIG_LIBDIR=/nowhere", "-DLT_CUDA=OFF", folder, function()
      assert.equal(1, (shell.run("test -e %s", stale)))
    end)
  end)

  it("goes without the dashboard's charts where there is no dygraphs", function()
    local status, out = configure("true;", "-DLT_DYGRAPHS=")
    assert.equal(0, status, out)
    assert.matches("✗ dashboard: no dygraphs found (libjs-dygraphs)", out, 1, true)
  end)

  it("goes without tests in C where they cannot be built, unless they are asked for", function()
    -- pkg-config with all modules of this machine but cmocka.
    local folder = child.folder()
    shell.need("ln -s $(pkg-config --variable pc_path pkg-config | tr : '\n' | sed 's:$:/*.pc:') "
      .. "%s/ 2>/dev/null; rm -f %s/cmocka.pc; test -e %s/jansson.pc", folder, folder, folder)
    local path = "PKG_CONFIG_LIBDIR=" .. folder
    local status, out = configure(path, "")
    assert.equal(0, status, out)
    assert.matches("✗ tests in C: no cmocka found (libcmocka-dev)", out, 1, true)
    status, out = configure(path, "-DLT_SPECS=ON")
    assert.equal(1, status)
    assert.matches("not found: cmocka (LT_SPECS=ON) (Debian: apt-get install libcmocka-dev)", out,
      1, true)
    child.remove(folder)
  end)
end)
