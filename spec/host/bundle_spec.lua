-- spec/host/bundle_spec.lua: the tarball of the program with its libraries, unpacked anywhere.
local shell = require "spec.build.shell"

local BUILD <const> = os.getenv("LT_BUILD")
local EXHAUSTIVE <const> = os.getenv "LT_EXHAUSTIVE" == "1"
local SANITIZED <const> = (os.getenv("LT_SANITIZE") or "") ~= ""

-- Its libraries: lib<name>.so.*.
local GLIBC <const> = { c = true, dl = true, m = true, mvec = true, pthread = true, resolv = true,
  rt = true }

describe("the tarball with libraries", function()
  local folder, tarball

  setup(function()
    if not BUILD or SANITIZED or not EXHAUSTIVE then return end
    folder = shell.need("mktemp -d"):match "%S+"
    tarball = shell.need("tools/bundle.sh %s", BUILD):match "%S+"
    shell.need("mkdir '%s/a place' && tar -C '%s/a place' --strip-components=1 -xzf %s", folder,
      folder, tarball)
  end)
  teardown(function()
    if folder then shell.need("rm -rf %s", folder) end
  end)

  local function needs_tarball()
    if not BUILD then pending("LT_BUILD names no build folder") end
    if SANITIZED then pending("sanitized programs are not packed") end
    if not EXHAUSTIVE then pending("packing takes half a minute: LT_EXHAUSTIVE=1 does") end
  end

  it("is named after the glibc that it needs", function()
    needs_tarball()
    assert.matches("/ltrain%-%d+%.%d+%.%d+%-linux%-[%w_]+%-glibc2%.%d+%.tar%.gz$", tarball)
  end)

  it("takes all libraries but glibc from its folder, those that are opened later too", function()
    needs_tarball()
    local out = shell.need("'%s/a place/bin/ltrain' -e \"%s\"", folder, [[
      lt.linalg.solve(lt.eye(2), lt.ones(2))
      assert(lt.image.decode(lt.image.encode(lt.ones(3, 2, 2), 'png')))
      for line in io.lines '/proc/self/maps' do print(line:match '/.*%.so[.%d]*$') end]])
    local seen = {}
    for path in out:gmatch "/[^\n]*" do
      local name = path:match "[^/]*$"
      seen[name] = true
      local is_glibc = name:find "^ld%-linux" or GLIBC[name:match "^lib(%a+)%.so"]
      assert.truthy(is_glibc or path:find("a place/lib/bundled/", 1, true), path)
    end
    assert.is_true(seen["libdnnl.so.2"] and seen["libspng.so.0"], out)
  end)

  it("has the licenses of what it brings", function()
    needs_tarball()
    if shell.run "command -v dpkg" ~= 0 then pending "dpkg is not installed" end
    shell.need("test -s '%s/a place/share/doc/ltrain/bundled/libdnnl2'", folder)
  end)
end)
